package state

import (
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// D1: what is there before the start is found by the first scan. R11: the newest first.
func TestFirstScan(t *testing.T) {
	d := drive(t, Config{})
	d.want(d.scan(sock("a", 1, 1), sock("b", 2, 1)), "1 ask b", "2 ask a")
	d.want(d.took(Debug), "found", "found")
}

// R1: the order of a registration. An endpoint, name and versions go through unchanged.
func TestOrder(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.want(d.scan(sock("a", 1, 1)), "1 ask a")
	d.phase(dir+"/a", Registering)
	d.want(d.answers(1, csi, "x"), "2 validate a CSI/x inode 1")
	d.want(d.ok(2), "3 register a CSI/x inode 1")
	d.phase(dir+"/a", Registering)
	d.want(d.ok(3), "4 tell a over 1: is registered", "synced")
	d.phase(dir+"/a", Registered)
	d.want(d.told(4))
	d.want(d.took(Notice), "registered")
	if at := d.core.Deadline(); !at.IsZero() {
		t.Errorf("an idle core wants a tick at %v", at)
	}
}

// An unchanged scan has no effect, however it is given.
func TestUnchangedScan(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.register(1, csi, "x")
	d.took(Debug)
	d.want(d.step(Scanned{Root: dir, Snapshot: d.last[dir], Ended: d.now}))
	d.want(d.scan(sock("a", 1, 1)))
	d.want(d.step(Scanned{Root: "/elsewhere", Snapshot: scanner.NewSnapshot(nil, nil)}))
	d.want(d.took(Debug))
}

// U1: a failed scan removes nothing; an entry that is only stale keeps its registration.
func TestFailedScanRemovesNothing(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.register(1, csi, "x")
	d.want(d.step(Scanned{Root: dir, Err: errTest, Ended: d.now}))
	stale := sock("a", 1, 1)
	stale.Stale = &scanner.Stale{Since: d.now, Err: errTest}
	d.want(d.scan(stale))
	d.phase(dir+"/a", Registered)
	if s := d.socket(dir + "/a").Stale; s == nil || s.Error != "it broke" || !s.Since.Equal(d.now) {
		t.Errorf("stale is %v", s)
	}
	d.want(d.scan(sock("a", 1, 1)))
	if s := d.socket(dir + "/a").Stale; s != nil {
		t.Errorf("still stale: %v", s)
	}
}

// R2, R8: a Register that fails records nothing; the plugin is told, then it is tried again from the start.
func TestRegisterFails(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.answers(1, csi, "x")
	d.ok(2)
	d.want(d.fails(3), "4 tell a over 1: register: it broke", "synced")
	d.phase(dir+"/a", Backoff)
	d.want(d.told(4), "close 1")
	if s := d.socket(dir + "/a"); s.Tries != 1 || s.LastError != "register: it broke" || s.NextTry.IsZero() || s.Plugin.Name != "x" {
		t.Errorf("the view has %+v", s)
	}
	d.want(d.wait(time.Second), "5 ask a")
	d.want(d.scan(), "cancel 5") // and no Deregister
}

// R12: Retry makes the tries come at once, for one path or all.
func TestRetry(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1), sock("b", 2, 1), sock("c", 3, 1))
	for id := range EffectID(3) {
		d.refused(id + 1)
	}
	d.want(d.step(RetryAsked{dir + "/b"}), "4 ask b")
	d.want(d.step(RetryAsked{dir + "/b"}))
	d.want(d.step(RetryAsked{dir + "/nobody"}))
	d.want(d.step(RetryAsked{}), "5 ask c", "6 ask a")
}

// O3: Synced comes after the first scan of every root and the first try of what it found, and once.
func TestSynced(t *testing.T) {
	other := Root{Path: "/other"}
	d := drive(t, Config{Roots: []Root{{Path: dir}, other}})
	d.step(HandlerAdded{Type: csi})
	d.want(d.scan(sock("a", 1, 1), sock("b", 2, 1), sock("c", 3, 1), sock("d", 4, 1)), "1 ask d", "2 ask c", "3 ask b", "4 ask a")
	d.answers(1, csi, "d")
	d.ok(5)
	d.want(d.ok(6), "7 tell d over 1: is registered")
	d.want(d.refused(2))                                                                                                          // a try that failed has ended
	d.want(d.scan(sock("a", 1, 1), sock("d", 4, 1), sock("e", 5, 1)), skip)                                                       // b is gone: nothing to wait for. e was not found by the first scan
	d.want(d.step(Scanned{Root: "/other", Err: errTest, Ended: d.now}))                                                           // an error ends a scan too
	d.want(d.step(Scanned{Root: "/other", Err: errTest, Ended: d.now}))                                                           // and counts once
	d.want(d.answers(4, "Unknown", "a"), "9 tell a over 4: no handler for plugin type Unknown: the known types are C…", "synced") // so is being refused
	if !d.core.View(d.now).Synced {
		t.Error("the view does not say so")
	}
	d.want(d.refused(8))
}

