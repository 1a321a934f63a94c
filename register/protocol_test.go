package register

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/state"
)

// R1: dial, GetInfo, Validate, Register, Notify, in this order, and what each party sees.
func TestRegister(t *testing.T) {
	bubble(t, slow, func(w *world) {
		w.h.takes("Validate", time.Second)
		w.h.takes("Register", time.Second)
		p := w.bind("a.sock", simfs.Plugin{
			Endpoint: "unix:///run/a.sock", Versions: []string{"v1", "v2"}, GetInfo: simfs.Call{Delay: time.Second},
		})
		w.run()
		w.phase("a.sock", state.Registering)
		if r := p.Record(); r.Dials != 1 || r.GetInfos != 1 {
			w.Errorf("the plugin saw %+v, want one dial and one GetInfo", r)
		}
		w.calls()
		w.pass(time.Second)
		w.calls("Validate a")
		w.told(p)
		w.pass(time.Second)
		w.calls("Register a")
		w.told(p)
		w.phase("a.sock", state.Registering)
		w.pass(time.Second)
		w.calls()
		w.told(p, yes)
		w.phase("a.sock", state.Registered)
		v := w.socket("a.sock")
		if v.Acknowledged != state.AckYes || v.Plugin == nil || v.Plugin.Endpoint != "/run/a.sock" || v.Plugin.Type != testType {
			w.Errorf("View shows %+v with plugin %+v", v, v.Plugin)
		}
		r := w.h.holding("a.sock")
		if r.Name != "a" || r.Type != testType || r.Endpoint != "/run/a.sock" || !slices.Equal(r.Versions, []string{"v1", "v2"}) || r.Entry.Path != at("a.sock") {
			w.Errorf("the handler got %+v", r)
		}
		w.pass(time.Hour)
		w.calls()
		if r := p.Record(); r.Dials != 1 || r.GetInfos != 1 || r.Conns != 1 || len(r.Notices) != 1 {
			w.Errorf("after an idle hour the plugin saw %+v", r)
		}
	})
}

func TestEmptyEndpointIsTheSocket(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		if got := w.h.holding("a.sock").Endpoint; got != at("a.sock") {
			w.Errorf("R1: the endpoint is %q", got)
		}
	})
}

// R2, R3: what the handler refuses is not recorded, the plugin is told why, and it is tried again.
func TestHandlerRefuses(t *testing.T) {
	for _, verb := range []string{"Validate", "Register"} {
		t.Run(verb, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				told := no(strings.ToLower(verb) + ": no room")
				calls := []string{"Validate a", "Register a"}
				w.h.fails(verb, errors.New("no room"))
				p := w.bind("a.sock", simfs.Plugin{})
				w.run()
				w.phase("a.sock", state.Backoff)
				w.told(p, told)
				if verb == "Validate" {
					calls = calls[:1]
				}
				w.calls(calls...)
				v := w.socket("a.sock")
				if v.Tries != 1 || v.LastError != told.Error || v.Acknowledged != "" || v.NextTry.IsZero() {
					w.Errorf("View shows %+v", v)
				}
				if n := p.Record().Conns; n != 0 {
					w.Errorf("%d connections are kept", n)
				}
				w.pass(600 * time.Millisecond)
				w.told(p, told, told)
				w.calls(calls...)
				w.h.on(verb, nil)
				w.pass(1200 * time.Millisecond)
				w.told(p, told, told, yes)
				w.phase("a.sock", state.Registered)
				w.calls("Validate a", "Register a")
				if warned := w.log.lines("[WARN]"); len(warned) != 1 {
					w.Errorf("O1: warned %q", warned)
				}
			})
		})
	}
}

func TestNothingToDeregisterAfterAFailedRegister(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.h.fails("Register", errors.New("no room"))
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.remove("a.sock")
		w.pass(time.Second)
		w.calls("Validate a", "Register a")
		w.phase("a.sock", "")
	})
}

