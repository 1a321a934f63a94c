package state

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// R8, R3: an unknown type is told once, with the known types, and is not tried again by itself.
func TestUnknownType(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: dra})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1), sock("b", 2, 1))
	in := Asked{ID: 2, Info: info("Other", "x"), Connected: true}
	out := d.core.Step(d.now, in)
	if err := d.check.step(d.now, in, out); err != nil {
		t.Fatal(err)
	}
	told := out[len(out)-1].(Notify)
	if want := "no handler for plugin type Other: the known types are CSIPlugin, DRAPlugin"; told.Message != want || told.Registered {
		t.Errorf("told %q, want %q", told.Message, want)
	}
	d.phase(dir+"/a", Rejected)
	d.want(d.told(told.ID), "close 2")
	d.refused(1)
	if s := d.socket(dir + "/a"); !s.NextTry.IsZero() {
		t.Errorf("its next try is %v", s.NextTry)
	}
	d.step(RetryAsked{dir + "/b"})
	for range 20 { // b is retried, a is not
		if got := d.wait(time.Hour); count(got, "ask a") > 0 {
			t.Fatalf("a was asked again: %v", got)
		}
	}
}

// R8: a handler that is added wakes what waits for its type, at once and nothing else.
func TestHandlerAddedWakes(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1), sock("b", 2, 1))
	d.answers(1, csi, "b")
	d.answers(2, dra, "a")
	d.want(d.told(3), "close 1")
	d.want(d.step(HandlerAdded{Type: "Other"}))
	d.want(d.step(HandlerAdded{Type: csi}), "5 ask b")
	d.want(d.step(HandlerAdded{Type: csi}))
	d.want(d.answers(5, csi, "b"), "6 validate b CSI/b inode 2")
	d.want(d.step(HandlerAdded{Type: dra})) // a is still being told
	d.want(d.told(4), "close 2", "7 ask a")
}

// R8: a handler that comes while the socket is asked is in time.
func TestHandlerAddedWhileAsked(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	d.want(d.step(HandlerAdded{Type: csi}))
	d.want(d.answers(1, csi, "x"), "2 validate a CSI/x inode 1")
}

// R10: between its bind and its listen a new socket refuses. That is let pass once, and only for an instance that has not failed yet.
func TestRefusedOnce(t *testing.T) {
	refuse := func(id EffectID) Input { return Asked{ID: id, Err: errTest, Failure: Refused} }
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	d.want(d.step(refuse(1)))
	d.phase(dir+"/a", Pending)
	d.want(d.wait(50*time.Millisecond - 1))
	d.want(d.wait(1), "2 ask a")
	d.want(d.step(refuse(2)), "synced") // O3: only now it was tried
	d.phase(dir+"/a", Backoff)
	d.want(d.wait(300 * time.Millisecond))
	d.want(d.scan(sock("a", 2, 2)), "3 ask a") // a new inode
	d.want(d.step(refuse(3)))
	d.want(d.wait(50*time.Millisecond), "4 ask a")
	d.step(Asked{ID: 4, Err: errTest})
	d.want(d.wait(600*time.Millisecond), "5 ask a")
	d.want(d.step(refuse(5)))
	d.want(d.wait(700 * time.Millisecond))
}

// R8, R12: a socket of an unknown type that is touched in a loop has not said its type anew; a handler wakes it all the same.
func TestHandlerAddedAfterTouch(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	d.answers(1, csi, "x")
	d.told(2)
	d.want(d.scan(sock("a", 1, 2)), "3 ask a")
	d.answers(3, csi, "x")
	d.told(4)
	d.want(d.scan(sock("a", 1, 3))) // within 5 s
	d.want(d.step(HandlerAdded{Type: csi}), "5 ask a")
}

// R3: whatever the cause is, the plugin is told valid UTF-8 of at most 1 KiB.
func TestToldText(t *testing.T) {
	for _, cause := range []string{strings.Repeat("x", 5000), strings.Repeat("ä", 3000), "bad \xff\xfe", "line\nbreak\x00", strings.Repeat("\xff", 3000), ""} {
		d := drive(t, Config{})
		d.step(HandlerAdded{Type: csi})
		d.scan(sock("a", 1, 1))
		d.answers(1, csi, "x")
		in := Called{ID: 2, Err: errors.New(cause)}
		out := d.core.Step(d.now, in)
		if err := d.check.step(d.now, in, out); err != nil {
			t.Error(err)
		}
		told := out[1].(Notify).Message
		if len(told) > 1024 || !utf8.ValidString(told) || !strings.HasPrefix(told, "validate: ") || strings.ContainsAny(told, "\n\x00") {
			t.Errorf("%.20q is told as %q", cause, told)
		}
		if cause == "" {
			continue
		}
		if want := "validate: " + cause[:1]; !strings.HasPrefix(told, want) && utf8.ValidString(want) {
			t.Errorf("%.20q is told as %q", cause, told)
		}
	}
}

