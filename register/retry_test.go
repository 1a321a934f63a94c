package register

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// R10: each step has its limit, and what is shown names it.
func TestTimeouts(t *testing.T) {
	short := Config{DialTimeout: 3 * time.Second, InfoTimeout: 4 * time.Second, NotifyTimeout: 2 * time.Second}
	for _, c := range []struct {
		name string
		cfg  Config
		hang func(w *world)
		want time.Duration
		err  string
	}{
		{"dial", Config{}, hangDial, 10 * time.Second, "dial: no connection within 10s: context deadline exceeded"},
		{"dial, configured", short, hangDial, 3 * time.Second, "dial: no connection within 3s: context deadline exceeded"},
		{"GetInfo", Config{}, hangInfo, 10 * time.Second, "GetInfo: no answer within 10s"},
		{"GetInfo, configured", short, hangInfo, 4 * time.Second, "GetInfo: no answer within 4s"},
		{"silent", Config{}, hangSilent, 10 * time.Second, "GetInfo: no answer within 10s"},
		{"Notify", Config{}, hangNotify, 5 * time.Second, "NotifyRegistrationStatus: no answer within 5s"},
		{"Notify, configured", short, hangNotify, 2 * time.Second, "NotifyRegistrationStatus: no answer within 2s"},
		{"handler", Config{}, hangHandler, 3 * time.Minute, "register: context deadline exceeded"},
		{"handler, configured", Config{HandlerTimeout: time.Second}, hangHandler, time.Second, "register: context deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Roots = slow.Roots
			bubble(t, c.cfg, func(w *world) {
				c.hang(w)
				w.run()
				w.pass(c.want - time.Nanosecond)
				if got := w.socket("a.sock").LastError; got != "" {
					w.Errorf("just before %v the error is %q", c.want, got)
				}
				w.pass(time.Nanosecond)
				if got := w.socket("a.sock").LastError; got != c.err {
					w.Errorf("at %v the error is %q, want %q", c.want, got, c.err)
				}
			})
		})
	}
}

func hangDial(w *world) {
	w.node.Inject(at("a.sock"), simfs.OpDial, simfs.Fault{Hang: true})
	w.bind("a.sock", simfs.Plugin{})
}

func hangInfo(w *world)   { w.bind("a.sock", simfs.Plugin{GetInfo: simfs.Call{Delay: time.Hour}}) }
func hangNotify(w *world) { w.bind("a.sock", simfs.Plugin{Notify: simfs.Call{Delay: time.Hour}}) }
func hangSilent(w *world) { w.bind("a.sock", simfs.Plugin{Silent: true}) }
func hangHandler(w *world) {
	w.h.takes("Register", time.Hour)
	w.bind("a.sock", simfs.Plugin{})
}

func TestHandlerWithoutTimeout(t *testing.T) {
	cfg := slow
	cfg.HandlerTimeout = -1
	bubble(t, cfg, func(w *world) {
		w.h.on("Register", func(ctx context.Context, _ state.Registration) error {
			if d, ok := ctx.Deadline(); ok {
				w.Errorf("the context has the deadline %v", d)
			}
			w.sleep(time.Hour)
			return nil
		})
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.pass(time.Hour)
		w.told(p, yes)
	})
}

// R12: the delays as the socket sees them: 500 ms, doubled up to 2 min, each within 20 %, without an end.
func TestBackoff(t *testing.T) {
	bubble(t, slow, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{RefuseDials: -1})
		w.run()
		w.pass(2 * time.Hour)
		dials := w.dialled()
		if early := dials[1] - dials[0]; early != 50*time.Millisecond {
			w.Errorf("R10: a new instance that refuses is dialled again after %v, want 50ms", early)
		}
		dials = dials[1:]
		if len(dials) < 60 {
			w.Fatalf("%d dials in two hours", len(dials))
		}
		jittered := false
		want := 500 * time.Millisecond
		for i, at := range dials[1:] {
			got := at - dials[i]
			least, most := want*8/10, min(want*12/10, 2*time.Minute)
			if got < least || got > most {
				w.Errorf("R12: delay %d is %v, want %v to %v", i, got, least, most)
			}
			jittered = jittered || got != want
			want = min(2*want, 2*time.Minute)
		}
		if !jittered {
			w.Error("R12: there is no jitter")
		}
		if got := p.Record().Dials - 1; got != len(dials) {
			w.Errorf("R17: %d connects for %d tries", got, len(dials))
		}
		if v := w.socket("a.sock"); v.Phase != state.Backoff || v.Tries != len(dials) || v.LastError != "dial: connect: connection refused" {
			w.Errorf("View shows %+v", v)
		}
		// Another instance starts afresh.
		w.remove("a.sock")
		w.bind("a.sock", simfs.Plugin{RefuseDials: -1})
		w.pass(time.Minute)
		w.dialled()
		if v := w.socket("a.sock"); v.Tries > 9 {
			w.Errorf("R12: the new instance has %d tries", v.Tries)
		}
		// And so does whoever is retried by hand, once.
		w.must(w.m.Retry(at("a.sock")))
		w.pass(0)
		if got := w.dialled(); len(got) != 1 {
			w.Errorf("Retry dialled %d times", len(got))
		}
	})
}

