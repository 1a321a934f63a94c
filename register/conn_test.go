package register

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

func (s *shell) expect(what string, got []state.Input, want ...state.Input) {
	s.Helper()
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		s.Errorf("%s gave %+v, want %+v", what, got, want)
	}
}

// L1: the end of a connection is told once, and how it ended.
func TestDisconnected(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(w *world, p *simfs.Server)
		goAway bool
	}{
		"crash": {end: func(_ *world, p *simfs.Server) { p.Crash() }},
		"stop":  {end: func(w *world, p *simfs.Server) { w.must(p.Stop(w.Context())) }, goAway: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				onShell(w, func(s *shell) {
					p := w.bind("a.sock", simfs.Plugin{})
					if asked := s.ask(1, "a.sock"); !asked.Connected || asked.Info.Name != "a" {
						t.Fatalf("asked: %+v", asked)
					}
					s.expect("an idle hour", s.after(time.Hour))
					test.end(w, p)
					s.expect(name, s.inputs(), state.Disconnected{Conn: 1, GoAway: test.goAway})
					s.expect("a later hour", s.after(time.Hour))
					s.expect("closing", s.do(state.Close{Conn: 1}))
				})
			})
		})
	}
}

func (s *shell) after(d time.Duration) []state.Input {
	s.pass(d)
	return s.inputs()
}

// L1: our own Close is no end by itself.
func TestOwnCloseIsNotTold(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			p := w.bind("a.sock", simfs.Plugin{})
			s.ask(1, "a.sock")
			s.expect("closing", s.do(state.Close{Conn: 1}))
			p.Crash()
			s.expect("a crash after that", s.after(time.Minute))
		})
	})
}

// L1: an end that was told when our Close was under way does not reach the core.
func TestEndCrossesClose(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			p := w.bind("a.sock", simfs.Plugin{})
			s.ask(1, "a.sock")
			p.Crash()
			synctest.Wait()
			mail := s.m.takeMail()
			if !slices.Equal(mail, []any{state.Disconnected{Conn: 1}}) {
				t.Errorf("the mail is %+v", mail)
			}
			s.l.carryOut(state.Close{Conn: 1})
			s.l.take(mail[0]) // a core that is given it would panic: the loop has no timer
			if s.l.conn(1) != nil {
				t.Error("the connection is still there")
			}
		})
	})
}

// L1: a connection that ends before its Asked is told right after it.
func TestEndsBeforeAsked(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		_, conn, err := w.m.client.ask(w.Context(), scanner.Entry{Path: at("a.sock")})
		w.must(err)
		p.Crash()
		synctest.Wait()
		onShell(w, func(s *shell) {
			asked := state.Asked{ID: 7, Connected: true}
			w.m.bring(done{7, asked}, conn)
			if mail := w.m.takeMail(); !reflect.DeepEqual(mail, []any{done{7, asked}, state.Disconnected{Conn: 7}}) {
				t.Errorf("the mail is %+v", mail)
			}
			s.expect("later", s.after(time.Minute))
		})
	})
}

// L1: a call that fails because its connection ends is told after the end. One over a connection that was closed fails.
func TestEndIsToldBeforeItsFailures(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			p := w.bind("a.sock", simfs.Plugin{Notify: simfs.Call{Delay: time.Second}})
			s.ask(1, "a.sock")
			notify := state.Notify{Op: state.Op{ID: 2, Path: at("a.sock")}, Conn: 1, Registered: true}
			s.expect("telling", s.do(notify))
			p.Crash()
			in := s.inputs()
			if len(in) != 2 || in[0] != (state.Disconnected{Conn: 1}) || in[1].(state.Notified).Err == nil {
				t.Errorf("the crash gave %+v", in)
			}
			if err := in[1].(state.Notified).Err; err.Error() != "NotifyRegistrationStatus: the plugin closed the connection" {
				t.Errorf("the error is %v", err)
			}
			s.l.carryOut(state.Close{Conn: 1})
			if in := s.do(notify); len(in) != 1 || in[0].(state.Notified).Err == nil {
				t.Errorf("telling over a closed connection gave %+v", in)
			}
			if dials := w.dialled(); len(dials) != 1 {
				t.Errorf("%d dials", len(dials))
			}
		})
	})
}

// L1, S3: a server that hangs up at every moment there is never costs a second dial, is told at most once, and leaves nothing open.
func TestHangsUpAtAnyMoment(t *testing.T) {
	for bytes := range 120 {
		var w *world
		cfg := Config{Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
			conn, err := w.dial(ctx, e)
			if err != nil {
				return nil, err
			}
			return &shortConn{Conn: conn, left: bytes}, nil
		}}
		bubble(t, cfg, func(in *world) {
			w = in
			onShell(w, func(s *shell) {
				w.bind("a.sock", simfs.Plugin{})
				asked := s.ask(1, "a.sock")
				s.l.carryOut(state.Notify{Op: state.Op{ID: 2, Path: at("a.sock")}, Conn: 1, Registered: true})
				told := 0
				for _, in := range s.after(time.Minute) {
					if in == (state.Disconnected{Conn: 1}) {
						told++
					}
				}
				if want := asked.Connected && told != 1; want && bytes < 100 || told > 1 {
					t.Errorf("after %d bytes: %d ends of %+v", bytes, told, asked)
				}
				if dials := w.dialled(); len(dials) != 1 {
					t.Errorf("after %d bytes: %d dials", bytes, len(dials))
				}
			})
		})
	}
}

// shortConn ends after so many bytes were read.
type shortConn struct {
	net.Conn
	left int
}

func (c *shortConn) Read(b []byte) (int, error) {
	if c.left == 0 {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// flood is a connection that never stops sending.
type flood struct{ net.Conn }

func (flood) Read(b []byte) (int, error) { return len(b), nil }

// X3: what a plugin sends without being asked is bounded; the largest answer is not too much, and neither is small talk for a day.
func TestFlood(t *testing.T) {
	p := &plain{Conn: flood{}, release: func() {}}
	b, n := make([]byte, 1<<10), 0
	for {
		m, err := p.Read(b)
		if err != nil {
			if !errors.Is(err, errFlood) || !strings.Contains(p.ending(), "far more than it is asked for") {
				t.Errorf("it ends with %v: %s", err, p.ending())
			}
			break
		}
		if n += m; n > 1<<24 {
			t.Fatal("it does not end")
		}
	}
	if n < maxAnswer+maxHeaders {
		t.Errorf("%d bytes were too much", n)
	}
	if over, goAway := p.watch(nil); !over || goAway {
		t.Errorf("over: %v, go away: %v", over, goAway)
	}

	f, now := inflow{}, time.Unix(0, 0)
	for range 24 * 60 * 60 {
		if now = now.Add(time.Second); !f.take(8<<10, now) {
			t.Fatal("small talk is too much")
		}
	}
	if now = now.Add(time.Hour); !f.take(maxAnswer, now) {
		t.Error("an answer is too much")
	}
}