// O3: a Core without sockets, and one without roots.
func TestSyncedEmpty(t *testing.T) {
	d := drive(t, Config{})
	d.want(d.step(Tick{}))
	d.want(d.scan(), "synced")
	d = drive(t, Config{Roots: []Root{}})
	d.want(d.step(Tick{}), "synced")
	d.want(d.step(Tick{}))
}

// A report is taken from the start of Register to the end of Deregister.
func TestReported(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	report := func(id EffectID, message string) Health {
		t.Helper()
		d.want(d.step(Reported{id, Report{Message: message}}))
		if r := d.socket(dir + "/a").Report; r != nil && r.Message == message {
			return r.Health
		}
		return ""
	}
	check := func(id EffectID, message string, want Health) {
		t.Helper()
		if got := report(id, message); got != want {
			t.Errorf("report %s: %q, want %q", message, got, want)
		}
	}
	d.answers(1, csi, "x")
	check(2, "validate", "")
	d.ok(2)
	check(3, "register", HealthUnknown)
	d.ok(3)
	check(3, "registered", HealthUnknown)
	check(4, "of another effect", "")
	d.told(4)
	d.scan(sock("a", 2, 2))
	check(3, "replaced", HealthUnknown)
	d.want(d.answers(5, csi, "x"), "6 deregister a CSI/x inode 1")
	check(3, "deregistering", HealthUnknown)
	d.ok(6)
	check(3, "deregistered", "")
	if d.socket(dir+"/a").Report != nil {
		t.Error("the report outlives the registration")
	}
	d.took(Debug)
	d.ok(7)
	check(8, "of a Register that fails", HealthUnknown)
	d.fails(8)
	if d.socket(dir+"/a").Report != nil {
		t.Error("the report outlives a Register that failed (R2)")
	}
	d.want(d.took(Debug), "report", "failing")
}

// A report's message is one line of at most 1 KiB.
func TestReportIsClean(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.register(1, csi, "x")
	d.step(Reported{3, Report{Health: HealthDown, Message: "no\nway \xff" + string(make([]byte, 3000))}})
	r := d.socket(dir + "/a").Report
	if len(r.Message) > 1024 || r.Message[:12] != `no\nway \xff`[:12] || r.Health != HealthDown {
		t.Errorf("the report is %q", r.Message)
	}
}

// The Core wants a Tick only when something is due then, and stops wanting.
func TestDeadline(t *testing.T) {
	d := drive(t, Config{})
	if at := d.core.Deadline(); !at.IsZero() {
		t.Errorf("a new core wants a tick at %v", at)
	}
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1), sock("b", 2, 1))
	d.refused(1)
	if at := d.core.Deadline(); at.IsZero() || !at.Equal(d.socket(dir+"/b").NextTry) {
		t.Errorf("the deadline is %v", at)
	}
	d.scan() // what they were waiting for is of no use any more
	ticks := 0
	for at := d.core.Deadline(); !at.IsZero(); at = d.core.Deadline() {
		d.now = at
		d.want(d.step(Tick{}))
		if ticks++; ticks > 10 {
			t.Fatal("it wants ticks for ever")
		}
	}
	if l := left(d.core); l != "" {
		t.Errorf("something is left:\n%s", l)
	}
}

// Two Cores of one seed and one history do the same.
func TestSameSeedSameEffects(t *testing.T) {
	run := func(seed uint64) string {
		core, hash := New(Config{Roots: []Root{{Path: dir}}, Seed: seed}), newTrace()
		now := start
		for n := range 50 {
			var entries []scanner.Entry
			for i := range 20 {
				entries = append(entries, sock(string(rune('a'+i)), uint64(1+n*i%7), 1))
			}
			in := Scanned{Root: dir, Snapshot: scanner.NewSnapshot(entries, nil)}
			out := core.Step(now, in)
			hash.add(now, in, out)
			for _, e := range out {
				if ask, ok := e.(Ask); ok {
					in := Asked{ID: ask.ID, Err: errTest}
					hash.add(now, in, core.Step(now, in))
				}
			}
			now = now.Add(300 * time.Millisecond)
		}
		return hash.String()
	}
	if a, b := run(1), run(1); a != b {
		t.Errorf("two runs of one seed: %s, %s", a, b)
	}
	if run(1) == run(2) {
		t.Error("the seed has no effect")
	}
}
