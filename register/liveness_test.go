package register

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// L1, L2: a plugin that dies and leaves its socket is unreachable at once, and deregistered when the grace is over.
func TestCrash(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{UID: 1, PID: 2, Start: 3})
		w.run()
		w.told(p, yes)
		w.pass(time.Hour)
		p.Crash()
		w.pass(0)
		w.phase("a.sock", state.Unreachable)
		w.pass(29 * time.Second)
		w.phase("a.sock", state.Unreachable)
		w.calls("Validate a", "Register a")
		w.pass(2 * time.Second)
		w.phase("a.sock", state.Backoff)
		w.calls("Deregister a")
		if lines := w.log.lines("[WARN]"); len(lines) != 1 || !strings.HasPrefix(lines[0], "manager: unreachable, it does not answer any more: path=/plugins/a.sock ") {
			t.Errorf("warned %q", lines)
		}
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

// L1, R6: a plugin that is killed and started again is replaced without waiting for a scan of the usual pace.
func TestRestart(t *testing.T) {
	bubble(t, slow, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{PID: 2, Start: 3})
		w.run()
		w.pass(10 * time.Second)
		p.Crash()
		w.remove("a.sock")
		next := w.bind("a.sock", simfs.Plugin{PID: 3, Start: 4})
		w.pass(0)
		w.phase("a.sock", state.Registered)
		w.calls("Validate a", "Register a", "Deregister a", "Validate a", "Register a")
		w.told(next, yes)
	})
}

// L1: a plugin that goes and takes its socket along is deregistered without waiting for a scan of the usual pace.
func TestLeaves(t *testing.T) {
	bubble(t, slow, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{PID: 2, Start: 3})
		w.run()
		w.pass(10 * time.Second)
		w.remove("a.sock")
		w.must(p.Stop(w.Context()))
		w.pass(50 * time.Millisecond)
		w.phase("a.sock", "")
		w.calls("Validate a", "Register a", "Deregister a")
		if lines := w.log.lines("[WARN]"); len(lines) != 0 {
			t.Errorf("warned %q", lines)
		}
	})
}

// I4: a change of metadata changes nothing but what View shows.
func TestChmod(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.pass(time.Second)
		before := w.socket("a.sock").Identity
		w.must(w.node.Chmod(at("a.sock"), 0o600))
		w.pass(20 * time.Second)
		w.phase("a.sock", state.Registered)
		w.calls("Validate a", "Register a")
		w.told(p, yes)
		if r := p.Record(); r.Dials != 1 || before == w.socket("a.sock").Identity {
			t.Errorf("the plugin saw %+v, the identity is %+v", r, w.socket("a.sock").Identity)
		}
	})
}

// L3, N3: an idle plugin sees no traffic, over one connection.
func TestIdle(t *testing.T) {
	bubble(t, slow, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.pass(24 * time.Hour)
		if r := p.Record(); r.Dials != 1 || r.Conns != 1 || r.GetInfos != 1 || len(r.Notices) != 1 {
			t.Errorf("in a day the plugin saw %+v", r)
		}
		w.phase("a.sock", state.Registered)
	})
}

