package register

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// hangs has the dials of a socket ignore their context and take d from now on.
func (w *world) hangs(name string, d time.Duration) {
	w.node.Inject(at(name), simfs.OpDial, simfs.Fault{Hook: func() { w.sleep(d) }})
}

// used is how many descriptors connections and dials are counted to have.
func (w *world) used() int {
	w.m.files.mu.Lock()
	defer w.m.files.mu.Unlock()
	return w.m.files.used
}

// R10, U4: a dial that ignores its context is given up when its time is over, is the only one of its path until it returns, and leaves nothing behind then.
func TestHungDial(t *testing.T) {
	bubble(t, Config{DialTimeout: 3 * time.Second}, func(w *world) {
		w.hangs("a.sock", time.Hour)
		a := w.bind("a.sock", simfs.Plugin{})
		b := w.bind("b.sock", simfs.Plugin{})
		w.run()
		w.told(b, yes)
		w.pass(3*time.Second + dialGrace - time.Nanosecond)
		w.phase("a.sock", state.Registering)
		w.pass(time.Nanosecond)
		w.phase("a.sock", state.Backoff)
		if got, want := w.socket("a.sock").LastError, "dial: "+errHung.Error(); got != want {
			w.Errorf("the error is %q, want %q", got, want)
		}
		select {
		case <-w.m.Synced():
		default:
			w.Error("O3: it is not synced")
		}
		w.must(w.m.Retry(at("a.sock")))
		w.pass(0)
		w.phase("a.sock", state.Backoff) // at once
		w.pass(50 * time.Minute)
		if n := w.node.Calls(at("a.sock"), simfs.OpDial); n != 1 {
			w.Errorf("%d dials hang, want 1", n)
		}
		if got := w.log.lines("[WARN]"); len(got) != 1 {
			w.Errorf("O1: %q", got)
		}
		if n := w.used(); n != 3 { // the connection of b, and what the dial may have opened
			w.Errorf("%d descriptors are counted", n)
		}
		w.node.ClearFaults() // from now on it is well; the one that hangs goes on
		w.pass(15 * time.Minute)
		w.phase("a.sock", state.Registered)
		if r := a.Record(); r.Conns != 1 || r.Dials != 2 || r.GetInfos != 1 {
			w.Errorf("the plugin sees %+v", r)
		}
		if n := w.used(); n != 2 {
			w.Errorf("%d descriptors are counted", n)
		}
	})
}

// R6, R7: the path is left alone whatever comes there.
func TestHungDialReplaced(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.hangs("a.sock", time.Minute)
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.pass(2 * time.Second)
		for range 5 {
			w.remove("a.sock")
			w.bind("a.sock", simfs.Plugin{})
			w.pass(2 * time.Second)
		}
		if n := w.node.Calls(at("a.sock"), simfs.OpDial); n != 1 {
			w.Errorf("%d dials hang, want 1", n)
		}
		w.node.ClearFaults()
		w.pass(2 * time.Minute)
		w.phase("a.sock", state.Registered)
	})
}

// A dial that is cancelled and obeys late is waited for: the next one does not fail for it.
func TestDialEndsLate(t *testing.T) {
	bubble(t, Config{Dial: func(ctx context.Context, _ scanner.Entry) (net.Conn, error) {
		<-ctx.Done()
		time.Sleep(dialGrace / 2) //nolint:forbidigo // the bubble's time
		return nil, ctx.Err()
	}}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.remove("a.sock")
		w.bind("a.sock", simfs.Plugin{})
		w.pass(DefaultDialTimeout + time.Second)
		if got, want := w.socket("a.sock").LastError, "dial: no connection within 10s: context deadline exceeded"; got != want {
			w.Errorf("the error is %q, want %q", got, want)
		}
	})
}

// S1: a dial is a call of a filesystem, and waited for one second, whether it was given up before or not.
func TestStuckDial(t *testing.T) {
	for _, before := range []time.Duration{time.Second, time.Minute} {
		for _, timeout := range []time.Duration{0, 500 * time.Millisecond, dialGrace / 2} {
			bubble(t, Config{StopTimeout: timeout}, func(w *world) {
				w.hangs("a b.sock", time.Hour)
				p := w.bind("a b.sock", simfs.Plugin{})
				w.run()
				w.pass(before)
				want, stuck := time.Second, `dial of "/plugins/a b.sock"`
				if timeout > 0 {
					want = timeout
				}
				if timeout == dialGrace/2 && before == time.Second {
					stuck = `dial and GetInfo of "/plugins/a b.sock"` // not given up yet
				}
				asked := time.Now()
				w.stopTimed(want, stuck)
				if took := time.Since(asked); took != want {
					w.Errorf("Run returned after %v", took)
				}
				w.pass(time.Hour) // the dial succeeds now
				if n := p.Record().Conns; n != 0 || w.used() != 0 {
					w.Errorf("S3: %d connections are open, %d descriptors counted", n, w.used())
				}
				w.calls()
			})
		}
	}
}

