package register

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/state"
)

// replacements are the ways in which another instance comes to a path.
var replacements = map[string]func(w *world, p simfs.Plugin) *simfs.Server{
	"rename over": func(w *world, p simfs.Plugin) *simfs.Server {
		s := w.bind("/new.sock", p)
		w.must(w.node.Rename("/new.sock", at("a.sock")))
		return s
	},
	"unlink and bind": func(w *world, p simfs.Plugin) *simfs.Server {
		w.remove("a.sock")
		return w.bind("a.sock", p)
	},
}

// eachReplacement runs f on a world with the plugin a registered at a.sock, once for each way to replace it.
func eachReplacement(t *testing.T, f func(w *world, old *simfs.Server, replace func(simfs.Plugin) *simfs.Server)) {
	for how, replace := range replacements {
		t.Run(how, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				old := w.bind("a.sock", simfs.Plugin{Name: "a", Endpoint: "/run/old"})
				w.run()
				w.told(old, yes)
				w.calls("Validate a", "Register a")
				f(w, old, func(p simfs.Plugin) *simfs.Server {
					if p.Name == "" {
						p.Name = "a"
					}
					p.Endpoint = "/run/new"
					return replace(w, p)
				})
			})
		})
	}
}

// R6: the new instance is asked first, then Deregister, Validate, Register are called back to back.
func TestReplace(t *testing.T) {
	eachReplacement(t, func(w *world, old *simfs.Server, replace func(simfs.Plugin) *simfs.Server) {
		var gap time.Time
		w.h.on("Deregister", func(context.Context, state.Registration) error { gap = time.Now(); return nil })
		w.h.on("Register", func(context.Context, state.Registration) error {
			if took := time.Since(gap); took != 0 {
				w.Errorf("R6: %v pass between Deregister and Register", took)
			}
			return nil
		})
		p := replace(simfs.Plugin{GetInfo: simfs.Call{Delay: 500 * time.Millisecond}})
		w.pass(500 * time.Millisecond)
		if got := p.Record().GetInfos; got != 1 {
			w.Fatalf("the new instance was asked %d times", got)
		}
		w.calls()
		w.told(p)
		if got := w.h.holding("a.sock").Endpoint; got != "/run/old" {
			w.Errorf("the handler holds %q", got)
		}
		w.pass(500 * time.Millisecond)
		w.calls("Deregister a", "Validate a", "Register a")
		w.told(p, yes)
		w.told(old, yes)
		if n := old.Record().Conns; n != 0 {
			w.Errorf("%d connections to the old instance are open", n)
		}
		if got := w.h.holding("a.sock").Endpoint; got != "/run/new" {
			w.Errorf("the handler holds %q", got)
		}
	})
}

// R6: a new instance that does not answer within 2 s of being seen ends the old one's registration then.
func TestReplacementIsSilent(t *testing.T) {
	eachReplacement(t, func(w *world, old *simfs.Server, replace func(simfs.Plugin) *simfs.Server) {
		p := replace(simfs.Plugin{GetInfo: simfs.Call{Delay: 5 * time.Second}})
		_, err := p.Wait(w.Context(), func(r simfs.Record) bool { return r.GetInfos == 1 })
		w.must(err)
		w.pass(2*time.Second - time.Nanosecond)
		w.calls()
		w.pass(time.Nanosecond)
		w.calls("Deregister a")
		if n := old.Record().Conns; n != 0 {
			w.Errorf("%d connections to the old instance are open", n)
		}
		w.pass(3 * time.Second)
		w.calls("Validate a", "Register a")
		w.told(p, yes)
		w.told(old, yes)
	})
}

func TestReplacementRefusesTheDial(t *testing.T) {
	eachReplacement(t, func(w *world, _ *simfs.Server, replace func(simfs.Plugin) *simfs.Server) {
		p := replace(simfs.Plugin{RefuseDials: 1000})
		_, err := p.Wait(w.Context(), func(r simfs.Record) bool { return r.Dials == 1 })
		w.must(err)
		w.pass(2*time.Second - time.Nanosecond)
		w.calls()
		w.pass(time.Nanosecond)
		w.calls("Deregister a")
		p.Change(simfs.Plugin{Type: testType, Name: "a"})
		w.pass(10 * time.Second)
		w.calls("Validate a", "Register a")
	})
}

