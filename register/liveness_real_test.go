//go:build linux

package register

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// TestFaultsOfLife is TestFaults for what the connection to a plugin tells, and for what becomes of names and places.
func TestFaultsOfLife(t *testing.T) {
	for name, fault := range map[string]struct {
		demands string
		happens func(*faultNode)
	}{
		"killed with its socket left":  {"L1, L2: unreachable at once, not at the next poll, and deregistered after the grace", killed},
		"comes back within the grace":  {"L1, L2, R6: the handler sees another instance, once", backWithinGrace},
		"says GOAWAY when idle":        {"L1, L2: it stays registered, is told again, and is dialled at a growing pace", saysGoawayWhenIdle},
		"cuts its connections":         {"L1: the same process and socket are the same instance, which is told again", cutsConnections},
		"idle":                         {"L3: it sees no traffic", idlePlugin},
		"100 sockets touched":          {"I4: the handler sees nothing", hundredTouched},
		"name of another user's":       {"N2: it may not take over, and is told who has the name", nameOfAnother},
		"name taken over and returned": {"N2: later discovery wins, and the other stands by", nameTakenOver},
		"holder killed":                {"N2, L2: the standby of another user takes over from a holder that is gone", holderKilled},
		"200 hung":                     {"R11: a healthy one does not wait for any of them", besideHung},
		"observed":                     {"R18: asked, validated and watched, never told", observed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(fault.demands)
			fault.happens(newFaultNode(t))
		})
	}
}

func shortLife(c *Config) { c.LivenessGrace = time.Second }

func killed(f *faultNode) {
	path := f.at("a.sock")
	f.do(f.farm, order{Do: "start", Path: path, Name: "a"})
	f.manage(shortLife, func(c *Config) { c.Roots[0].Interval = time.Hour })
	f.told(f.farm, 0, path)
	f.awaitRegistered(path)
	events := f.m.Events(f.within(20 * time.Second))
	f.farm.kill()
	var lost, gone time.Time
	for e := range events {
		switch {
		case e.Path != path:
		case e.Kind == state.EventUnreachable && lost.IsZero():
			lost = e.Time
			// Its listener may outlive its connections by an instant, and then it is no refusal.
			if s := find(f.m.View(), path); s.Phase != state.Unreachable || s.LastError == "" {
				f.Errorf("View shows %+v", s)
			}
		case e.Kind == state.EventDeregistered:
			gone = e.Time
			if e.Reason != state.ReasonUnreachable {
				f.Errorf("it was deregistered because it is %s", e.Reason)
			}
		}
		if !gone.IsZero() {
			break
		}
	}
	if lost.IsZero() || gone.Sub(lost) < time.Second {
		f.Errorf("unreachable at %v and deregistered at %v", lost, gone)
	}
	f.await(path, "failing", func(s state.SocketView) bool { return s.Phase == state.Backoff })
	f.calls("Validate a", "Register a", "Deregister a")
}

func backWithinGrace(f *faultNode) {
	f.manage()
	path, next := f.at("a.sock"), startProcess(f, "farm")
	f.plugin(f.farm, path, "a")
	f.farm.kill()
	f.await(path, "unreachable", func(s state.SocketView) bool { return s.Phase == state.Unreachable })
	f.plugin(next, path, "a")
	f.calls("Validate a", "Register a", "Deregister a", "Validate a", "Register a")
}

func saysGoawayWhenIdle(f *faultNode) {
	f.manage()
	path := f.at("a.sock")
	f.do(f.farm, order{Do: "start", Path: path, Name: "a", Mode: closesIdle})
	told, err := f.farm.awaitAll(f.within(20*time.Second), 0, 4, happened("told", path))
	f.must(err)
	f.awaitRegistered(path)
	f.calls("Validate a", "Register a")
	// One second and two, less what a busy machine may delay the redial before.
	for i, least := range []time.Duration{0, 600 * time.Millisecond, 1300 * time.Millisecond} {
		if pause := told[i+1].At - told[i].At; pause < least {
			f.Errorf("redial %d came after %v", i+1, pause)
		}
	}
	if got := f.dialled("a.sock"); got != 4 {
		f.Errorf("%d dials for 4 connections", got)
	}
	if got := f.log.lines("[WARN]"); len(got) > 0 {
		f.Errorf("the log warns: %q", got)
	}
}

