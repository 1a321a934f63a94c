package register

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// deafConn is a connection whose peer stops reading: from then on a Write ends with Close only.
type deafConn struct {
	net.Conn
	mu     sync.Mutex
	deaf   bool
	closed chan struct{}
	once   sync.Once
}

func (c *deafConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	deaf := c.deaf
	c.mu.Unlock()
	if deaf {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// S1: a plugin that does not read what it is sent holds up neither the others nor the end.
func TestDeafPlugin(t *testing.T) {
	var conns []*deafConn
	var w *world
	cfg := Config{Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
		conn, err := w.dial(ctx, e)
		if err != nil {
			return nil, err
		}
		c := &deafConn{Conn: conn, closed: make(chan struct{})}
		conns = append(conns, c)
		return c, nil
	}}
	deafen := func() {
		for _, c := range conns {
			c.mu.Lock()
			c.deaf = true
			c.mu.Unlock()
		}
		conns = nil
	}
	bubble(t, cfg, func(in *world) {
		w = in
		w.bind("deaf.sock", simfs.Plugin{})
		w.run()
		deafen()
		w.remove("deaf.sock")
		w.pass(scanner.DefaultInterval)
		w.bind("good.sock", simfs.Plugin{})
		w.pass(scanner.DefaultInterval)
		w.phase("good.sock", state.Registered)
		deafen()
		before := w.now()
		w.must(w.stop())
		if took := w.now() - before; took > time.Second {
			w.Errorf("Run took %v to end", took)
		}
	})
}

// R5: what a handler does with the versions it is given changes nothing for anybody else.
func TestVersionsAreACopy(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		for _, verb := range []string{"Validate", "Register"} {
			w.h.on(verb, func(_ context.Context, r state.Registration) error {
				if !slices.Equal(r.Versions, []string{"2", "1"}) {
					t.Errorf("%s is given the versions %q", verb, r.Versions)
				}
				slices.Sort(r.Versions)
				return nil
			})
		}
		w.bind("a.sock", simfs.Plugin{Versions: []string{"2", "1"}})
		w.run()
		if got := w.socket("a.sock").Plugin.Versions; !slices.Equal(got, []string{"2", "1"}) {
			t.Errorf("View shows the versions %q", got)
		}
		w.h.mu.Lock()
		w.h.held = map[string]state.Registration{} // the taker compares with what it changed
		w.h.mu.Unlock()
		w.takers = nil
	})
}

// S1, S2: a Deregister that could not begin before StopTimeout is listed like one that did not end. (Those that run give their places back after 250 ms.)
func TestDeregisterNotBegun(t *testing.T) {
	bubble(t, Config{DeregisterOnStop: true, StopTimeout: 200 * time.Millisecond}, func(w *world) {
		for i := range 20 {
			w.bind(fmt.Sprintf("%02d.sock", i), simfs.Plugin{})
		}
		w.h.on("Deregister", func(context.Context, state.Registration) error {
			w.sleep(1500 * time.Millisecond)
			return nil
		})
		w.run()
		err := w.stop()
		stuck, ok := errors.AsType[*StuckError](err)
		if !ok || len(stuck.Calls) != 20 {
			t.Fatalf("Run returned %v", err)
		}
		if n := strings.Count(err.Error(), "which has not begun"); n != 4 {
			t.Errorf("%d calls have not begun, want 4: %v", n, err)
		}
		w.pass(time.Minute)
	})
}

// S1: no handler call but Deregister begins when the context has ended, not even one that was decided before.
func TestNoCallAfterTheEnd(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		l := &loop{Manager: w.m, ctx: ctx, running: map[state.EffectID]*work{}}
		r := state.Registration{Entry: scanner.Entry{Path: at("a.sock")}, Type: testType, Name: "a"}
		l.carryOut(state.Validate{Op: state.Op{ID: 1}, Registration: r})
		l.carryOut(state.Register{Op: state.Op{ID: 2}, Registration: r})
		w.pass(0)
		w.calls()
		for _, mail := range w.m.takeMail() {
			if d, ok := mail.(done); ok && d.input.(state.Called).Err.Error() != context.Canceled.Error() {
				t.Errorf("the result is %+v", d.input)
			}
		}
		for _, work := range l.running {
			work.cancel()
		}
	})
}

// S3: a connection that comes after Run has returned is closed.
func TestConnectionAfterTheEnd(t *testing.T) {
	var w *world
	var gate chan struct{}
	cfg := Config{StopTimeout: time.Second, Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
		<-gate
		return w.dial(context.WithoutCancel(ctx), e)
	}}
	bubble(t, cfg, func(in *world) {
		w = in
		gate = make(chan struct{})
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		if _, ok := errors.AsType[*StuckError](w.stop()); !ok {
			t.Error("a dialer that does not obey its context is not listed")
		}
		close(gate)
		w.pass(time.Minute)
		if r := p.Record(); r.Dials != 1 || r.Conns != 0 {
			t.Errorf("the plugin saw %+v", r)
		}
	})
}

