package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// stopTimed stops the Manager and checks how long that takes and what is listed as stuck.
func (w *world) stopTimed(within time.Duration, stuck ...string) {
	w.Helper()
	asked := time.Now()
	err := w.stop()
	if took := time.Since(asked); took > within {
		w.Errorf("S1: Run returned after %v, want at most %v", took, within)
	}
	var got []string
	if e, ok := errors.AsType[*StuckError](err); ok {
		got = e.Calls
	} else if err != nil {
		w.Errorf("Run returned %v", err)
	}
	if !slices.Equal(got, stuck) {
		w.Errorf("S1: stuck are %q, want %q", got, stuck)
	}
}

// S2: nothing is deregistered on stop unless that is wanted.
func TestStop(t *testing.T) {
	for _, deregister := range []bool{false, true} {
		t.Run(fmt.Sprintf("DeregisterOnStop %v", deregister), func(t *testing.T) {
			bubble(t, Config{DeregisterOnStop: deregister}, func(w *world) {
				a := w.bind("a.sock", simfs.Plugin{})
				w.bind("b.sock", simfs.Plugin{})
				w.run()
				calls := w.h.take()
				slices.Sort(calls)
				if want := []string{"Register a", "Register b", "Validate a", "Validate b"}; !slices.Equal(calls, want) {
					w.Errorf("the calls were %q", calls)
				}
				w.h.on("Deregister", func(ctx context.Context, _ state.Registration) error {
					if d, ok := ctx.Deadline(); !ok || time.Until(d) != DefaultStopTimeout || ctx.Err() != nil {
						w.Errorf("S1: Deregister's context has the deadline %v and the error %v", d, ctx.Err())
					}
					return nil
				})
				w.stopTimed(0)
				calls = w.h.take()
				slices.Sort(calls)
				if deregister != slices.Equal(calls, []string{"Deregister a", "Deregister b"}) || !deregister && len(calls) != 0 {
					w.Errorf("S2: on stop the calls were %q", calls)
				}
				w.told(a, yes)
				w.bind("c.sock", simfs.Plugin{})
				w.pass(time.Hour)
				w.calls()
			})
		})
	}
}

// S1: a handler that obeys its context holds nothing up, and is not followed by another call.
func TestStopDuringCalls(t *testing.T) {
	for _, verb := range []string{"Validate", "Register", "Deregister"} {
		t.Run(verb, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				w.h.takes(verb, time.Hour)
				w.bind("a.sock", simfs.Plugin{})
				w.run()
				if verb == "Deregister" {
					w.remove("a.sock")
				}
				w.pass(time.Second)
				for i := range 20 {
					w.bind(fmt.Sprintf("b%d.sock", i), simfs.Plugin{GetInfo: simfs.Call{Delay: time.Hour}})
				}
				w.pass(time.Second)
				w.h.take()
				w.stopTimed(time.Second)
				w.calls()
				// What ends with Run's context is no failure of a plugin. A Deregister is one of its handler.
				if warned := w.log.lines("[WARN]"); len(warned) != 0 && verb != "Deregister" {
					w.Errorf("warned %q", warned)
				}
			})
		})
	}
}

// S1: what does not end is listed after StopTimeout, with its path quoted.
func TestStuckHandler(t *testing.T) {
	for _, verb := range []string{"Validate", "Register", "Deregister"} {
		t.Run(verb, func(t *testing.T) {
			bubble(t, Config{StopTimeout: 7 * time.Second}, func(w *world) {
				w.h.on(verb, func(context.Context, state.Registration) error { w.sleep(time.Hour); return nil })
				w.bind("a b.sock", simfs.Plugin{})
				p := w.bind("c.sock", simfs.Plugin{GetInfo: simfs.Call{Delay: time.Hour}})
				w.run()
				if verb == "Deregister" {
					w.remove("a b.sock")
				}
				w.pass(time.Second)
				asked := time.Now()
				w.stopTimed(7*time.Second, verb+` of "/plugins/a b.sock"`)
				if took := time.Since(asked); took != 7*time.Second {
					w.Errorf("Run returned after %v", took)
				}
				if n := p.Record().Conns; n != 0 {
					w.Errorf("S3: %d connections are open", n)
				}
				w.pass(time.Hour) // it ends late, and nothing happens
				w.h.mu.Lock()
				clear(w.h.held)
				w.h.mu.Unlock()
			})
		})
	}
}

// S1: a Register that ignores its context but ends in time is waited for; with DeregisterOnStop it is undone.
func TestLateRegisterOnStop(t *testing.T) {
	for _, deregister := range []bool{false, true} {
		t.Run(fmt.Sprintf("DeregisterOnStop %v", deregister), func(t *testing.T) {
			bubble(t, Config{DeregisterOnStop: deregister}, func(w *world) {
				w.h.on("Register", func(context.Context, state.Registration) error { w.sleep(5 * time.Second); return nil })
				p := w.bind("a.sock", simfs.Plugin{})
				w.run()
				w.pass(time.Second)
				w.stopTimed(4 * time.Second)
				want := []string{"Validate a", "Register a"}
				if deregister {
					want = append(want, "Deregister a")
				}
				w.calls(want...)
				w.told(p)
			})
		})
	}
}