func cutsConnections(f *faultNode) {
	f.manage()
	path := f.at("a.sock")
	f.plugin(f.farm, path, "a")
	before := sockets(f)
	mark := f.farm.mark()
	f.do(f.farm, order{Do: "cut", Path: path})
	f.told(f.farm, mark, path)
	f.awaitRegistered(path)
	f.calls("Validate a", "Register a")
	f.eventually("one connection", func() bool { return sockets(f) == before })
}

func idlePlugin(f *faultNode) {
	f.manage()
	path := f.at("a.sock")
	f.plugin(f.farm, path, "a")
	f.plugin(f.farm, f.at("b.sock"), "b")
	for range 20 { // the root is scanned again and again
		f.plugin(f.farm, f.at("c.sock"), "c")
		f.do(f.farm, order{Do: "stop", Path: f.at("c.sock")})
		f.awaitGone(f.at("c.sock"))
	}
	if n := f.do(f.farm, order{Do: "count", Path: path}); n.Accepts != 1 || n.Asked != 1 {
		f.Errorf("it was connected %d times and asked %d times", n.Accepts, n.Asked)
	}
}

func hundredTouched(f *faultNode) {
	f.manage()
	for i := range 100 {
		f.do(f.farm, order{Do: "start", Path: socketOf(f.dir, i), Name: "p"})
	}
	before := map[string]scanner.Identity{}
	for i := range 100 {
		f.awaitRegistered(socketOf(f.dir, i))
	}
	for _, s := range f.m.View().Sockets {
		before[s.Path] = s.Identity
	}
	f.h.take()
	for i := range 100 {
		f.must(os.Chmod(socketOf(f.dir, i), 0o600))
		f.must(os.Chtimes(socketOf(f.dir, i), time.Now(), time.Now().Add(-time.Hour)))
	}
	f.plugin(f.farm, f.at("z.sock"), "z") // has the directory read
	f.eventually("the view shows the new stamps", func() bool {
		changed := 0
		for _, s := range f.m.View().Sockets {
			if i, ok := before[s.Path]; ok && i != s.Identity && s.Phase == state.Registered {
				changed++
			}
		}
		return changed == 100
	})
	f.calls("Validate z", "Register z")
	if n := f.do(f.farm, order{Do: "count", Path: socketOf(f.dir, 7)}); n.Accepts != 1 {
		f.Errorf("it was connected %d times", n.Accepts)
	}
}

// aloneType is a type whose handler wants one plugin of a name.
const aloneType = "AlonePlugin"

type aloneTaker struct{ *taker }

func (aloneTaker) Exclusive() bool { return true }

// manageAlone starts a Manager with an exclusive handler, and returns it.
func (f *faultNode) manageAlone(change ...func(*Config)) *taker {
	f.manage(change...)
	h := newTaker()
	f.must(f.m.AddHandler(aloneType, aloneTaker{h}))
	return h
}

func (f *faultNode) calledAlone(h *taker, want ...string) {
	f.Helper()
	was := f.h
	f.h = h
	f.calls(want...)
	f.h = was
}

func nameOfAnother(f *faultNode) {
	stranger := startProcess(f, "farm")
	f.become(stranger, anotherUser)
	h := f.manageAlone()
	a, b := f.at("a.sock"), f.at("b.sock")
	f.do(f.farm, order{Do: "start", Path: a, Type: aloneType, Name: "n"})
	f.awaitRegistered(a)
	f.do(stranger, order{Do: "start", Path: b, Type: aloneType, Name: "n"})
	n, err := stranger.await(f.within(20*time.Second), 0, happened("refused", b))
	f.must(err)
	if !strings.Contains(n.Error, a) {
		f.Errorf("it was told %q", n.Error)
	}
	f.await(b, "rejected", func(s state.SocketView) bool { return s.Phase == state.Rejected && strings.Contains(s.LastError, a) })
	f.awaitRegistered(a)
	f.calledAlone(h, "Validate n", "Register n")
}

