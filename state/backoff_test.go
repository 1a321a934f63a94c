package state

import (
	"math/rand/v2"
	"testing"
	"time"
)

// R12: 0.5 s, doubled each time; jitter of 20 % before the cap of 2 min; and it never ends.
func TestDelays(t *testing.T) {
	var d delays
	random := rand.New(rand.NewPCG(1, 2))
	base, low, high := 500*time.Millisecond, 1.0, 1.0
	for try := range 2000 {
		got := d.next(random)
		spread := float64(got) / float64(base)
		if spread < 0.8 || spread > 1.2 || got > 2*time.Minute || got <= 0 {
			t.Fatalf("pause %d is %v, of %v", try, got, base)
		}
		low, high = min(low, spread), max(high, spread)
		base = min(2*base, 2*time.Minute)
	}
	if low > 0.81 || high < 1 { // only the first eight can be above
		t.Errorf("the jitter is from %.2f to %.2f", low, high)
	}
	d.reset()
	if got := d.next(random); got > 600*time.Millisecond {
		t.Errorf("after a reset it starts with %v", got)
	}
}

// fail has a's next try fail n times, and returns the last pause.
func fail(d *driver, n int) (pause time.Duration) {
	d.t.Helper()
	for range n {
		for d.check.paths[dir+"/a"].probe == nil {
			d.now = d.core.Deadline()
			d.step(Tick{})
		}
		d.refused(d.check.paths[dir+"/a"].probe.id)
		pause = d.socket(dir + "/a").NextTry.Sub(d.now)
	}
	return pause
}

// R12: through the Core, for ever.
func TestBackoffNeverEnds(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	if pause := fail(d, 2000); pause < 96*time.Second || pause > 120*time.Second {
		t.Errorf("the last pause is %v", pause)
	}
	if s := d.socket(dir + "/a"); s.Tries != 2000 || s.Phase != Backoff {
		t.Errorf("%d tries, phase %s", s.Tries, s.Phase)
	}
}

// R12: a new inode starts afresh, however fast they come.
func TestNewInodeStartsAfresh(t *testing.T) {
	d := drive(t, Config{})
	for inode := range uint64(5) {
		d.scan(sock("a", 1+inode, 1))
		if s := d.socket(dir + "/a"); s.Tries != 0 || s.LastError != "" {
			t.Errorf("inode %d starts with %d failures", 1+inode, s.Tries)
		}
		if pause := fail(d, 1); pause > 600*time.Millisecond {
			t.Errorf("inode %d waits %v", 1+inode, pause)
		}
		fail(d, 2)
	}
}

// R12: a change of stamps alone resets at most once in 5 s.
func TestStampsResetOnceIn5s(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	fail(d, 6)
	if got := d.scan(sock("a", 1, 2)); count(got, "ask a") != 1 { // the first resets
		t.Fatalf("the first touch: %v", got)
	}
	fail(d, 6)
	asks := 0
	for stamp := range int64(100) { // 10 s of touching
		asks += count(d.scan(sock("a", 1, 3+stamp)), "ask a")
		asks += count(d.wait(100*time.Millisecond), "ask a")
		if p := d.check.paths[dir+"/a"].probe; p != nil {
			d.refused(p.id)
		}
	}
	// Two resets fit into 10 s; each starts tries at 0, 0.5, 1.5 and 3.5 s.
	if asks < 4 || asks > 2*5 {
		t.Errorf("%d tries in 10 s of touching", asks)
	}
}

// R12, I6: touches that come while the socket is being asked do not have it asked again and again.
func TestTouchedWhileAsked(t *testing.T) {
	for _, test := range []struct {
		name     string
		inode    uint64
		min, max int
	}{
		{"same file", 1, 0, 0}, // judged when the try ends
		// The first touch resets; then at 0.5, 1.5 and 3.5 s, as long as nothing else fails.
		{"nobody knows whether it is the same file", 0, 3, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, Config{})
			d.scan(sock("a", test.inode, 1))
			asks := 0
			for stamp := range int64(250) { // 5 s at the eager pace
				asks += count(d.scan(sock("a", test.inode, 2+stamp)), "ask a")
				asks += count(d.wait(20*time.Millisecond-1), "ask a")
			}
			if asks < test.min || asks > test.max {
				t.Errorf("%d tries in 5 s of touching", asks)
			}
			if test.inode != 0 {
				d.want(d.refused(1), "2 ask a")
				return
			}
			if got := d.wait(10 * time.Second); count(got, "ask a") != 1 {
				t.Errorf("when it is let alone: %v", got)
			}
		})
	}
}