// The contexts of all that is left behind end with Run, so that what obeys late ends late and not never.
func TestContextsEndWithRun(t *testing.T) {
	bubble(t, Config{DeregisterOnStop: true}, func(w *world) {
		var left time.Duration
		w.h.on("Deregister", func(ctx context.Context, _ state.Registration) error {
			<-ctx.Done()
			left = w.now()
			return ctx.Err()
		})
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.remove("a.sock")
		w.pass(time.Second)
		w.stopTimed(DefaultStopTimeout, "Deregister of /plugins/a.sock")
		w.pass(0)
		if left != 11*time.Second {
			w.Errorf("the call's context ended at %v", left)
		}
	})
}

// S1, S2: what was to be deregistered and was not is listed, also where another instance is at its path by now.
func TestStuckDeregisterOfReplaced(t *testing.T) {
	bubble(t, Config{DeregisterOnStop: true, StopTimeout: time.Second}, func(w *world) {
		for _, name := range []string{"a.sock", "b.sock", "c.sock"} { // one name: there is one handler call at a time
			w.bind(name, simfs.Plugin{Name: "x"})
		}
		w.run()
		w.pass(time.Second)
		for _, name := range []string{"a.sock", "b.sock"} {
			w.remove(name)
			w.bind(name, simfs.Plugin{Name: "x", Silent: true})
		}
		w.h.on("Deregister", func(context.Context, state.Registration) error { w.sleep(time.Hour); return nil })
		w.pass(time.Second)
		err, ok := errors.AsType[*StuckError](w.stop())
		if !ok || len(err.Calls) != 3 {
			w.Fatalf("Run returned %v", err)
		}
		var begun, not int
		for i, name := range []string{"a.sock", "b.sock", "c.sock"} {
			switch err.Calls[i] {
			case "Deregister of " + at(name):
				begun++
			case "Deregister of " + at(name) + ", which has not begun":
				not++
			}
		}
		if begun != 1 || not != 2 {
			w.Errorf("S1: stuck are %q", err.Calls)
		}
		w.pass(time.Hour)
		w.h.mu.Lock()
		clear(w.h.held)
		w.h.mu.Unlock()
	})
}

// S1: a call of the filesystem that hangs is waited for one second.
func TestStuckScan(t *testing.T) {
	for _, timeout := range []time.Duration{0, 500 * time.Millisecond} {
		bubble(t, Config{StopTimeout: timeout}, func(w *world) {
			p := w.bind("a.sock", simfs.Plugin{})
			w.run()
			w.told(p, yes)
			free := w.node.Inject(root, simfs.OpList, simfs.Fault{Hang: true})
			w.pass(time.Second)
			want := time.Second
			if timeout > 0 {
				want = timeout
			}
			asked := time.Now()
			w.stopTimed(want, "list /plugins")
			if took := time.Since(asked); took != want {
				w.Errorf("Run returned after %v", took)
			}
			free()
			w.pass(0)
			// A Manager that was stopped with a stuck scan leaves its registration as it is.
			w.phase("a.sock", state.Registered)
		})
	}
}

// S1, S3: whenever it is stopped, Run returns at once, nothing is open, and no handler is called afterwards (bubble checks the rest).
func TestStopAtManyMoments(t *testing.T) {
	for at := time.Duration(0); at < 9*time.Second; at += 90 * time.Millisecond {
		bubble(t, Config{DeregisterOnStop: at/(90*time.Millisecond)%2 == 1}, func(w *world) {
			w.h.takes("Validate", 500*time.Millisecond)
			w.h.takes("Register", 500*time.Millisecond)
			w.node.Inject("/plugins/a.sock", simfs.OpDial, simfs.Fault{Hook: func() { w.sleep(300 * time.Millisecond) }})
			slow := simfs.Call{Delay: 500 * time.Millisecond}
			w.bind("a.sock", simfs.Plugin{GetInfo: slow, Notify: slow})
			w.bind("b.sock", simfs.Plugin{GetInfo: slow, Notify: simfs.Call{Code: codes.Internal, Times: 3}})
			w.bind("c.sock", simfs.Plugin{Type: "Other", Notify: slow})
			w.bind("d.sock", simfs.Plugin{Name: "a"})
			w.run()
			go func() {
				w.sleep(3 * time.Second)
				_ = w.node.Remove("/plugins/a.sock")
				w.sleep(time.Second)
				_, _ = w.node.Bind("/plugins/a.sock", simfs.Plugin{Type: testType, Name: "a", GetInfo: slow})
				w.sleep(6 * time.Second)
			}()
			w.pass(at)
			w.stopTimed(500 * time.Millisecond)
			w.h.take()
			w.pass(10 * time.Second)
			w.calls()
		})
		if t.Failed() {
			t.Fatalf("stopped at %v", at)
		}
	}
}

func TestRunTwice(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.run()
		if err := w.m.Run(w.Context()); err == nil || err.Error() != "register: Run was called twice: make another Manager" {
			w.Errorf("the second Run returned %v", err)
		}
		w.stopTimed(0)
		if err := w.m.Run(w.Context()); err == nil {
			w.Error("a Run after the first returned nil")
		}
	})
}

func TestRunWithEndedContext(t *testing.T) {
	bubble(t, Config{Roots: []scanner.Config{{Root: root, MissingRoot: scanner.CreateRoot}}}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		w.must(w.m.Run(ctx))
		w.calls()
		if p.Record().Dials != 0 {
			w.Error("it dialled")
		}
	})
}