// R3, R13: an answer that no handler can judge.
func TestRefusedAnswers(t *testing.T) {
	for _, c := range []struct {
		name string
		p    simfs.Plugin
		want string
	}{
		{"unknown type", simfs.Plugin{Type: "Other"}, `no handler for plugin type Other: the known types are TestPlugin`},
		{"endpoint", simfs.Plugin{Endpoint: "tcp://a:1"}, `GetInfo: endpoint tcp://a:1 is not the absolute path of a unix socket (/path, unix:/path or unix:///path)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				p := w.bind("a.sock", c.p)
				w.run()
				w.told(p, no(c.want))
				w.phase("a.sock", state.Rejected)
				w.calls()
				if got := w.socket("a.sock").LastError; got != c.want {
					w.Errorf("View shows %q", got)
				}
				w.pass(time.Minute)
				w.told(p, no(c.want))
				if warned := w.log.lines("[WARN]"); len(warned) != 1 {
					w.Errorf("R3: a delivered rejection is logged as more than that: %q", warned)
				}
			})
		})
	}
}

// An empty type or name cannot come from w.bind.
func TestNamelessAnswers(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		typeless, err := w.node.Bind(at("a.sock"), simfs.Plugin{Name: "a"})
		w.must(err)
		nameless, err := w.node.Bind(at("b.sock"), simfs.Plugin{Type: testType})
		w.must(err)
		w.run()
		w.told(typeless, no("GetInfo: the answer has no plugin type"))
		w.told(nameless, no("GetInfo: the answer has no plugin name"))
		w.phase("a.sock", state.Rejected)
		w.phase("b.sock", state.Rejected)
	})
}

func TestToldTextIsBounded(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.h.fails("Validate", errors.New(strings.Repeat("é\xff\n€", 2000)))
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		notices := p.Record().Notices
		if len(notices) != 1 {
			w.Fatalf("told %d times", len(notices))
		}
		text := notices[0].Error
		if !utf8.ValidString(text) || len(text) > 1024 || len(text) < 1000 || strings.Contains(text, "\n") {
			w.Errorf("R3: told %d bytes: %q", len(text), text)
		}
	})
}

// R3: a plugin that exits on being told "failed" is no error of ours.
func TestPluginExitsWhenRefused(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.h.fails("Validate", Permanent(errors.New("no good")))
		p := w.bind("a.sock", simfs.Plugin{Notify: simfs.Call{Delay: time.Second}})
		w.run()
		p.Crash()
		w.pass(time.Minute)
		w.told(p, no("validate: no good"))
		w.phase("a.sock", state.Rejected)
		if got := w.socket("a.sock").LastError; got != "validate: no good" {
			w.Errorf("View shows %q", got)
		}
		if warned := w.log.lines("[WARN]"); len(warned) != 1 {
			w.Errorf("warned %q", warned)
		}
	})
}

// R4: a plugin that cannot be told stays registered, and being told alone is tried again.
func TestNotAcknowledged(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{Notify: simfs.Call{Code: codes.Internal, Times: 2}})
		w.run()
		w.phase("a.sock", state.Registered)
		v := w.socket("a.sock")
		if v.Acknowledged != state.AckNo || v.Tries != 1 || v.LastError != "NotifyRegistrationStatus: simulated failure (Internal)" {
			w.Errorf("View shows %+v", v)
		}
		w.pass(time.Until(v.NextTry))
		if r := p.Record(); r.Dials != 1 || r.GetInfos != 1 || r.Conns != 1 {
			w.Errorf("after the second try the plugin saw %+v", r)
		}
		v = w.socket("a.sock")
		if v.Acknowledged != state.AckNo || v.Tries != 2 {
			w.Errorf("View shows %+v", v)
		}
		w.pass(time.Until(v.NextTry))
		if r := p.Record(); r.Dials != 1 || r.GetInfos != 1 || r.Conns != 1 {
			w.Errorf("after the third try the plugin saw %+v", r)
		}
		if v = w.socket("a.sock"); v.Acknowledged != state.AckYes || v.Tries != 0 || v.LastError != "" || !v.NextTry.IsZero() {
			w.Errorf("View shows %+v", v)
		}
		w.told(p, yes, yes, yes)
		w.calls("Validate a", "Register a")
		w.remove("a.sock")
		w.pass(time.Second)
		if r := p.Record(); r.Conns != 0 {
			w.Errorf("after it is gone %d connections are open", r.Conns)
		}
	})
}

func TestAcknowledgementUnsupported(t *testing.T) {
	bubble(t, slow, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{Notify: simfs.Call{Code: codes.Unimplemented}})
		w.run()
		w.pass(time.Hour)
		w.told(p, yes)
		if v := w.socket("a.sock"); v.Phase != state.Registered || v.Acknowledged != state.AckUnsupported || v.LastError != "" {
			w.Errorf("View shows %+v", v)
		}
		if warned := w.log.lines("[WARN]"); len(warned) != 0 {
			w.Errorf("warned %q", warned)
		}
	})
}

// A plugin that is gone while it is being told is deregistered, and not told.
func TestGoneWhileBeingTold(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{Notify: simfs.Call{Delay: 3 * time.Second}})
		w.run()
		w.remove("a.sock")
		w.pass(time.Second)
		w.calls("Validate a", "Register a", "Deregister a")
		w.phase("a.sock", "")
		if n := p.Record().Conns; n != 0 {
			w.Errorf("%d connections are open", n)
		}
	})
}

// R5: Deregister uses what was recorded (the taker compares), never dials, and its error is shown and not retried.
func TestDeregister(t *testing.T) {
	bubble(t, slow, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{Endpoint: "/run/a.sock"})
		w.run()
		p.Change(simfs.Plugin{Type: "Other", Name: "other"})
		w.h.fails("Deregister", errors.New("busy\nwith it"))
		w.remove("a.sock")
		w.pass(time.Hour)
		w.calls("Validate a", "Register a", "Deregister a")
		w.phase("a.sock", "")
		if r := p.Record(); r.Dials != 1 || r.GetInfos != 1 {
			w.Errorf("the plugin saw %+v", r)
		}
		want := `manager: deregistered, but its handler failed to let it go: path=/plugins/a.sock type=TestPlugin name=a endpoint=/run/a.sock reason=gone error="deregister: busy\\nwith it"`
		if warned := w.log.lines("[WARN]"); !slices.Equal(warned, []string{want}) {
			w.Errorf("warned\n%q, want\n%q", warned, want)
		}
	})
}

// R8: an unknown type is told once, and tried again when its handler comes, on change, or on Retry.
func TestUnknownType(t *testing.T) {
	bubble(t, slow, func(w *world) {
		told := no(`no handler for plugin type Late: the known types are TestPlugin`)
		p := w.bind("a.sock", simfs.Plugin{Type: "Late"})
		w.run()
		w.pass(24 * time.Hour)
		w.told(p, told)
		w.must(w.m.Retry(at("a.sock")))
		w.pass(0)
		w.told(p, told, told)

		w.remove("a.sock")
		q := w.bind("a.sock", simfs.Plugin{Type: "Late"})
		w.pass(time.Minute)
		w.told(q, told)

		late := w.handler("Late")
		w.pass(0)
		w.told(q, told, yes)
		w.phase("a.sock", state.Registered)
		if got := late.take(); !slices.Equal(got, []string{"Validate a", "Register a"}) {
			w.Errorf("the late handler's calls: %q", got)
		}
		w.calls()
	})
}

// A handler that comes while the socket of its type is being asked.
func TestHandlerAddedDuringGetInfo(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{Type: "Late", GetInfo: simfs.Call{Delay: time.Second}})
		w.run()
		w.handler("Late")
		w.pass(time.Second)
		w.told(p, yes)
	})
}

// N1: two sockets announce one name. Each is an instance; the one that leaves is the one that is deregistered (the taker compares).
func TestTwoSocketsOneName(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.h.takes("Validate", time.Second) // the taker sees to it that calls for one name never overlap (R7)
		w.h.takes("Register", time.Second)
		p := w.bind("a.sock", simfs.Plugin{Name: "n", Endpoint: "/run/a.sock"})
		q := w.bind("b.sock", simfs.Plugin{Name: "n", Endpoint: "/run/b.sock"})
		w.run()
		w.pass(5 * time.Second)
		w.told(p, yes)
		w.told(q, yes)
		w.calls("Validate n", "Register n", "Validate n", "Register n")
		w.remove("a.sock")
		w.pass(time.Second)
		w.calls("Deregister n")
		w.phase("b.sock", state.Registered)
		if got := w.h.holds(); !slices.Equal(got, []string{at("b.sock")}) {
			w.Errorf("the handler holds %q", got)
		}
	})
}

// What a handler reports is shown from before Register returns until Deregister does; later reports are dropped.
func TestReport(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		first := func(state.Report) {}
		w.h.on("Register", func(context.Context, state.Registration) error {
			first = w.h.last
			first(state.Report{Message: "starting\n"})
			return nil
		})
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		if r := w.socket("a.sock").Report; r == nil || r.Health != state.HealthUnknown || r.Message != `starting\n` {
			w.Errorf("View shows %+v", r)
		}
		first(state.Report{Health: state.HealthServing, Detail: map[string]int{"devices": 2}})
		w.pass(0)
		if r := w.socket("a.sock").Report; r == nil || r.Health != state.HealthServing || r.Message != "" || r.Detail == nil {
			w.Errorf("View shows %+v", r)
		}
		w.h.on("Deregister", func(context.Context, state.Registration) error {
			first(state.Report{Health: state.HealthDown, Message: "leaving"})
			return nil
		})
		w.remove("a.sock")
		second := w.bind("a.sock", simfs.Plugin{})
		w.h.on("Register", nil)
		w.pass(time.Second)
		w.told(second, yes)
		if !strings.Contains(w.log.String(), "message=leaving") {
			w.Error("what was reported during Deregister is not in the log")
		}
		first(state.Report{Health: state.HealthDown, Message: "too late"})
		w.pass(0)
		if r := w.socket("a.sock").Report; r != nil {
			w.Errorf("View shows the old instance's %+v", r)
		}
		w.must(w.stop())
		first(state.Report{Message: "after the end"})
	})
}
