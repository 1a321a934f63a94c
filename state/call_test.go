package state

import (
	"fmt"
	"testing"
	"time"
)

// registered is a driver with one socket, a, registered as x by effect 3. The next effect is 5.
func registered(t *testing.T, cfg Config) *driver {
	t.Helper()
	d := drive(t, cfg)
	d.step(HandlerAdded{Type: csi})
	d.step(HandlerAdded{Type: dra})
	d.scan(sock("a", 1, 1))
	d.register(1, csi, "x")
	d.took(Debug)
	return d
}

// R5: what was registered is deregistered once, with what was recorded, and without a word to the plugin.
func TestDeregisterOnce(t *testing.T) {
	d := registered(t, Config{})
	d.want(d.scan(), "5 deregister a CSI/x inode 1")
	d.phase(dir+"/a", Deregistering)
	d.want(d.scan())
	d.want(d.ok(5), "close 1")
	d.want(d.ok(5))
	d.want(d.took(Notice), "deregistered")
	if l := left(d.core); l != "" {
		t.Errorf("something is left:\n%s", l)
	}
}

// R5: an error of Deregister is shown and not retried.
func TestDeregisterFails(t *testing.T) {
	d := registered(t, Config{})
	d.scan()
	d.want(d.fails(5), "close 1")
	last := d.events[len(d.events)-1]
	if last.Level != Warn || last.Event.Kind != EventDeregistered || last.Event.Error != "deregister: it broke" || last.Event.Plugin.Name != "x" {
		t.Errorf("the event is %+v", last)
	}
	d.want(d.wait(time.Hour))
	if l := left(d.core); l != "" {
		t.Errorf("something is left:\n%s", l)
	}
}

// R6: the new instance is asked first; then Deregister, Validate, Register follow each other under one reservation.
func TestReplaceSameName(t *testing.T) {
	d := registered(t, Config{})
	d.want(d.scan(sock("a", 2, 2), sock("b", 9, 1)), "5 ask b", "6 ask a")
	d.answers(5, csi, "x") // of the same name, and first: it waits for nothing
	d.want(d.step(Tick{}))
	d.want(d.ok(7), "8 register b CSI/x inode 9")
	d.want(d.answers(6, csi, "x")) // the name is taken (R7)
	d.want(d.ok(8), "9 deregister a CSI/x inode 1", "10 tell b over 5: is registered", skip)
	d.want(d.ok(9), "close 1", "11 validate a CSI/x inode 2")
	d.want(d.ok(11), "12 register a CSI/x inode 2")
	d.want(d.ok(12), "13 tell a over 6: is registered")
}

// R6: nothing of the name comes between, not even what waits for it.
func TestReplaceHoldsTheName(t *testing.T) {
	d := registered(t, Config{})
	d.scan(sock("a", 2, 2), sock("b", 9, 1))
	d.want(d.answers(6, csi, "x"), "7 deregister a CSI/x inode 1")
	d.want(d.answers(5, csi, "x"))
	d.want(d.ok(7), "close 1", "8 validate a CSI/x inode 2")
	d.want(d.ok(8), "9 register a CSI/x inode 2")
	d.want(d.ok(9), "10 validate b CSI/x inode 9", "11 tell a over 6: is registered")
}

// R6: a new instance of another name is two independent operations.
func TestReplaceOtherName(t *testing.T) {
	d := registered(t, Config{})
	d.scan(sock("a", 2, 2), sock("b", 9, 1))
	d.want(d.answers(5, csi, "y"), "7 validate b CSI/y inode 9")
	d.want(d.answers(6, csi, "y"), "8 deregister a CSI/x inode 1") // x is free, y is not
	d.want(d.ok(8), "close 1")
	d.want(d.ok(7), "9 register b CSI/y inode 9")
	d.want(d.ok(9), "10 validate a CSI/y inode 2", "11 tell b over 5: is registered")
}

// R6: without an answer within 2 s the old one goes; the new one follows when it answers.
func TestReplaceWithoutAnswer(t *testing.T) {
	d := registered(t, Config{})
	d.want(d.scan(sock("a", 2, 2)), "5 ask a")
	d.want(d.wait(2*time.Second - 1))
	d.phase(dir+"/a", Registering)
	d.want(d.wait(1), "6 deregister a CSI/x inode 1")
	d.want(d.ok(6), "close 1")
	d.want(d.wait(6*time.Second), skip)
	d.want(d.answers(5, csi, "x"), "7 validate a CSI/x inode 2")
}

// R6: an answer while the old one is being deregistered for its lateness goes on at once.
func TestReplaceAnswersDuringDeregister(t *testing.T) {
	d := registered(t, Config{})
	d.scan(sock("a", 2, 2))
	d.wait(2 * time.Second)
	d.want(d.answers(5, csi, "x"))
	d.want(d.ok(6), "close 1", "7 validate a CSI/x inode 2")
}

// R6: a new instance that fails to answer has its 2 s as well, and is asked again meanwhile.
func TestReplaceRefused(t *testing.T) {
	d := registered(t, Config{})
	d.scan(sock("a", 2, 2))
	d.want(d.refused(5))
	d.want(d.wait(2*time.Second), "6 ask a", "7 deregister a CSI/x inode 1")
}

