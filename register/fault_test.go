package register

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/state"
)

// What goes wrong on a node where time matters, one test for each kind: afterwards everything is right again by itself. Those where a process matters are
// in files named real.

// aPoll is how long plugpoll may take to see something: the interval, and a little.
const aPoll = 201 * time.Millisecond

// R10, R12, R13: plugins whose GetInfo does not go well. The healthy one beside it sees nothing of that.
func TestFaultyGetInfo(t *testing.T) {
	for _, test := range []struct {
		name   string
		plugin simfs.Plugin
		after  time.Duration
		phase  state.Phase
		dials  int
	}{
		{"needs 1.2 s", simfs.Plugin{GetInfo: simfs.Call{Delay: 1200 * time.Millisecond}}, 1200 * time.Millisecond, state.Registered, 1},
		{"fails once", simfs.Plugin{GetInfo: simfs.Call{Code: codes.Internal, Times: 1}}, 700 * time.Millisecond, state.Registered, 2},
		{"hangs", simfs.Plugin{GetInfo: simfs.Call{Delay: time.Hour}}, 10 * time.Second, state.Backoff, 1},
		{"never accepts", simfs.Plugin{Silent: true}, 10 * time.Second, state.Backoff, 1},
		{"answers garbage", simfs.Plugin{Name: "a\x00b"}, 0, state.Rejected, 1},
		{"answers much", simfs.Plugin{Versions: slices.Repeat([]string{"1.0.0"}, 10_000)}, 0, state.Rejected, 1},
		{"has a blank for a name", simfs.Plugin{Name: " "}, 0, state.Registered, 1},
		{"does not know the call", simfs.Plugin{GetInfo: simfs.Call{Code: codes.Unimplemented}}, 0, state.NotPlugin, 1},
		{"nobody listens", simfs.Plugin{RefuseDials: -1}, 100 * time.Millisecond, state.Backoff, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				bad := w.bind("bad.sock", test.plugin)
				good := w.bind("good.sock", simfs.Plugin{})
				w.run()
				w.told(good, yes)
				w.pass(test.after)
				w.phase("bad.sock", test.phase)
				if n := bad.Record().Dials; n != test.dials {
					w.Errorf("%d dials", n)
				}
			})
		})
	}
}

// L2, R17: a plugin that says goodbye to every connection at once is dialled by the backoff, or as rarely as one that closes idle connections.
func TestFaultGoAwayAtOnce(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		s := w.bind("a.sock", simfs.Plugin{MaxIdle: time.Nanosecond})
		w.run()
		w.pass(10 * time.Minute)
		if n := s.Record().Dials; n > 40 {
			w.Errorf("%d dials in ten minutes", n)
		}
	})
}

// R11: a healthy plugin beside many that hang is registered within a poll and 30 ms, with a bounded number of goroutines.
func TestFaultHungPlugins(t *testing.T) {
	for _, n := range []int{200, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				before := runtime.NumGoroutine()
				for i := range n {
					w.node.Inject(at(fmt.Sprintf("hung%04d.sock", i)), simfs.OpDial, simfs.Fault{Hang: true})
					w.bind(fmt.Sprintf("hung%04d.sock", i), simfs.Plugin{})
				}
				servers := runtime.NumGoroutine() - before
				w.run()
				for range 5 {
					w.pass(7 * time.Second)
					name := fmt.Sprintf("good%d.sock", w.now()/time.Second)
					s := w.bind(name, simfs.Plugin{})
					w.pass(aPoll + 30*time.Millisecond)
					w.told(s, yes)
					w.phase(name, state.Registered)
				}
				if ours := runtime.NumGoroutine() - before - servers; ours > 600 {
					w.Errorf("%d goroutines", ours)
				}
			})
		})
	}
}

