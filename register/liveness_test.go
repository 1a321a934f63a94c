package register

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

var (
	process = simfs.Plugin{Name: "a", PID: 10, Start: 100}
	another = simfs.Plugin{Name: "a", PID: 11, Start: 200}
)

// live runs f on a world where the plugin a is registered at a.sock.
func live(t *testing.T, sim simfs.Config, cfg Config, p simfs.Plugin, f func(w *world, s *simfs.Server)) {
	t.Helper()
	bubbleOn(t, sim, cfg, func(w *world) {
		s := w.bind("a.sock", p)
		w.run()
		w.told(s, yes)
		w.calls("Validate a", "Register a")
		w.dialled()
		f(w, s)
	})
}

// L1, L2: a plugin that is killed with its socket left is unreachable at once, not at the next poll, and deregistered when the grace is over.
func TestKilled(t *testing.T) {
	live(t, simfs.Config{}, Config{}, process, func(w *world, s *simfs.Server) {
		w.pass(time.Second)
		s.Crash()
		w.pass(0)
		w.phase("a.sock", state.Unreachable)
		w.pass(DefaultLivenessGrace - time.Nanosecond)
		w.phase("a.sock", state.Unreachable)
		w.calls()
		w.pass(time.Nanosecond)
		w.calls("Deregister a")
		w.phase("a.sock", state.Backoff)
		if got := w.log.lines("[WARN]"); len(got) != 1 {
			w.Errorf("O1: %q", got)
		}
		// What comes to the path later is another instance.
		w.remove("a.sock")
		w.bind("a.sock", another)
		w.pass(time.Second)
		w.calls("Validate a", "Register a")
	})
}

// L1: a plugin that removes its socket and leaves is not called unreachable, and its handler knows before the next poll would have shown it.
func TestLeaves(t *testing.T) {
	live(t, simfs.Config{}, Config{Roots: []scanner.Config{{Root: root, Interval: time.Minute}}}, process, func(w *world, s *simfs.Server) {
		w.pass(2 * time.Second) // eager scans are over
		w.remove("a.sock")
		w.must(s.Stop(w.Context()))
		w.pass(25 * time.Millisecond)
		w.calls("Deregister a")
		if got := w.log.lines("[WARN]"); len(got) != 0 {
			w.Errorf("%q", got)
		}
	})
}

// L1, R6: a plugin that restarts within an interval is swapped when it answers, whatever the filesystem can tell (I3).
func TestRestarted(t *testing.T) {
	for name, sim := range map[string]simfs.Config{
		"all told":                    {},
		"the inode is used again":     {ReuseInodes: true},
		"nothing told but the type":   {Detail: simfs.NoDetail, Granularity: time.Hour},
		"stamps of 2 s, inode reused": {ReuseInodes: true, Granularity: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, sim, Config{Roots: []scanner.Config{{Root: root, Interval: time.Hour}}}, process, func(w *world, s *simfs.Server) {
				w.pass(2 * time.Second)
				w.remove("a.sock")
				p := w.bind("a.sock", another)
				s.Crash()
				w.pass(10 * time.Millisecond)
				w.calls("Deregister a", "Validate a", "Register a")
				w.told(p, yes)
				w.phase("a.sock", state.Registered)
			})
		})
	}
}

// L1: killed and started again 200 ms later.
func TestRestartedLater(t *testing.T) {
	live(t, simfs.Config{ReuseInodes: true}, Config{}, process, func(w *world, s *simfs.Server) {
		s.Crash()
		w.pass(200 * time.Millisecond)
		w.phase("a.sock", state.Unreachable)
		w.remove("a.sock")
		p := w.bind("a.sock", another)
		w.pass(250 * time.Millisecond)
		w.calls("Deregister a", "Validate a", "Register a")
		w.told(p, yes)
	})
}

