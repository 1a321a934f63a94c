package cni

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	gocni "github.com/containerd/go-cni"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/register/internal/stream"
)

// CN6: while an instance is being made, however long that takes, everything else goes on. The newest set is made next, and what was made of another one is dropped.
func TestSlowInstance(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		var hold atomic.Bool
		let := make(chan struct{})
		var made []string
		w.s.make = func(networks []network, o instanceOptions) (gocni.CNI, error) {
			made = append(made, networks[0].name)
			if hold.Load() {
				<-let
			}
			return instance(networks, o)
		}
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(settled)
		hold.Store(true)
		for _, name := range []string{"b", "c", "d"} {
			w.write("10-a.conflist", list(name))
			w.pass(settled)
			w.is(Ready, "a")
		}
		w.write("10-a.conflist", broken)
		w.pass(settled)
		w.is(Stale, "a")
		w.write("10-a.conflist", list("d"))
		w.pass(settled)
		asked := len(w.wasAsked())
		w.pass(DefaultStatusInterval)
		if len(w.wasAsked()) != 1 || asked != 1 {
			t.Error("STATUS waits for the instance")
		}
		hold.Store(false)
		close(let)
		w.pass(0)
		w.is(Ready, "d")
		if want := []string{"a", "b", "d"}; !slices.Equal(made, want) {
			t.Errorf("made were %q, want %q", made, want)
		}

		let = make(chan struct{})
		hold.Store(true)
		w.write("10-a.conflist", list("e"))
		w.pass(settled)
		w.write("10-a.conflist", broken)
		w.pass(settled)
		close(let)
		w.pass(0)
		w.is(Stale, "d") // what was being made is not what is there
	})
}

// CN6: an option that hangs is a status after 10 s, with a network in use and without, and what is in use stays.
func TestHungInstance(t *testing.T) {
	for _, inUse := range []bool{false, true} {
		t.Run(fmt.Sprint(inUse), func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				var hold atomic.Bool
				let := make(chan struct{})
				w.s.make = func(networks []network, o instanceOptions) (gocni.CNI, error) {
					if hold.Load() {
						<-let
					}
					return instance(networks, o)
				}
				before, now := "", NotReady
				if inUse {
					before, now = "a", Stale
					w.write("10-a.conflist", list("a"))
				}
				w.run()
				w.pass(settled)
				hold.Store(true)
				w.write("10-a.conflist", list("b"))
				w.pass(5 * time.Second)
				if inUse {
					w.is(Ready, before)
				}
				w.pass(10 * time.Second)
				w.is(now, before)
				w.says("has not ended within 10s")
				if err := w.s.View().Error; err == nil || err.Kind != KindNoBuild {
					t.Errorf("the error is %v", err)
				}
				select {
				case <-w.s.Synced():
				default:
					t.Error("CN16: it was decided, and Synced is open")
				}
				w.write("10-a.conflist", broken)
				w.pass(settled)
				w.says("ends in the middle")
				w.write("10-a.conflist", list("c"))
				w.pass(settled)
				w.says("has not ended within 10s") // it still hangs, and nothing is broken
				hold.Store(false)
				close(let)
				w.pass(0)
				w.is(Ready, "c")
			})
		})
	}
}

// An embedder's option that fails, panics or ends its goroutine is a status, and tried again.
func TestBadOptions(t *testing.T) {
	fail := func() error { return errors.New("no\tway") }
	for _, test := range []struct {
		name, says string
		option     func() error
	}{
		{"error", `no\tway`, fail},
		{"panic", "panic: oops", func() error { panic("oops\nat line 1") }},
		{"exit", "runtime.Goexit", func() error { runtime.Goexit(); return nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				var bad atomic.Bool
				bad.Store(true)
				w.s.make = func(networks []network, o instanceOptions) (gocni.CNI, error) {
					if bad.Load() {
						if err := test.option(); err != nil {
							return nil, err
						}
					}
					return instance(networks, o)
				}
				w.write("10-a.conflist", list("a"))
				w.run()
				w.pass(settled)
				w.is(NotReady, "")
				w.says(test.says)
				if v := w.s.View(); v.NextRetry.IsZero() || v.Error.Kind != KindNoBuild {
					t.Errorf("the View is %+v", v)
				}
				bad.Store(false)
				w.pass(2 * time.Second)
				w.is(Ready, "a")
			})
		})
	}
}