// R11: handlers that hang for other plugins delay nobody for long.
func TestFaultHungHandlers(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.h.on("Register", func(ctx context.Context, r state.Registration) error {
			if r.Name[0] == 'h' {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		for i := range 100 {
			w.bind(fmt.Sprintf("h%02d.sock", i), simfs.Plugin{})
		}
		w.run()
		w.pass(5 * time.Second)
		s := w.bind("good.sock", simfs.Plugin{})
		w.pass(aPoll + 250*time.Millisecond)
		w.told(s, yes)
		if call := w.socket("h00.sock").Call; call == nil || call.Verb != "register" || !call.Parked {
			w.Errorf("the view shows the call %+v", call)
		}
	})
}

// R8: validation fails and later passes.
func TestFaultValidationPassesLater(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.h.fails("Validate", errors.New("not yet"))
		s := w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.told(s, no("validate: not yet"))
		w.phase("a.sock", state.Backoff)
		w.h.fails("Validate", nil)
		w.pass(700 * time.Millisecond)
		w.told(s, no("validate: not yet"), yes)
	})
}

// R12: a plugin that is fixed and re-created after eight failures is registered within one poll and a try.
func TestFaultFixedAfterFailures(t *testing.T) {
	for name, sim := range map[string]simfs.Config{"new inode": {}, "inode used again": {ReuseInodes: true}} {
		t.Run(name, func(t *testing.T) {
			bubbleOn(t, sim, Config{}, func(w *world) {
				bad := w.bind("a.sock", simfs.Plugin{GetInfo: simfs.Call{Code: codes.Internal}})
				w.run()
				for bad.Record().Dials < 8 {
					w.pass(time.Second)
				}
				bad.Crash()
				w.remove("a.sock")
				s := w.bind("a.sock", simfs.Plugin{})
				w.pass(aPoll)
				w.told(s, yes)
			})
		})
	}
}

// R2, R7, R9: Register that goes wrong in every way. What it does to the end is what counts.
func TestFaultyRegister(t *testing.T) {
	var calls int
	for name, test := range map[string]func(ctx context.Context) error{
		"fails":  func(context.Context) error { return errors.New("no") },
		"panics": func(context.Context) error { panic("no") },
		"hangs":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{HandlerTimeout: time.Second}, func(w *world) {
				calls = 0
				w.h.on("Register", func(ctx context.Context, _ state.Registration) error {
					if calls++; calls == 1 {
						return test(ctx)
					}
					return nil
				})
				s := w.bind("a.sock", simfs.Plugin{})
				w.run()
				w.pass(3 * time.Second)
				w.phase("a.sock", state.Registered)
				if got := s.Record().Notices; len(got) != 2 || got[0].Registered || got[1] != yes {
					w.Errorf("told %+v", got)
				}
			})
		})
	}
}

// R7: a Register that ignores its context and succeeds after its socket was replaced is undone before the new instance has its turn.
func TestFaultRegisterSucceedsLate(t *testing.T) {
	bubble(t, Config{HandlerTimeout: time.Second}, func(w *world) {
		calls := 0
		w.h.on("Register", func(context.Context, state.Registration) error {
			if calls++; calls == 1 {
				w.sleep(time.Minute)
			}
			return nil
		})
		w.bind("a.sock", simfs.Plugin{Endpoint: "/run/old"})
		w.run()
		w.pass(time.Second)
		w.remove("a.sock")
		s := w.bind("a.sock", simfs.Plugin{Endpoint: "/run/new"})
		w.pass(58 * time.Second)
		w.told(s)
		w.calls("Validate a", "Register a")
		w.pass(2 * time.Second)
		w.calls("Deregister a", "Validate a", "Register a")
		w.told(s, yes)
		if got := w.h.holding("a.sock").Endpoint; got != "/run/new" {
			w.Errorf("the handler holds %q", got)
		}
	})
}

// N1: two sockets announce one name, and either leaves first.
func TestFaultTwoSocketsOneName(t *testing.T) {
	for _, leaver := range []string{"a.sock", "b.sock"} {
		t.Run(leaver, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				w.bind("a.sock", simfs.Plugin{Name: "n"})
				w.run()
				w.bind("b.sock", simfs.Plugin{Name: "n"})
				w.pass(aPoll)
				w.remove(leaver)
				w.pass(aPoll)
				rest := map[string]string{"a.sock": "b.sock", "b.sock": "a.sock"}[leaver]
				if got := w.h.holds(); !slices.Equal(got, []string{at(rest)}) {
					w.Errorf("the handler holds %q", got)
				}
			})
		})
	}
}