// R12, R13: what was refused is asked again after a touch, but no sooner than the 5 s allow.
func TestTouchAfterRefusal(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	d.step(Asked{ID: 1, Err: errTest, Failure: Unsupported})
	d.want(d.scan(sock("a", 1, 2)), "2 ask a")
	d.step(Asked{ID: 2, Err: errTest, Failure: Unsupported})
	d.want(d.wait(time.Second))
	d.want(d.scan(sock("a", 1, 3)))
	d.phase(dir+"/a", NotPlugin)
	d.want(d.wait(4*time.Second - 1))
	d.want(d.wait(1), "3 ask a")
}

// R12: no device or inode known (Windows, MemMapFs): a change counts as one of stamps alone.
func TestNoInode(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 0, 1))
	fail(d, 6)
	d.want(d.scan(sock("a", 0, 2)), "7 ask a")
	fail(d, 2)
	d.want(d.scan(sock("a", 0, 3)))
}

// R12: the state of a socket that is gone is gone.
func TestGoneIsForgotten(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	fail(d, 8)
	d.scan()
	if l := left(d.core); l != "" {
		t.Errorf("something is left:\n%s", l)
	}
	if got := d.scan(sock("a", 1, 1)); count(got, "ask a") != 1 {
		t.Errorf("the same file again: %v", got)
	}
	if pause := fail(d, 1); pause > 600*time.Millisecond {
		t.Errorf("it waits %v", pause)
	}
}

// R12: a success ends the row of failures.
func TestSuccessResets(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	fail(d, 6)
	d.step(RetryAsked{})
	d.register(7, csi, "x")
	if s := d.socket(dir + "/a"); s.Tries != 0 || s.LastError != "" || !s.NextTry.IsZero() {
		t.Errorf("registered with %+v", s)
	}
}

// R12, I4: touching a registered socket in a loop does not have it registered at the pace of the scans; never, where the file is known to be the same.
func TestTouchedWhileRegistered(t *testing.T) {
	for _, test := range []struct {
		name       string
		inode      uint64
		peer       *Peer
		asks, most int // in 20 s
	}{
		{"same file", 1, nil, 0, 0},
		{"same process", 0, &first, 5, 0},
		{"nobody knows", 0, nil, 10, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, Config{})
			d.step(HandlerAdded{Type: csi})
			d.scan(sock("a", test.inode, 1))
			d.by(1, test.peer, csi, "x")
			d.ok(2)
			d.ok(3)
			d.told(4)
			asks, registers := 0, 0
			for stamp := range int64(1000) { // 20 s
				d.scan(sock("a", test.inode, 2+stamp))
				d.wait(20 * time.Millisecond)
				for s := d.core.sockets[dir+"/a"]; s.probe != nil || s.call != nil; {
					switch {
					case s.probe != nil && s.probe.kind == ask:
						asks++
						d.by(s.probe.id, test.peer, csi, "x")
					case s.probe != nil:
						d.told(s.probe.id)
					default:
						if s.call.kind == register {
							registers++
						}
						d.ok(s.call.id)
					}
				}
			}
			if asks > test.asks || registers > test.most {
				t.Errorf("it was asked %d times and registered %d times in 20 s of touching", asks, registers)
			}
			d.phase(dir+"/a", Registered)
		})
	}
}

// O3: a plugin that starts anew before it has ever answered does not hold Synced up for ever.
func TestSyncedDespiteRestarts(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	if d.core.synced {
		t.Fatal("synced before the first try ended")
	}
	d.scan(sock("a", 2, 2))
	if !d.core.synced {
		t.Error("the first try was dropped, and Synced still waits for it")
	}
}