// R18: observing asks and validates, and does no more.
func TestObserve(t *testing.T) {
	bubble(t, Config{Observe: true}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		bad := w.bind("b.sock", simfs.Plugin{Type: "Unknown"})
		w.run()
		w.phase("a.sock", state.Observed)
		w.phase("b.sock", state.Rejected)
		w.pass(time.Minute)
		p.Crash()
		w.pass(time.Minute)
		w.phase("a.sock", state.Unreachable)
		w.remove("a.sock")
		w.pass(time.Second)
		w.phase("a.sock", "")
		w.calls("Validate a")
		w.told(p)
		w.told(bad)
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

// exclusive is a taker of one instance of a name.
type exclusive struct{ *taker }

func (exclusive) Exclusive() bool { return true }

// N2: of two sockets with one name an exclusive handler has the one found last; the other stands by, and follows when it leaves.
func TestExclusiveName(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		h := exclusive{newTaker()}
		w.must(w.m.AddHandler("One", h))
		first := w.bind("a.sock", simfs.Plugin{Type: "One", Name: "n"})
		w.run()
		w.pass(time.Second)
		second := w.bind("b.sock", simfs.Plugin{Type: "One", Name: "n"})
		w.pass(time.Second)
		w.phase("a.sock", state.Standby)
		w.phase("b.sock", state.Registered)
		if got := w.socket("a.sock").Holder; got != at("b.sock") {
			t.Errorf("the holder is %q", got)
		}
		w.remove("b.sock")
		w.pass(time.Second)
		w.phase("a.sock", state.Registered)
		if got, want := h.take(), []string{"Validate n", "Register n", "Deregister n", "Validate n", "Register n", "Deregister n", "Validate n", "Register n"}; !slices.Equal(got, want) {
			t.Errorf("the calls were %q", got)
		}
		w.told(second, yes)
		if r := first.Record(); r.Dials != 1 {
			t.Errorf("the first one saw %+v", r)
		}
		w.takers = append(w.takers, h.taker)
	})
}

// polite is a plugin on a server of the test's own, which counts what it is asked and told.
type polite struct {
	registerapi.UnimplementedRegistrationServer
	asked, told atomic.Int64
}

func (p *polite) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	p.asked.Add(1)
	return &registerapi.PluginInfo{Type: testType, Name: "a"}, nil
}

func (p *polite) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	p.told.Add(1)
	return &registerapi.RegistrationStatusResponse{}, nil
}

// L1, L2: a server that closes every connection as soon as it is idle, by GOAWAY, is alive: it stays registered, and is dialled ever more seldom, down to once a minute.
func TestGoAwayStorm(t *testing.T) {
	var dial Dialer
	var dials atomic.Int64
	cfg := Config{Roots: slow.Roots, Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
		dials.Add(1)
		return dial(ctx, e)
	}}
	bubble(t, cfg, func(w *world) {
		p := &polite{}
		inner, end := served(p, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 10 * time.Millisecond}))
		defer end()
		dial = inner
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.pass(time.Hour)
		w.phase("a.sock", state.Registered)
		w.calls("Validate a", "Register a")
		if n := dials.Load(); n < 55 || n > 70 || p.asked.Load() != n || p.told.Load() != n {
			t.Errorf("%d dials, asked %d times, told %d times", n, p.asked.Load(), p.told.Load())
		}
		if lines := w.log.lines("[WARN]"); len(lines) != 0 {
			t.Errorf("warned %q", lines)
		}
		w.must(w.stop())
	})
}

// mortal is a connection that its plugin drops after a while, without a word.
type mortal struct {
	net.Conn
	peer state.Peer
}

func (m *mortal) Peer() (uid, pid int, start uint64) { return m.peer.UID, m.peer.PID, m.peer.Start }

// L1: a process that drops its connections is the same instance as long as it is the same process; the handler sees nothing.
func TestDroppedConnections(t *testing.T) {
	for name, test := range map[string]struct {
		peer  state.Peer
		calls bool
	}{
		"process known": {peer: state.Peer{UID: 1, PID: 2, Start: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			cfg := Config{Roots: slow.Roots, Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
				conn, err := w.dial(ctx, e)
				if err != nil {
					return nil, err
				}
				time.AfterFunc(10*time.Millisecond, func() { _ = conn.Close() })
				return &mortal{conn, test.peer}, nil
			}}
			bubble(t, cfg, func(in *world) {
				w = in
				w.bind("a.sock", simfs.Plugin{})
				w.run()
				w.pass(time.Hour)
				if n := len(w.dialled()); n < 55 || n > 70 {
					t.Errorf("%d dials", n)
				}
				if calls := w.h.take(); (len(calls) > 2) != test.calls {
					t.Errorf("the calls were %q", calls)
				}
				w.pass(time.Second)
			})
		})
	}
}