// O2: a detail that cannot be marshalled does not take the View with it.
func TestUnmarshalableDetail(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.h.last(state.Report{Health: state.HealthServing, Message: "fine", Detail: make(chan int)})
		w.pass(0)
		if r := w.socket("a.sock").Report; r == nil || r.Detail != nil || !strings.Contains(r.Message, "fine; its detail cannot be shown: ") {
			t.Errorf("the report is %+v", r)
		}
		w.h.last(state.Report{Health: state.HealthServing, Detail: 3})
		w.pass(0)
		if r := w.socket("a.sock").Report; r == nil || !reflect.DeepEqual(r.Detail, json.RawMessage("3")) {
			t.Errorf("the report is %+v", r)
		}
	})
}

// O2: handlers that are there before Run are in the first View.
func TestTypesBeforeRun(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		if got := w.m.View().Types; !slices.Equal(got, []string{testType}) {
			t.Errorf("the types are %q", got)
		}
	})
}

// O1, X3: what a plugin says of itself does not make a line of any length.
func TestLongWords(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		long := strings.Repeat("n", 100_000)
		w.bind("a.sock", simfs.Plugin{Name: long, Endpoint: "/" + long, Versions: []string{long}})
		w.bind("b.sock", simfs.Plugin{Type: long, Name: long})
		w.run()
		if lines := append(w.log.lines("[INFO]"), w.log.lines("[WARN]")...); len(lines) != 2 {
			t.Errorf("%d lines", len(lines))
		}
		for line := range strings.Lines(w.log.String()) {
			if len(line) > 2500 {
				t.Errorf("a line of %d bytes begins with %.100q", len(line), line)
			}
		}
	})
}

// A sequence of events that is ranged over twice ends.
func TestEventsTwice(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		events := w.m.Events(w.Context())
		for range events {
			break
		}
		for range events {
		}
	})
}

// wordy is a plugin that fails with a text of its choice.
type wordy struct {
	registerapi.UnimplementedRegistrationServer
	text string
}

func (p *wordy) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return nil, status.Error(codes.Internal, p.text)
}

// served returns a Dialer that leads to a server of the test's own, whatever the path. The function it returns ends the server.
func served(p registerapi.RegistrationServer, options ...grpc.ServerOption) (dial Dialer, end func()) {
	l := bufconn.Listen(4 << 10)
	s := grpc.NewServer(append(options, grpc.WaitForHandlers(true))...)
	registerapi.RegisterRegistrationServer(s, p)
	var done sync.WaitGroup
	done.Go(func() { _ = s.Serve(l) })
	return func(ctx context.Context, _ scanner.Entry) (net.Conn, error) { return l.DialContext(ctx) }, func() {
		s.Stop()
		done.Wait()
	}
}

// R16, X3: what a plugin gives as an error is cut where it comes in, however long it is, and kept as one plain line.
func TestWordyError(t *testing.T) {
	for _, size := range []int{10_000, 200_000, 2_000_000} {
		var dial Dialer
		cfg := Config{Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) { return dial(ctx, e) }}
		bubble(t, cfg, func(w *world) {
			inner, end := served(&wordy{text: strings.Repeat("x\n", size/2)})
			defer end()
			dial = inner
			onShell(w, func(s *shell) {
				asked := s.ask(1, "a.sock")
				if asked.Err == nil || asked.Connected || asked.Failure != state.Transient {
					t.Fatalf("asked: %+v", asked)
				}
				if text := asked.Err.Error(); len(text) > 1200 || strings.ContainsAny(text, "\n") {
					t.Errorf("the text has %d bytes: %.100q", len(text), text)
				}
			})
		})
	}
}

// badError is an error whose text cannot be had.
type badError struct{}

func (*badError) Error() string { panic("no\ntext") }