// R12: a socket that is touched again and again resets its backoff at most once in 5 s.
func TestTouchedInALoop(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{RefuseDials: -1})
		w.run()
		for range 600 {
			w.must(w.node.Chtimes(at("a.sock"), time.Time{}, time.Now()))
			w.pass(100 * time.Millisecond)
		}
		// A minute holds 12 resets, and between two of them there is time for 5 tries at most.
		if got := len(w.dialled()); got > 65 {
			w.Errorf("%d dials in a minute", got)
		}
	})
}

// R13: what is not a registration socket is asked again on Retry, when it changes, and after ten minutes; one line says so.
func TestNotARegistrationSocket(t *testing.T) {
	bubble(t, slow, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{GetInfo: simfs.Call{Code: codes.Unimplemented}})
		w.run()
		w.phase("a.sock", state.NotPlugin)
		if got, want := w.socket("a.sock").LastError, "GetInfo: the socket does not offer it (simulated failure)"; got != want {
			w.Errorf("View shows %q, want %q", got, want)
		}
		w.pass(10*time.Minute - time.Nanosecond)
		if got := len(w.dialled()); got != 1 {
			w.Errorf("%d dials in ten minutes", got)
		}
		w.pass(time.Nanosecond)
		if got := len(w.dialled()); got != 1 {
			w.Errorf("%d dials after ten minutes", got)
		}
		w.told(p)
		w.must(w.m.Retry(at("a.sock")))
		w.pass(0)
		if got := len(w.dialled()); got != 1 {
			w.Errorf("%d dials on Retry", got)
		}
		if info, warned := w.log.lines("[INFO]"), w.log.lines("[WARN]"); len(info) != 1 || len(warned) != 0 {
			w.Errorf("O1: lines %q and %q", info, warned)
		}
		w.must(w.node.Chmod(at("a.sock"), 0o600))
		p.Change(simfs.Plugin{Type: testType, Name: "a"})
		w.pass(time.Minute)
		w.told(p, yes)
	})
}

func TestPermanent(t *testing.T) {
	for _, verb := range []string{"Validate", "Register"} {
		t.Run(verb, func(t *testing.T) {
			bubble(t, slow, func(w *world) {
				refused := no(strings.ToLower(verb) + ": never")
				w.h.fails(verb, Permanent(errors.New("never")))
				p := w.bind("a.sock", simfs.Plugin{})
				w.run()
				w.phase("a.sock", state.Rejected)
				w.pass(10*time.Minute - time.Nanosecond)
				w.told(p, refused)
				w.pass(time.Nanosecond)
				w.told(p, refused, refused)
				w.must(w.m.Retry(""))
				w.pass(0)
				w.told(p, refused, refused, refused)
				w.remove("a.sock")
				q := w.bind("a.sock", simfs.Plugin{})
				w.pass(time.Minute)
				w.told(q, refused)
				w.h.on(verb, nil)
				w.must(w.m.Retry(at("a.sock")))
				w.pass(0)
				w.told(q, refused, yes)
			})
		})
	}
}

func TestPermanentKeepsTheError(t *testing.T) {
	cause := errors.New("no")
	err := Permanent(cause)
	if !errors.Is(err, cause) || err.Error() != "no" {
		t.Errorf("Permanent made %v", err)
	}
	if err := Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) is %v", err)
	}
}