// CN12: Status asks now, also after an asking that runs, and says what LastStatus says then.
func TestStatus(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		if err := w.s.Status(w.Context()); err == nil || err.Error() != w.s.LastStatus().Error() {
			t.Errorf("before Run it is %v", err)
		}
		w.run()
		w.pass(settled)
		if err := w.s.Status(w.Context()); !errors.Is(err, gocni.ErrCNINotInitialized) || w.wasAsked() != nil {
			t.Errorf("without a network it is %v", err)
		}
		w.write("10-a.conflist", listOf("1.1.0", "a"))
		w.pass(settled)
		w.wasAsked()
		w.must(w.s.Status(w.Context()))
		if asked := w.wasAsked(); len(asked) != 1 {
			t.Errorf("asked at %v", asked)
		}
		w.answers(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(3 * time.Second):
				return errors.New("not now")
			}
		})
		began := w.now()
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- w.s.Status(w.Context()) }()
			w.pass(time.Second)
		}
		for _, took := range []time.Duration{3 * time.Second, 6 * time.Second} {
			if err := <-errs; err == nil || !strings.Contains(err.Error(), "not now") || w.now()-began != took {
				t.Errorf("it is %v after %v, want it after %v", err, w.now()-began, took)
			}
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := w.s.Status(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it is %v", err)
		}
		go func() { errs <- w.s.Status(w.Context()) }()
		w.pass(0)
		w.must(w.stop())
		if err := <-errs; err == nil {
			t.Error("after the end it is nil")
		}
		if err := w.s.Status(w.Context()); err == nil || err.Error() != w.s.LastStatus().Error() {
			t.Errorf("after the end it is %v", err)
		}
	})
}

// A Status that comes when Run is about to return is answered as well.
func TestStatusAtTheEnd(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.must(w.s.begin())
		errs := make(chan error, 1)
		go func() { errs <- w.s.Status(w.Context()) }()
		w.pass(0)
		w.s.end()
		w.pass(0)
		select {
		case err := <-errs:
			if err == nil || err.Error() != w.s.LastStatus().Error() {
				t.Errorf("it is %v", err)
			}
		default:
			t.Error("it is waited for")
		}
	})
}

// A negative StatusTimeout has no plugin run.
func TestStatusOff(t *testing.T) {
	bubble(t, Config{StatusTimeout: -1}, func(w *world) {
		w.write("10-a.conflist", listOf("1.1.0", "a"))
		w.run()
		w.pass(time.Minute)
		w.is(Ready, "a")
		w.must(w.s.Status(w.Context()))
		if asked := w.wasAsked(); asked != nil {
			t.Errorf("STATUS was asked at %v", asked)
		}
	})
}

// Retry does not wait for the next poll. Asked in a loop it fills no memory.
func TestRetry(t *testing.T) {
	bubble(t, Config{Interval: time.Hour}, func(w *world) {
		for range 1000 {
			w.s.Retry()
		}
		if len(w.s.mail) != 1 {
			t.Errorf("there are %d mails", len(w.s.mail))
		}
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(2 * time.Second)
		w.write("10-a.conflist", list("b"))
		for range 1000 {
			w.s.Retry()
		}
		w.pass(20 * time.Millisecond)
		w.is(Ready, "b")
		if polls := w.node.Calls(confDir, simfs.OpStat); polls > 250 {
			t.Errorf("there were %d looks", polls)
		}
		w.must(w.stop())
		w.s.Retry()
		if len(w.s.mail) != 0 {
			t.Error("there is mail after the end")
		}
	})
}

// CN8, CN14: what is wrong with the directory is no error of Run, which runs once.
func TestRunTwice(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.run()
		if err := w.s.Run(w.Context()); err == nil {
			t.Error("Run runs twice at once")
		}
		w.must(w.stop())
		if err := w.s.Run(w.Context()); err == nil {
			t.Error("Run runs twice")
		}
	})
}

// S1, S3: Run returns at once if nothing hangs, within a second if something does, and lists that.
func TestStop(t *testing.T) {
	hang := func(w *world, path string, op simfs.Op) {
		w.node.Inject(path, op, simfs.Fault{Hang: true})
	}
	for _, test := range []struct {
		name  string
		hangs func(w *world, let chan struct{})
		want  []string
	}{
		{"nothing", func(*world, chan struct{}) {}, nil},
		{"poll", func(w *world, _ chan struct{}) { hang(w, confDir, simfs.OpOpen) }, []string{"list /net.d"}},
		{"file", func(w *world, _ chan struct{}) { hang(w, at("10-a.conflist"), simfs.OpOpen) }, []string{"/net.d/10-a.conflist"}},
		{"plugins", func(w *world, _ chan struct{}) { hang(w, binDir+"/bridge", simfs.OpStat) }, []string{"looking for plugins in /bin"}},
		{"status", func(w *world, let chan struct{}) {
			w.answers(func(context.Context) error { <-let; return nil })
		}, []string{"STATUS of the plugins of /net.d"}},
		{"status that obeys", func(w *world, _ chan struct{}) {
			w.answers(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}, nil},
		{"instance", func(w *world, let chan struct{}) {
			w.s.make = func([]network, instanceOptions) (gocni.CNI, error) { <-let; return nil, errors.New("late") }
		}, []string{"making a go-cni instance of /net.d"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				let := make(chan struct{})
				w.write("10-a.conflist", listOf("1.1.0", "a"))
				test.hangs(w, let)
				w.run()
				w.pass(settled)
				began := w.now()
				err := w.stop()
				took := w.now() - began
				stuck, _ := errors.AsType[*StuckError](err)
				switch {
				case test.want == nil && (err != nil || took != 0):
					t.Errorf("Run returned %v after %v", err, took)
				case test.want != nil && (stuck == nil || took != time.Second || len(stuck.Calls) != len(test.want) || !strings.Contains(stuck.Calls[0], test.want[0])):
					t.Errorf("Run returned %v after %v, want %q after 1 s", err, took, test.want)
				}
				close(let)
				w.node.ClearFaults()
				synctest.Wait()
				if v := w.s.View(); v.State == Ready && test.name != "nothing" {
					t.Errorf("after the end it is %s", v.State)
				}
			})
		})
	}
}