// L2: a plugin that closes idle connections stays registered, is asked again ever more rarely, and its handler sees nothing.
func TestKeepsHangingUp(t *testing.T) {
	p := process
	p.MaxIdle = 10 * time.Millisecond
	live(t, simfs.Config{}, Config{}, p, func(w *world, s *simfs.Server) {
		w.pass(10 * time.Minute)
		w.phase("a.sock", state.Registered)
		w.calls()
		if n := len(w.dialled()); n < 10 || n > 20 {
			w.Errorf("%d dials in 10 minutes", n)
		}
		for _, n := range s.Record().Notices {
			if n != yes {
				w.Errorf("told %+v", n)
			}
		}
		if got := append(w.log.lines("[WARN]"), w.log.lines("[INFO]")...); len(got) != 1 {
			w.Errorf("O1: %q", got)
		}
		s.Crash()
		w.pass(2 * time.Minute)
		w.calls("Deregister a")
	})
}

// L3: an idle plugin sees no traffic.
func TestIdle(t *testing.T) {
	live(t, simfs.Config{}, Config{Roots: slow.Roots}, process, func(w *world, s *simfs.Server) {
		before := s.Record()
		w.pass(24 * time.Hour)
		if after := s.Record(); after.Dials != before.Dials || after.GetInfos != before.GetInfos || len(after.Notices) != len(before.Notices) || after.Conns != 1 {
			w.Errorf("%+v, then %+v", before, after)
		}
	})
}

// N3: one connection for one socket, however often it changes hands.
func TestThousandInstances(t *testing.T) {
	live(t, simfs.Config{ReuseInodes: true}, Config{}, process, func(w *world, s *simfs.Server) {
		for i := range 1000 {
			w.remove("a.sock")
			p := process
			p.PID = 100 + i
			next := w.bind("a.sock", p)
			s.Crash()
			s = next
			w.pass(20 * time.Millisecond)
			if n := s.Record().Conns; n != 1 {
				w.Fatalf("%d connections to instance %d, phase %s", n, i, w.socket("a.sock").Phase)
			}
		}
		calls := w.h.take()
		if n := len(calls); n != 3000 {
			w.Errorf("%d handler calls", n)
		}
	})
}

// I4: chmod, chown and a shift of all times of 100 registered sockets: no handler call, no connection.
func TestMetadataOnly(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		var names []string
		for i := range 100 {
			name := string(rune('a'+i/26)) + string(rune('a'+i%26)) + ".sock"
			names = append(names, name)
			w.bind(name, simfs.Plugin{PID: i + 1, Start: 1})
		}
		w.run()
		w.pass(time.Second)
		w.h.take()
		w.dialled()
		for _, change := range []func(string) error{
			func(name string) error { return w.node.Chmod(name, 0o700) },
			func(name string) error { return w.node.Chown(name, 1, 2) },
			func(name string) error { return w.node.Chtimes(name, time.Now(), time.Now().Add(time.Hour)) },
		} {
			for _, name := range names {
				w.must(change(at(name)))
			}
			w.pass(10 * time.Second)
			w.calls()
			if dials := w.dialled(); len(dials) != 0 {
				w.Errorf("%d dials", len(dials))
			}
		}
		if n := len(w.registered()); n != 100 {
			w.Errorf("%d are registered", n)
		}
	})
}

// I4: where no inode is known the plugin is asked, and the process decides.
func TestMetadataUnknownInode(t *testing.T) {
	for name, test := range map[string]struct {
		p     simfs.Plugin
		calls []string
	}{
		"process known":   {process, nil},
		"process unknown": {simfs.Plugin{Name: "a"}, []string{"Deregister a", "Validate a", "Register a"}},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, simfs.Config{Detail: simfs.NoDetail}, Config{}, test.p, func(w *world, s *simfs.Server) {
				w.pass(10 * time.Second)
				w.must(w.node.Chtimes(at("a.sock"), time.Now(), time.Now().Add(time.Hour)))
				w.pass(time.Second)
				w.calls(test.calls...)
				w.phase("a.sock", state.Registered)
				if n := s.Record().Conns; n != 1 {
					w.Errorf("%d connections", n)
				}
			})
		})
	}
}

// I6: plugins chmod their socket right after bind.
func TestChmodDuringTheFirstTry(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		s := w.bind("a.sock", simfs.Plugin{GetInfo: simfs.Call{Delay: 300 * time.Millisecond}})
		w.run()
		for mode := range fs.FileMode(10) {
			w.must(w.node.Chmod(at("a.sock"), 0o700+mode))
			w.pass(25 * time.Millisecond)
		}
		w.pass(time.Second)
		w.calls("Validate a", "Register a")
		if r := s.Record(); r.GetInfos != 1 || r.Dials != 1 {
			w.Errorf("%+v", r)
		}
	})
}