// R9: a handler that panics, ends its goroutine or returns what cannot be read fails, is told why, and is called again. Others see nothing.
func TestHandlerPanics(t *testing.T) {
	for name, test := range map[string]struct {
		face func(context.Context, state.Registration) error
		want string
	}{
		"panic": {func(context.Context, state.Registration) error { panic("oh\nno") }, "panic: oh"},
		"error": {func(context.Context, state.Registration) error { panic(errors.New("oh")) }, "panic: oh"},
		"nil slice": {func(context.Context, state.Registration) error {
			var s []int
			return errors.New(string(rune(s[len(s)])))
		}, "panic: runtime error: index out of range [0] with length 0"},
		"panic(nil)":    {func(context.Context, state.Registration) error { panic(nil) }, "panic: panic called with nil argument"},
		"long":          {func(context.Context, state.Registration) error { panic(strings.Repeat("x", 100_000)) }, "panic: " + strings.Repeat("x", 100)},
		"worse":         {func(context.Context, state.Registration) error { panic(&badError{}) }, "panic: %!v(PANIC=Error method: no"},
		"Goexit":        {func(context.Context, state.Registration) error { runtime.Goexit(); return nil }, errGoexit.Error()},
		"typed nil":     {func(context.Context, state.Registration) error { return (*badError)(nil) }, "panic: no"},
		"long error":    {func(context.Context, state.Registration) error { return errors.New(strings.Repeat("x\n", 100_000)) }, `x\nx\n`},
		"Permanent nil": {func(context.Context, state.Registration) error { return Permanent((*badError)(nil)) }, "panic: no"},
	} {
		for _, verb := range []string{"Validate", "Register", "Deregister"} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				bubble(t, Config{}, func(w *world) {
					w.h.on(verb, func(ctx context.Context, r state.Registration) error {
						if r.Name == "b" {
							return nil
						}
						return test.face(ctx, r)
					})
					p := w.bind("a.sock", simfs.Plugin{})
					w.bind("b.sock", simfs.Plugin{})
					w.run()
					w.phase("b.sock", state.Registered)
					prefix := strings.ToLower(verb) + ": " + test.want
					if verb == "Deregister" {
						events := w.m.Events(w.Context())
						w.remove("a.sock")
						w.pass(time.Second)
						for e := range events {
							if e.Kind == state.EventDeregistered {
								if !strings.HasPrefix(e.Error, prefix) || len(e.Error) > 1100 {
									t.Errorf("the event has the error %q", e.Error)
								}
								break
							}
						}
						w.phase("a.sock", "")
						return
					}
					w.phase("a.sock", state.Backoff)
					if got := w.socket("a.sock").LastError; !strings.HasPrefix(got, prefix) || len(got) > 1100 {
						t.Errorf("View shows %q", got)
					}
					if n := p.Record().Notices; len(n) != 1 || !strings.HasPrefix(n[0].Error, prefix) {
						t.Errorf("the plugin was told %+v", n)
					}
					w.h.on(verb, nil)
					w.pass(time.Second)
					w.phase("a.sock", state.Registered)
				})
			})
		}
	}
}

// R9, O1: the stack of a panic is for who looks for it, and one line.
func TestPanicStack(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.h.on("Validate", func(context.Context, state.Registration) error { panic("oh") })
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		if lines := append(w.log.lines("[WARN]"), w.log.lines("[INFO]")...); len(lines) != 1 {
			t.Errorf("the lines are %q", lines)
		}
		found := 0
		for _, line := range w.log.lines("[DEBUG]") {
			if strings.HasPrefix(line, "manager: handler panicked: ") && strings.Contains(line, "verb=Validate path=/plugins/a.sock stack=") &&
				strings.Contains(line, "TestPanicStack") {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d lines have the stack", found)
		}
	})
}

// loud panics when it is marshalled, the first time or a later one.
type loud struct{ quiet *int }

func (l loud) MarshalJSON() ([]byte, error) {
	if *l.quiet--; *l.quiet < 0 {
		panic("loud\n")
	}
	return []byte(`{"volume":11}`), nil
}

// R9: report may be called at any time, with anything.
func TestReportAnything(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		report := w.h.last
		for quiet, want := range []string{`its detail cannot be shown: panic: loud\n`, ""} {
			report(state.Report{Detail: loud{&quiet}})
			w.pass(0)
			r := w.socket("a.sock").Report
			if want = strings.TrimSuffix(want, `\n`); r == nil || r.Message != want {
				t.Errorf("the report is %+v", r)
			}
			if _, err := json.Marshal(w.m.View()); err != nil {
				t.Error(err)
			}
		}
		report(state.Report{Message: "much", Detail: strings.Repeat("x", maxDetail)})
		w.pass(0)
		if r := w.socket("a.sock").Report; r.Message != "much; its detail cannot be shown: 65538 bytes, more than 65536" || r.Detail != nil {
			t.Errorf("the report is %+v", r)
		}
		w.remove("a.sock")
		w.pass(time.Second)
		report(state.Report{Message: "late"})
		w.must(w.stop())
		report(state.Report{Message: "later", Detail: loud{new(int)}})
	})
}

// R9: reports in a loop fill no memory. The last one counts.
func TestReportFlood(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		reports := map[string]func(state.Report){}
		w.h.on("Register", func(_ context.Context, r state.Registration) error {
			w.h.mu.Lock()
			defer w.h.mu.Unlock()
			reports[r.Name] = w.h.last
			return nil
		})
		w.run()
		w.m.mu.Lock() // nothing is taken meanwhile
		for i := range 1000 {
			w.m.postLocked(state.Reported{ID: 1, Report: state.Report{Message: fmt.Sprint(i)}})
			w.m.postLocked(state.Reported{ID: 2, Report: state.Report{Message: fmt.Sprint(i)}})
		}
		waiting := len(w.m.mail)
		w.m.mu.Unlock()
		if waiting != 2 {
			t.Errorf("%d reports wait", waiting)
		}
		w.pass(0)
		for i := range 1000 {
			reports["a"](state.Report{Message: fmt.Sprint(i)})
		}
		w.pass(0)
		if r := w.socket("a.sock").Report; r == nil || r.Message != "999" {
			t.Errorf("the report is %+v", r)
		}
	})
}