// D7, U5: what happens to directories and names.
func TestFaultyTree(t *testing.T) {
	const grace = 10*time.Second + aPoll // RootGrace
	for name, test := range map[string]struct {
		do   func(w *world) error
		wait time.Duration
		want []string
	}{
		"root removed":   {func(w *world) error { return w.node.RemoveAll(root) }, grace, []string{}},
		"root in grace":  {func(w *world) error { return w.node.RemoveAll(root) }, 9 * time.Second, []string{"/plugins/a.sock", "/plugins/sub/b.sock"}},
		"root renamed":   {func(w *world) error { return w.node.Rename(root, "/away") }, grace, []string{}},
		"root came back": {func(w *world) error { return errors.Join(w.node.Rename(root, "/away"), w.node.Rename("/away", root)) }, grace, []string{"/plugins/a.sock", "/plugins/sub/b.sock"}},
		"root re-made": {func(w *world) error {
			err := errors.Join(w.node.RemoveAll(root), w.node.MkdirAll(root, 0o755))
			w.bind("a.sock", simfs.Plugin{})
			return err
		}, aPoll, []string{"/plugins/a.sock"}},
		"subdirectory renamed": {func(w *world) error { return w.node.Rename(at("sub"), at("other")) }, aPoll, []string{"/plugins/a.sock", "/plugins/other/b.sock"}},
		"to a dot name":        {func(w *world) error { return w.node.Rename(at("a.sock"), at(".a.sock")) }, aPoll, []string{"/plugins/sub/b.sock"}},
		"out of the tree":      {func(w *world) error { return w.node.Rename(at("a.sock"), "/a.sock") }, aPoll, []string{"/plugins/sub/b.sock"}},
		"a file in its place": {func(w *world) error {
			return errors.Join(w.node.Remove(at("a.sock")), w.node.Mknod(at("a.sock"), fs.ModeNamedPipe|0o600))
		}, aPoll, []string{"/plugins/sub/b.sock"}},
		"the endpoint alone": {func(w *world) error { return w.node.Remove("/run/b.sock") }, aPoll, []string{"/plugins/a.sock", "/plugins/sub/b.sock"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				w.must(w.node.MkdirAll(at("sub"), 0o755))
				w.must(w.node.MkdirAll("/run", 0o755))
				w.bind("a.sock", simfs.Plugin{})
				w.bind("/run/b.sock", simfs.Plugin{})
				w.bind("sub/b.sock", simfs.Plugin{Endpoint: "/run/b.sock"})
				w.run()
				w.pass(2 * time.Second)
				w.must(test.do(w))
				w.pass(test.wait)
				if got := w.h.holds(); !slices.Equal(got, test.want) {
					w.Errorf("the handler holds %q, want %q", got, test.want)
				}
			})
		})
	}
}

// S1: stopped at every point of a registration, Run returns and leaves nothing.
func TestFaultStopAnywhere(t *testing.T) {
	for ms := range 40 {
		bubble(t, Config{}, func(w *world) {
			w.h.takes("Validate", 10*time.Millisecond)
			w.h.takes("Register", 10*time.Millisecond)
			for _, name := range []string{"a.sock", "b.sock"} {
				w.bind(name, simfs.Plugin{Name: path.Base(name), GetInfo: simfs.Call{Delay: 10 * time.Millisecond}, Notify: simfs.Call{Delay: 10 * time.Millisecond}})
			}
			w.run()
			w.pass(time.Duration(ms) * time.Millisecond)
			began := w.now()
			w.must(w.stop())
			if took := w.now() - began; took > time.Second {
				w.Errorf("stopped at %d ms it took %v", ms, took)
			}
		})
	}
}

// R12: a socket that is touched in a loop costs no more tries, whether it is good or not.
func TestFaultTouchedInALoop(t *testing.T) {
	for name, plugin := range map[string]simfs.Plugin{"good": {}, "bad": {GetInfo: simfs.Call{Code: codes.Internal}}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				s := w.bind("a.sock", plugin)
				w.run()
				for range 600 { // a minute
					w.must(w.node.Chmod(at("a.sock"), 0o700))
					w.pass(100 * time.Millisecond)
				}
				if n := s.Record().Dials; name == "good" && n != 1 || n > 60 {
					w.Errorf("%d dials", n)
				}
			})
		})
	}
}