// R6: if the new instance is refused the name is empty; the old one is not restored.
func TestReplacementIsRefused(t *testing.T) {
	for _, verb := range []string{"Validate", "Register"} {
		t.Run(verb, func(t *testing.T) {
			eachReplacement(t, func(w *world, old *simfs.Server, replace func(simfs.Plugin) *simfs.Server) {
				w.h.fails(verb, Permanent(errors.New("too new")))
				p := replace(simfs.Plugin{})
				w.pass(time.Second)
				calls := w.h.take()
				if want := []string{"Deregister a", "Validate a", "Register a"}; !slices.Equal(calls, want[:len(calls)]) || len(calls) < 2 {
					w.Errorf("the calls were %q", calls)
				}
				if len(p.Record().Notices) != 1 || p.Record().Notices[0].Registered {
					w.Errorf("the new instance was told %+v", p.Record().Notices)
				}
				w.told(old, yes)
				w.phase("a.sock", state.Rejected)
				if got := w.h.holds(); len(got) != 0 {
					w.Errorf("the handler holds %q", got)
				}
			})
		})
	}
}

// The new instance is of another name: the old name goes, the new one comes.
func TestReplacementHasAnotherName(t *testing.T) {
	eachReplacement(t, func(w *world, _ *simfs.Server, replace func(simfs.Plugin) *simfs.Server) {
		p := replace(simfs.Plugin{Name: "b"})
		w.pass(time.Second)
		w.calls("Deregister a", "Validate b", "Register b")
		w.told(p, yes)
	})
}

// The new instance is of a type without a handler: it answered, so the old one goes.
func TestReplacementHasAnUnknownType(t *testing.T) {
	eachReplacement(t, func(w *world, _ *simfs.Server, replace func(simfs.Plugin) *simfs.Server) {
		p := replace(simfs.Plugin{Type: "Other"})
		w.pass(time.Second)
		w.calls("Deregister a")
		w.told(p, no("no handler for plugin type Other: the known types are TestPlugin"))
		w.phase("a.sock", state.Rejected)
	})
}

// R5, R6: a replaced plugin that is gone before it has answered.
func TestReplacementIsGone(t *testing.T) {
	eachReplacement(t, func(w *world, _ *simfs.Server, replace func(simfs.Plugin) *simfs.Server) {
		replace(simfs.Plugin{GetInfo: simfs.Call{Delay: time.Hour}})
		w.pass(time.Second)
		w.remove("a.sock")
		w.pass(time.Second)
		w.calls("Deregister a")
		w.phase("a.sock", "")
	})
}

// R7: what runs for an instance that is gone or replaced is cancelled, and its result changes nothing.
func TestGoneWhileItRuns(t *testing.T) {
	for _, what := range []string{"GetInfo", "Validate", "Register", "Register, late success", "Validate, late success"} {
		for _, replaced := range []bool{false, true} {
			name := what + ", gone"
			if replaced {
				name = what + ", replaced"
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, Config{}, func(w *world) { goneWhileItRuns(w, what, replaced) })
			})
		}
	}
}

func goneWhileItRuns(w *world, what string, replaced bool) {
	var calls []string
	late := func(context.Context, state.Registration) error { w.sleep(5 * time.Second); return nil }
	p := simfs.Plugin{Name: "a", Endpoint: "/run/old"}
	switch what {
	case "GetInfo":
		p.GetInfo.Delay = 5 * time.Second
	case "Validate":
		w.h.takes("Validate", 5*time.Second)
		calls = []string{"Validate a"}
	case "Validate, late success":
		w.h.on("Validate", late)
		calls = []string{"Validate a"}
	case "Register":
		w.h.takes("Register", 5*time.Second)
		calls = []string{"Validate a", "Register a"}
	case "Register, late success":
		w.h.on("Register", late)
		calls = []string{"Validate a", "Register a"}
	}
	old := w.bind("a.sock", p)
	w.run()
	w.pass(time.Second)
	w.calls(calls...)
	calls = nil
	w.h.on("Validate", nil)
	w.h.on("Register", nil)
	w.remove("a.sock")
	fresh := old
	if replaced {
		fresh = w.bind("a.sock", simfs.Plugin{Name: "a", Endpoint: "/run/new"})
		calls = []string{"Validate a", "Register a"}
	}
	w.pass(time.Second)
	if n := old.Record().Conns; n != 0 {
		w.Errorf("%d connections to the old instance are open", n)
	}
	if what == "Register, late success" || what == "Validate, late success" {
		w.calls()
		w.pass(5 * time.Second)
	}
	if what == "Register, late success" {
		calls = append([]string{"Deregister a"}, calls...)
	}
	w.calls(calls...)
	if replaced {
		w.told(fresh, yes)
		w.phase("a.sock", state.Registered)
		if got := w.h.holding("a.sock").Endpoint; got != "/run/new" {
			w.Errorf("the handler holds %q", got)
		}
	} else {
		w.told(old)
		w.phase("a.sock", "")
	}
}