// What fails because Run is told to stop is no failure of a plugin.
func TestStopIsNoFailure(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", listOf("1.1.0", "a"))
		w.run()
		w.pass(settled)
		w.answers(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		w.pass(DefaultStatusInterval)
		w.happened(EventApplied, EventReady, EventSynced)
		w.must(w.stop())
		w.happened()
		w.is(Ready, "a")
	})
}

// O4: a subscription begins with the View, misses nothing, and is told what it lost.
func TestEvents(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.run()
		slow := w.s.Events(w.Context())
		never, cancel := context.WithCancel(w.Context())
		_ = w.s.Events(never)
		for n := range stream.Backlog + 10 {
			w.write("10-a.conflist", list(fmt.Sprintf("n%d", n%3)))
			w.pass(settled)
		}
		cancel()
		w.must(w.stop())
		var got []Event
		for e := range slow {
			got = append(got, e)
		}
		if len(got) != stream.Backlog+2 || got[0].Kind != EventView || got[0].View == nil || got[1].Kind != EventLost || got[1].Lost == 0 {
			t.Fatalf("got %d events, the first are %+v", len(got), got[:2])
		}
		for _, e := range got {
			if e.Version != "v1" || e.Time.IsZero() || e.ConfDir != confDir || e.State == "" {
				t.Errorf("an event is %+v", e)
			}
		}
		for range w.s.Events(never) {
			t.Error("an event comes though the context has ended")
		}
		synctest.Wait()
		w.s.mu.Lock()
		readers := len(w.s.readers)
		w.s.mu.Unlock()
		if readers != 0 {
			t.Errorf("%d readers stay", readers)
		}
		var after []Event
		for e := range w.s.Events(w.Context()) {
			after = append(after, e)
		}
		if len(after) != 1 || after[0].View.State != w.s.View().State {
			t.Errorf("after the end there is %+v", after)
		}
	})
}

// X3, D10: what files and names say forges no line, and no message either.
func TestHostileNames(t *testing.T) {
	bubble(t, Config{Name: "kata qemu"}, func(w *world) {
		w.write("10-\n[ERROR] forged.conflist", broken)
		w.write("20-\xff.conflist", list("x"))
		w.run()
		w.pass(settled)
		w.is(NotReady, "")
		w.remove("10-\n[ERROR] forged.conflist")
		w.answers(func(context.Context) error { return errors.New("a\n[ERROR] b\x1b[31m" + strings.Repeat("x", 1<<20)) })
		w.pass(settled)
		w.is(NotReady, "x")
		for line := range strings.Lines(w.log.String()) {
			if len(line) > 4096 || strings.HasPrefix(line, "[ERROR]") || strings.ContainsRune(line, '\x1b') || !strings.Contains(line, `handler="kata qemu"`) {
				t.Errorf("a line is %.100q", line)
			}
		}
		v := w.s.View()
		if v.Files[0].PathBase64 == "" || v.Networks[0].FileBase64 == "" {
			t.Errorf("D10: the View is %+v", v)
		}
	})
}

// O1: failures that take turns, or that are never the same twice, make no line each.
func TestLines(t *testing.T) {
	bubble(t, Config{Grace: -1}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(settled)
		for n := range 50 {
			w.answers(func(context.Context) error { return fmt.Errorf("failure %d", n) })
			w.s.Retry()
			w.write("10-a.conflist", broken+fmt.Sprintf("\"n%d\" %d", n, n))
			w.pass(settled)
			w.answers(nil)
			w.s.Retry()
			w.write("10-a.conflist", list("a"))
			clear := w.node.Inject(confDir, simfs.OpOpen, simfs.Fault{Err: []syscall.Errno{syscall.EIO, syscall.EACCES}[n%2], Times: 3})
			w.pass(settled)
			clear()
			w.pass(settled)
		}
		const perHour = 8 // O1, of one kind of failure
		if warned := len(w.log.lines("WARN")); warned < 3 || warned > 3*perHour {
			t.Errorf("there are %d warnings", warned)
		}
		if said := len(w.log.lines("INFO")); said > 6*perHour {
			t.Errorf("there are %d lines at Info:\n%s", said, strings.Join(w.log.lines("INFO"), "\n"))
		}
	})
}