// R6: plugins that follow each other faster than 2 s do not keep the first one registered.
func TestReplaceAgainAndAgain(t *testing.T) {
	d := registered(t, Config{})
	gone := 0
	for n := range uint64(5) {
		d.scan(sock("a", 2+n, 1))
		gone += count(d.wait(900*time.Millisecond), "deregister a CSI/x inode 1")
	}
	if gone != 1 {
		t.Errorf("the old one was deregistered %d times in 4.5 s", gone)
	}
}

// R6: an instance that answers "unsupported", with an unknown type or for good badly has answered: the old one goes at once.
func TestReplaceByWhatIsNoPlugin(t *testing.T) {
	d := registered(t, Config{})
	d.scan(sock("a", 2, 2))
	d.want(d.step(Asked{ID: 5, Err: errTest, Failure: Unsupported}), "6 deregister a CSI/x inode 1")
	d = registered(t, Config{})
	d.scan(sock("a", 2, 2))
	d.want(d.answers(5, "Other", "x"), "6 deregister a CSI/x inode 1", skip)
	d = registered(t, Config{})
	d.scan(sock("a", 2, 2))
	d.want(d.step(Asked{ID: 5, Err: errTest, Failure: Permanent, Connected: true}), "6 deregister a CSI/x inode 1", "7 tell a over 5: it broke")
}

// R6: if the new one fails, the name is empty: the old one is not restored.
func TestReplaceFails(t *testing.T) {
	for _, step := range []string{"validate", "register"} {
		d := registered(t, Config{})
		d.scan(sock("a", 2, 2))
		d.answers(5, csi, "x")
		d.ok(6)
		id := EffectID(7)
		if step == "register" {
			d.ok(id)
			id++
		}
		d.want(d.fails(id), fmt.Sprintf("%d tell a over 5: %s: it broke", id+1, step))
		d.phase(dir+"/a", Backoff)
		d.want(d.told(id+1), "close 5")
		d.want(d.scan())
		if l := left(d.core); l != "" {
			t.Errorf("something is left:\n%s", l)
		}
	}
}

// A socket that comes back before its Deregister has started has 2 s to answer, as after any other replacement (R6).
func TestBackBeforeDeregister(t *testing.T) {
	d := drive(t, Config{Calls: 1})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.register(1, csi, "x")
	d.want(d.scan(sock("a", 1, 1), sock("b", 2, 1)), "5 ask b")
	d.want(d.answers(5, csi, "y"), "6 validate b CSI/y inode 2") // holds the only slot
	d.want(d.scan(sock("b", 2, 1)))                              // a is gone
	d.want(d.scan(sock("a", 3, 1), sock("b", 2, 1)), "7 ask a")  // and back
	d.want(d.fails(6), skip)
	d.phase(dir+"/a", Registering)
	d.want(d.wait(499*time.Millisecond), skip)
	if got := d.wait(2 * time.Second); count(got, "deregister a CSI/x inode 1") != 1 {
		t.Errorf("the old one is still registered:\n%v", got)
	}
}

// R7: whatever happens to a socket during its try, what was started for the old instance changes nothing, and each connection is closed once (the driver's
// checker counts). Both the removed and the replaced one, during each part of a try.
func TestOutdatedDuringTry(t *testing.T) {
	tests := []struct {
		during  string
		prepare func(d *driver)
		last    EffectID // in flight
		change  []string // effects of the change itself
		late    []string // effects of the late result, if the socket was removed
		newer   []string // and if it was replaced
	}{
		{"ask", func(*driver) {}, 1, []string{"cancel 1"}, []string{"close 1"}, []string{"close 1"}},
		{"validate", func(d *driver) { d.answers(1, csi, "x") }, 2, []string{"close 1", "cancel 2"}, nil, nil},
		{
			"register", func(d *driver) { d.answers(1, csi, "x"); d.ok(2) }, 3,
			[]string{"close 1", "cancel 3"},
			[]string{"4 deregister a CSI/x inode 1"},
			[]string{"5 deregister a CSI/x inode 1"},
		},
		{"notify", func(d *driver) { d.answers(1, csi, "x"); d.ok(2); d.ok(3) }, 4, []string{"cancel 4"}, nil, nil},
		{"tell", func(d *driver) { d.answers(1, csi, "x"); d.fails(2) }, 3, []string{"cancel 3", "close 1"}, nil, nil},
	}
	for _, test := range tests {
		for _, removed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/removed=%v", test.during, removed), func(t *testing.T) {
				d := drive(t, Config{})
				d.step(HandlerAdded{Type: csi})
				d.scan() // Synced is another matter
				d.scan(sock("a", 1, 1))
				test.prepare(d)
				late := test.late
				want := test.change
				var got []string
				if removed {
					got = d.scan()
					if test.during == "notify" {
						want = append(want, "5 deregister a CSI/x inode 1")
					}
				} else {
					got, late = d.scan(sock("a", 2, 2)), test.newer
					want = append(want, fmt.Sprintf("%d ask a", test.last+1))
				}
				d.want(got, want...)
				d.took(Debug)
				switch test.during {
				case "ask":
					d.want(d.answers(1, csi, "x"), late...)
				case "notify", "tell":
					d.want(d.told(test.last), late...)
				default:
					d.want(d.ok(test.last), late...)
				}
				d.want(d.took(Notice))
			})
		}
	}
}