// R3: that a refusal could not be delivered is no failure of ours: nothing is said, and the next try is as planned.
func TestRefusalNotDelivered(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.answers(1, csi, "x")
	d.fails(2)
	before := d.socket(dir + "/a")
	d.took(Debug)
	d.want(d.step(Notified{ID: 3, Err: errTest}), "close 1")
	d.want(d.took(Debug))
	if after := d.socket(dir + "/a"); after.Tries != before.Tries || after.LastError != before.LastError || !after.NextTry.Equal(before.NextTry) {
		t.Errorf("%+v became %+v", before, after)
	}
}

// O2: the next try is shown while the plugin is being told of the last one.
func TestNextTryWhileTelling(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.answers(1, csi, "x")
	d.want(d.fails(2), "3 tell a over 1: validate: it broke", "synced")
	if s := d.socket(dir + "/a"); s.Phase != Backoff || s.NextTry.IsZero() {
		t.Errorf("phase %s, next try %v", s.Phase, s.NextTry)
	}
}

// R4: a Notify(true) that fails leaves the registration and is tried again alone, over a connection of its own, with backoff.
func TestNotAcknowledged(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.answers(1, csi, "x")
	d.ok(2)
	d.ok(3)
	if s := d.socket(dir + "/a"); s.Acknowledged != "" {
		t.Errorf("acknowledged %q before it was told", s.Acknowledged)
	}
	d.want(d.step(Notified{ID: 4, Err: errTest}))
	d.phase(dir+"/a", Registered)
	s := d.socket(dir + "/a")
	if s.Acknowledged != AckNo || s.LastError != "it broke" || s.Tries != 1 || s.NextTry.IsZero() {
		t.Errorf("the view has %+v", s)
	}
	d.want(d.wait(700*time.Millisecond), "5 tell a over 1: is registered")
	d.want(d.step(Notified{ID: 5, Err: errTest}))
	d.want(d.wait(1300*time.Millisecond), "6 tell a over 1: is registered")
	d.want(d.step(Notified{ID: 6, Err: errTest}))
	d.want(d.step(RetryAsked{dir + "/a"}), "7 tell a over 1: is registered")
	d.want(d.told(7))
	s = d.socket(dir + "/a")
	if s.Acknowledged != AckYes || s.LastError != "" || s.Tries != 0 || !s.NextTry.IsZero() {
		t.Errorf("the view has %+v", s)
	}
	d.want(d.wait(24 * time.Hour))
	d.want(d.took(Notice), "registered", "not_acknowledged")
	d.want(d.scan(), "8 deregister a CSI/x inode 1")
	d.want(d.ok(8), "close 1")
}

// R4: a plugin that does not know the call is never called again.
func TestAcknowledgeUnsupported(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.answers(1, csi, "x")
	d.ok(2)
	d.ok(3)
	d.want(d.step(Notified{ID: 4, Err: errTest, Failure: Unsupported}))
	if s := d.socket(dir + "/a"); s.Phase != Registered || s.Acknowledged != AckUnsupported {
		t.Errorf("the view has %+v", s)
	}
	d.want(d.wait(24 * time.Hour))
	d.want(d.step(RetryAsked{}))
}

// R13: what is no registration socket is asked again on Retry, when it changes, and after ten minutes.
func TestTenMinutes(t *testing.T) {
	tests := []struct {
		name  string
		in    func(d *driver) []string
		phase Phase
		event EventKind
		level Level
	}{
		{"unsupported", func(d *driver) []string {
			return d.step(Asked{ID: 1, Err: errTest, Failure: Unsupported, Connected: true})
		}, NotPlugin, EventIgnored, Notice},
		{"permanent", func(d *driver) []string { return d.step(Asked{ID: 1, Err: errTest, Failure: Permanent}) }, Rejected, EventRejected, Warn},
		{"validate", func(d *driver) []string {
			d.answers(1, csi, "x")
			d.step(Called{ID: 2, Err: errTest, Failure: Permanent})
			return d.told(3)
		}, Rejected, EventRejected, Warn},
		{"register", func(d *driver) []string {
			d.answers(1, csi, "x")
			d.ok(2)
			d.step(Called{ID: 3, Err: errTest, Failure: Permanent})
			return d.told(4)
		}, Rejected, EventRejected, Warn},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, how := range []string{"time", "retry", "change"} {
				d := drive(t, Config{})
				d.step(HandlerAdded{Type: csi})
				d.scan(sock("a", 1, 1))
				test.in(d)
				d.phase(dir+"/a", test.phase)
				last := d.events[0]
				for _, e := range d.events {
					if e.Event.Kind == test.event {
						last = e
					}
				}
				if last.Event.Kind != test.event || last.Level != test.level {
					t.Errorf("the event is %d %s", last.Level, last.Event.Kind)
				}
				d.want(d.wait(10*time.Minute - 1))
				var got []string
				switch how {
				case "time":
					got = d.wait(1)
				case "retry":
					got = d.step(RetryAsked{})
				case "change":
					got = d.scan(sock("a", 2, 2))
				}
				if count(got, "ask a") != 1 {
					t.Errorf("%s: %v", how, got)
				}
			}
		})
	}
}