// exclusiveTaker is a taker that takes one instance of a name at a time.
type exclusiveTaker struct{ *taker }

func (exclusiveTaker) Exclusive() bool { return true }

// N2: a name that one holds at a time goes to the one found last, and back when it leaves; the handler never has two.
func TestExclusiveNames(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		h := newTaker()
		w.must(w.m.AddHandler("Exclusive", exclusiveTaker{h}))
		holders := map[string]int{}
		h.on("Register", func(_ context.Context, r state.Registration) error { holders[r.Name]++; return nil })
		h.on("Deregister", func(_ context.Context, r state.Registration) error { holders[r.Name]--; return nil })
		plugin := simfs.Plugin{Type: "Exclusive", Name: "x"}
		a := w.bind("a.sock", plugin)
		w.run()
		w.told(a, yes)
		b := w.bind("b.sock", plugin)
		w.pass(250 * time.Millisecond)
		w.phase("a.sock", state.Standby)
		w.phase("b.sock", state.Registered)
		w.told(b, yes)
		if got := w.socket("a.sock").Holder; got != at("b.sock") {
			w.Errorf("the holder is %q", got)
		}
		if want := []string{"Validate x", "Register x", "Deregister x", "Validate x", "Register x"}; !slices.Equal(h.take(), want) {
			w.Error("other calls than", want)
		}
		b.Crash()
		w.remove("b.sock")
		w.pass(50 * time.Millisecond)
		w.phase("a.sock", state.Registered)
		w.remove("a.sock")
		w.pass(time.Second)
		if holders["x"] != 0 {
			w.Errorf("the handler holds %v", holders)
		}
	})
}

// R18: an observer asks and watches, and nobody notices more than a GetInfo.
func TestObserveOnly(t *testing.T) {
	bubble(t, Config{Observe: true}, func(w *world) {
		a := w.bind("a.sock", process)
		b := w.bind("b.sock", simfs.Plugin{Type: "Unknown"})
		w.run()
		w.pass(time.Minute)
		w.calls("Validate a")
		w.phase("a.sock", state.Observed)
		w.phase("b.sock", state.Rejected)
		w.told(a)
		w.told(b)
		a.Crash()
		w.pass(time.Minute)
		w.phase("a.sock", state.Unreachable)
		w.remove("a.sock")
		w.pass(time.Second)
		w.phase("a.sock", "")
		w.calls()
	})
}

// L2: a negative grace is none.
func TestCrashWithoutGrace(t *testing.T) {
	bubble(t, Config{LivenessGrace: -1}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		p.Crash()
		w.pass(time.Hour)
		w.phase("a.sock", state.Unreachable)
		w.calls("Validate a", "Register a")
		w.takers = nil // it is held, and not shown as registered
	})
}

// R9: a handler that never returns keeps its own plugin waiting and no other, and is not left behind at the end if it obeys its context then.
func TestHandlerNeverReturns(t *testing.T) {
	bubble(t, Config{HandlerTimeout: time.Hour}, func(w *world) {
		w.h.on("Validate", func(ctx context.Context, r state.Registration) error {
			if strings.HasPrefix(r.Name, "bad") {
				<-ctx.Done()
			}
			return nil
		})
		var bad []string
		for i := range 40 {
			bad = append(bad, "bad"+string(rune('A'+i)))
			w.bind(bad[i]+".sock", simfs.Plugin{})
		}
		w.run()
		w.pass(time.Second)
		w.bind("good.sock", simfs.Plugin{})
		w.pass(scanner.DefaultInterval + 20*time.Millisecond)
		w.phase("good.sock", state.Registered)
		for _, name := range bad {
			if s := w.socket(name + ".sock"); s.Phase != state.Registering || s.Call == nil || !s.Call.Parked {
				t.Errorf("%s: %+v", name, s)
			}
		}
		w.metric("handler_calls_parked 40\n", "handler_calls_parked")
	})
}