// R7: a late success is deregistered at once, before anything else for that name, and then the newer instance's turn comes under the same reservation.
func TestLateSuccess(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.want(d.scan(sock("a", 1, 1), sock("b", 9, 1)), "1 ask b", "2 ask a")
	d.answers(2, csi, "x")
	d.want(d.ok(3), "4 register a CSI/x inode 1")
	d.want(d.answers(1, csi, "x")) // waits for the name
	d.want(d.scan(sock("a", 2, 2), sock("b", 9, 1)), "close 2", "cancel 4", "5 ask a")
	d.want(d.answers(5, csi, "x"))
	d.want(d.ok(4), "6 deregister a CSI/x inode 1")
	d.phase(dir+"/a", Registering)
	d.want(d.ok(6), "7 validate a CSI/x inode 2")
	d.want(d.ok(7), "8 register a CSI/x inode 2")
	d.want(d.ok(8), "9 validate b CSI/x inode 9", "10 tell a over 5: is registered")
}

// R7: a late error is nobody's.
func TestLateError(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.answers(1, csi, "x")
	d.scan(sock("a", 2, 2))
	d.took(Debug)
	d.want(d.fails(2))
	d.want(d.took(Debug))
	d.phase(dir+"/a", Registering)
	if s := d.socket(dir + "/a"); s.Tries != 0 {
		t.Errorf("the new instance has %d failures", s.Tries)
	}
}

// R7: replaced or removed and back while it is being deregistered.
func TestChangeDuringDeregister(t *testing.T) {
	d := registered(t, Config{})
	d.want(d.scan(), "5 deregister a CSI/x inode 1")
	d.want(d.scan(sock("a", 2, 2)), "6 ask a")
	d.want(d.scan(sock("a", 3, 3)), "cancel 6", "7 ask a")
	d.want(d.answers(7, csi, "x"))
	d.want(d.answers(6, csi, "x"), "close 6")
	d.want(d.ok(5), "close 1", "8 validate a CSI/x inode 3")
	d.want(d.scan(), "close 7", "cancel 8")
	d.want(d.fails(8))
	if l := left(d.core); l != "" {
		t.Errorf("something is left:\n%s", l)
	}
}

// R12: a socket that comes back while it is still being deregistered starts afresh.
func TestBackDuringDeregisterStartsAfresh(t *testing.T) {
	d := registered(t, Config{})
	d.want(d.scan(sock("a", 2, 2)), "5 ask a")
	d.refused(5)
	d.want(d.scan(), "6 deregister a CSI/x inode 1")
	d.want(d.scan(sock("a", 2, 2)), "7 ask a")
	if s := d.socket(dir + "/a"); s.Tries != 0 || s.LastError != "" {
		t.Errorf("it has %d failures", s.Tries)
	}
}

// N1: two sockets may announce one name. They are serialised by it, both are registered, and each is deregistered by itself.
func TestTwoInstancesOfOneName(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1), sock("b", 2, 1))
	d.want(d.answers(2, csi, "x"), "3 validate a CSI/x inode 1")
	d.want(d.answers(1, csi, "x"))
	d.want(d.ok(3), "4 register a CSI/x inode 1")
	d.want(d.ok(4), "5 validate b CSI/x inode 2", "6 tell a over 2: is registered")
	d.told(6)
	d.want(d.ok(5), "7 register b CSI/x inode 2")
	d.want(d.ok(7), "8 tell b over 1: is registered", "synced")
	d.told(8)
	d.want(d.scan(sock("b", 2, 1)), "9 deregister a CSI/x inode 1")
	d.phase(dir+"/b", Registered)
	d.want(d.scan(), skip)
	d.want(d.ok(9), "close 2", "10 deregister b CSI/x inode 2")
	d.want(d.ok(10), "close 1")
}

// One name of two types is two names.
func TestNameIsOfType(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.step(HandlerAdded{Type: dra})
	d.scan(sock("a", 1, 1), sock("b", 2, 1))
	d.want(d.answers(2, csi, "x"), "3 validate a CSI/x inode 1")
	d.want(d.answers(1, dra, "x"), "4 validate b DRA/x inode 2")
}

// The event of a Deregister has no error of the instance that came after.
func TestDeregisteredEventIsOfTheOldOne(t *testing.T) {
	d := registered(t, Config{})
	d.scan(sock("a", 2, 2))
	d.refused(5)
	d.wait(2 * time.Second)
	d.took(Debug)
	d.ok(7)
	e := d.events[0].Event
	if e.Kind != EventDeregistered || e.Error != "" || e.Tries != 0 || !e.NextTry.IsZero() {
		t.Errorf("the event is %+v", e)
	}
}