// S1: a dial that returns within the second is not listed, and Run returns then.
func TestSlowDialOnStop(t *testing.T) {
	for _, before := range []time.Duration{time.Second, 14 * time.Second} {
		bubble(t, Config{}, func(w *world) {
			w.hangs("a.sock", before+700*time.Millisecond)
			p := w.bind("a.sock", simfs.Plugin{})
			w.run()
			w.pass(before)
			asked := time.Now()
			w.stopTimed(time.Second)
			if took := time.Since(asked); took != 700*time.Millisecond {
				w.Errorf("Run returned after %v", took)
			}
			if n := p.Record().Conns; n != 0 {
				w.Errorf("S3: %d connections are open", n)
			}
		})
	}
}

// U4: there is a bound for threads that hang.
func TestManyHungDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d dials
		free := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for i := range maxHungDials {
			go func() {
				if _, err := d.do(ctx, fmt.Sprint(i), func() (dialled, error) { <-free; return dialled{}, nil }); !errors.Is(err, errHung) {
					t.Errorf("it gave %v", err)
				}
			}()
		}
		<-ctx.Done()
		time.Sleep(dialGrace) //nolint:forbidigo // the bubble's time
		synctest.Wait()
		well := func() (dialled, error) { return dialled{}, nil }
		if _, err := d.do(t.Context(), "more", well); !errors.Is(err, errManyHung) {
			t.Errorf("one more gave %v", err)
		}
		if n := len(d.stuck()); n != maxHungDials || n != d.count() {
			t.Errorf("%d hang", n)
		}
		close(free)
		synctest.Wait()
		if _, err := d.do(t.Context(), "0", well); err != nil || d.count() != 0 || len(d.byPath) != 0 {
			t.Errorf("afterwards: %v, %d, %d", err, d.count(), len(d.byPath))
		}
	})
}

// A Dialer that ends its goroutine has failed.
func TestDialerExits(t *testing.T) {
	bubble(t, Config{Dial: func(context.Context, scanner.Entry) (net.Conn, error) { runtime.Goexit(); return nil, nil }}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.pass(time.Second)
		if got := w.socket("a.sock").LastError; !strings.HasSuffix(got, errDialGoexit.Error()) || w.used() != 0 {
			w.Errorf("the error is %q, %d descriptors are counted", got, w.used())
		}
	})
}

// L1, U4: what keeps us from dialling a registered plugin says nothing of it, be it a lack of descriptors or a call that does not return. It stays registered.
func TestCannotDialRegistered(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(w *world) (end func())
		want  string
	}{
		"no file is left": {func(w *world) func() {
			f := w.m.files
			f.limit(64, 1)
			f.give(-f.most) // others have them
			return func() { f.give(f.most) }
		}, "dial: too many open files: of the 64 that the process may have 32 are kept free from connections: raise its limit (ulimit -n, LimitNOFILE=)"},
		"EMFILE": {func(w *world) func() {
			return w.node.Inject(at("a.sock"), simfs.OpDial, simfs.Fault{Err: syscall.EMFILE})
		}, "dial: connect: too many open files"},
		"hung": {func(w *world) func() {
			free := make(chan struct{})
			clear := w.node.Inject(at("a.sock"), simfs.OpDial, simfs.Fault{Hook: func() { <-free }})
			return func() { clear(); close(free) }
		}, "dial: " + errHung.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, simfs.Config{}, Config{}, simfs.Plugin{Name: "a", PID: 10, Start: 100, MaxIdle: 5 * time.Second}, func(w *world, _ *simfs.Server) {
				end := test.begin(w)
				w.pass(time.Hour)
				w.phase("a.sock", state.Registered)
				if got := w.socket("a.sock").LastError; got != test.want {
					w.Errorf("View shows %q, want %q", got, test.want)
				}
				if got := len(w.log.lines("[WARN]")); got > 2 {
					w.Errorf("O1: %d warnings in an hour", got)
				}
				end()
				w.pass(10 * time.Minute)
				w.phase("a.sock", state.Registered)
				if got := w.socket("a.sock").LastError; got != "" {
					w.Errorf("View shows %q", got)
				}
				w.calls()
			})
		})
	}
}