func TestRetry(t *testing.T) {
	bubble(t, slow, func(w *world) {
		err := w.m.Retry(at("a.sock"))
		if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrUnknownPath) || e.Path != at("a.sock") {
			w.Errorf("Retry of an unknown path is %v", err)
		}
		a := w.bind("a.sock", simfs.Plugin{RefuseDials: 12})
		b := w.bind("b.sock", simfs.Plugin{RefuseDials: 12})
		w.run()
		w.pass(5 * time.Minute)
		before := a.Record().Dials
		w.must(w.m.Retry(at("a.sock")))
		w.pass(0)
		if got := a.Record().Dials - before; got != 1 {
			w.Errorf("Retry dialled %d times", got)
		}
		if got := b.Record().Dials - before; got > 0 {
			w.Errorf("Retry of another path dialled %d times", got)
		}
		// All: and look at once.
		c := w.bind("c.sock", simfs.Plugin{})
		w.must(w.m.Retry(""))
		w.pass(0)
		if a, b := a.Record().Dials-before, b.Record().Dials-before; a != 2 || b != 1 {
			w.Errorf("Retry of all dialled to %d and %d", a, b)
		}
		w.told(c, yes)
	})
}

// Retry of all during a scan, which may have passed what is new already, has another scan follow at once.
func TestRetryDuringScan(t *testing.T) {
	bubble(t, slow, func(w *world) {
		w.must(w.node.Mkdir(at("z"), 0o755))
		free := w.node.Inject(at("z"), simfs.OpOpen, simfs.Fault{Hang: true})
		w.run()
		p := w.bind("a.sock", simfs.Plugin{})
		w.must(w.m.Retry(""))
		w.pass(time.Second)
		free()
		w.pass(0)
		w.told(p, yes)
	})
}

// R17: a server that hangs up at once, or says nothing but GOAWAY, costs one dial for each try.
func TestServersThatHangUp(t *testing.T) {
	goaway := []byte{
		0, 0, 0, 4, 0, 0, 0, 0, 0, // SETTINGS
		0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // GOAWAY, last stream 0
	}
	for name, serve := range map[string]func(net.Conn){
		"at once": func(c net.Conn) { _ = c.Close() },
		"after the preface": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 24))
			_ = c.Close()
		},
		"garbage": func(c net.Conn) {
			go func() { _, _ = c.Write([]byte("SSH-2.0-x\r\n\r\n")) }()
			for {
				if _, err := c.Read(make([]byte, 1024)); err != nil {
					return
				}
			}
		},
		"GOAWAY": func(c net.Conn) {
			go func() { _, _ = c.Write(goaway) }()
			for {
				if _, err := c.Read(make([]byte, 1024)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dials := 0
			cfg := Config{Dial: func(context.Context, scanner.Entry) (net.Conn, error) {
				dials++
				client, server := net.Pipe()
				go serve(server)
				return client, nil
			}}
			bubble(t, cfg, func(w *world) {
				w.must(w.node.Mknod(at("a.sock"), fs.ModeSocket|0o755))
				w.run()
				w.pass(30 * time.Second)
				v := w.socket("a.sock")
				if v.Tries < 1 || dials != v.Tries && dials != v.Tries+1 { // one may be under way
					w.Errorf("%d dials for %d tries", dials, v.Tries)
				}
				if !strings.HasPrefix(v.LastError, "GetInfo: ") || v.Phase != state.Backoff && v.Phase != state.Registering {
					w.Errorf("View shows phase %s and %q", v.Phase, v.LastError)
				}
				w.Log(v.LastError)
			})
		})
	}
}

// A connection is closed whatever becomes of it, even if gRPC never came to use it.
func TestUnusedConnectionIsClosed(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		c := client{w.m.cfg, w.m.files, w.m.dials}
		conn, err := c.open(w.Context(), scanner.Entry{Path: at("a.sock")})
		w.must(err)
		w.must(conn.Close())
		w.pass(0)
		if n := p.Record().Conns; n != 0 {
			w.Errorf("%d connections are open", n)
		}
	})
}

func TestOnce(t *testing.T) {
	client, server := net.Pipe()
	defer func() { _ = errors.Join(client.Close(), server.Close()) }()
	conn := &plain{Conn: client}
	dial := once(conn)
	if c, err := dial(t.Context(), ""); c != conn || err != nil {
		t.Errorf("the first dial is %v, %v", c, err)
	}
	if c, err := dial(t.Context(), ""); c != nil || err == nil {
		t.Errorf("the second dial is %v, %v", c, err)
	}
}