func nameTakenOver(f *faultNode) {
	h := f.manageAlone()
	a, b := f.at("a.sock"), f.at("b.sock")
	f.do(f.farm, order{Do: "start", Path: a, Type: aloneType, Name: "n"})
	f.awaitRegistered(a)
	f.do(f.farm, order{Do: "start", Path: b, Type: aloneType, Name: "n"})
	f.told(f.farm, 0, b)
	f.awaitRegistered(b)
	f.await(a, "standing by", func(s state.SocketView) bool { return s.Phase == state.Standby && s.Holder == b })
	f.calledAlone(h, "Validate n", "Register n", "Deregister n", "Validate n", "Register n")
	f.do(f.farm, order{Do: "stop", Path: b})
	f.await(a, "registered", func(s state.SocketView) bool { return s.Phase == state.Registered })
	f.calledAlone(h, "Deregister n", "Validate n", "Register n")
}

func holderKilled(f *faultNode) {
	stranger, late := startProcess(f, "farm"), startProcess(f, "farm")
	f.become(stranger, anotherUser)
	h := f.manageAlone(shortLife)
	a, b, c := f.at("a.sock"), f.at("b.sock"), f.at("c.sock")
	f.do(stranger, order{Do: "start", Path: a, Type: aloneType, Name: "n"})
	f.awaitRegistered(a)
	f.do(f.farm, order{Do: "start", Path: b, Type: aloneType, Name: "n"}) // root may take over
	f.awaitRegistered(b)
	f.await(a, "standing by", func(s state.SocketView) bool { return s.Phase == state.Standby })
	f.farm.kill()
	f.await(b, "unreachable", func(s state.SocketView) bool { return s.Phase == state.Unreachable || s.Phase == state.Backoff })
	f.await(a, "registered", func(s state.SocketView) bool { return s.Phase == state.Registered })
	f.do(late, order{Do: "start", Path: c, Type: aloneType, Name: "n"})
	f.awaitRegistered(c)
	f.calledAlone(h, "Validate n", "Register n", "Deregister n", "Validate n", "Register n", "Deregister n", "Validate n", "Register n",
		"Deregister n", "Validate n", "Register n")
}

func besideHung(f *faultNode) {
	f.manage(func(c *Config) { c.InfoTimeout = time.Hour })
	for i := range 200 {
		f.do(f.farm, order{Do: "start", Path: socketOf(f.dir, i), Name: "hung", Mode: hangs})
	}
	f.await(socketOf(f.dir, 199), "found", func(s state.SocketView) bool { return s.Path != "" })
	f.plugin(startProcess(f, "farm"), f.at("healthy.sock"), "healthy")
	f.calls("Validate healthy", "Register healthy")
}

func observed(f *faultNode) {
	f.manage(func(c *Config) { c.Observe = true })
	path := f.at("a.sock")
	is := func(phase state.Phase) func(state.SocketView) bool {
		return func(s state.SocketView) bool { return s.Phase == phase }
	}
	f.do(f.farm, order{Do: "start", Path: path, Name: "a"})
	f.await(path, "observed", is(state.Observed))
	f.do(f.farm, order{Do: "cut", Path: path})
	f.eventually("it is asked again", func() bool { return f.do(f.farm, order{Do: "count", Path: path}).Asked >= 2 })
	f.await(path, "observed", is(state.Observed))
	for _, what := range []string{"told", "refused"} {
		f.farm.mu.Lock()
		for _, n := range f.farm.notes {
			if n.What == what {
				f.Errorf("it was told: %+v", n)
			}
		}
		f.farm.mu.Unlock()
	}
	f.farm.kill()
	f.await(path, "unreachable", is(state.Unreachable))
	f.must(os.Remove(path))
	f.awaitGone(path)
	if got := f.h.take(); strings.Contains(strings.Join(got, " "), "egister") {
		f.Errorf("the handler's calls were %q", got)
	}
}
