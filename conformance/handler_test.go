package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance"
	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// fakeHandler is a handler that keeps all rules, but for what is overridden. It holds paths.
type fakeHandler struct {
	mu   sync.Mutex
	held map[string]string // names by path

	validate   func(state.Registration) error
	register   func(ctx context.Context, r state.Registration, report func(state.Report)) error
	deregister func(r state.Registration) (done bool, err error)
	stuck      bool // does not obey its context
	quick      bool // does not hang
	dirty      bool // keeps what failed
	over       chan struct{}
}

const (
	failing = "failing.example.com"
	hanging = "hanging.example.com"
)

func (h *fakeHandler) Validate(_ context.Context, r state.Registration) error {
	if h.validate != nil {
		return h.validate(r)
	}
	return nil
}

func (h *fakeHandler) Register(ctx context.Context, r state.Registration, report func(state.Report)) error {
	if h.register != nil {
		if err := h.register(ctx, r, report); err != nil {
			return err
		}
	}
	if r.Name == hanging && !h.quick {
		done := ctx.Done()
		if h.stuck {
			done = nil
		}
		select {
		case <-done:
			return ctx.Err()
		case <-h.over:
			return nil
		}
	}
	report(state.Report{Health: state.HealthServing})
	if r.Name == failing && !h.dirty {
		h.forget(r)
		return errors.New("no answer")
	}
	h.keep(r)
	if r.Name == failing {
		return errors.New("no answer")
	}
	return nil
}

func (h *fakeHandler) Deregister(_ context.Context, r state.Registration) error {
	if h.deregister != nil {
		if done, err := h.deregister(r); done {
			return err
		}
	}
	h.forget(r)
	return nil
}

func (h *fakeHandler) keep(r state.Registration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[r.Entry.Path] = r.Name
}

func (h *fakeHandler) forget(r state.Registration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, r.Entry.Path)
}

func (h *fakeHandler) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

// moody has an Exclusive that is not constant.
type moody struct {
	*fakeHandler
	calls atomic.Int64
}

func (m *moody) Exclusive() bool { return m.calls.Add(1)%2 == 0 }

func numbered(n int) state.Registration {
	path := fmt.Sprintf("/plugins/%d.sock", n)
	return state.Registration{
		Entry: scanner.Entry{Path: path}, Type: "CSIPlugin", Name: fmt.Sprintf("n%d.example.com", n), Endpoint: path, Versions: []string{"1.1.0", "1.0.0"},
	}
}

func named(name string) func(int) state.Registration {
	return func(n int) state.Registration {
		r := numbered(n)
		r.Name = name
		return r
	}
}

// brokenHandlers has for each rule what makes a good handler break it.
var brokenHandlers = map[string]func(*fakeHandler){
	"H1": func(h *fakeHandler) {
		h.register = func(context.Context, state.Registration, func(state.Report)) error { return errors.New("not today") }
	},
	"H1/panic": func(h *fakeHandler) {
		h.register = func(context.Context, state.Registration, func(state.Report)) error { panic("not today") }
	},
	"H1/deregister": func(h *fakeHandler) {
		h.deregister = func(state.Registration) (bool, error) { return true, errors.New("not today") }
	},
	"H2": func(h *fakeHandler) {
		h.validate = func(r state.Registration) error {
			h.keep(r)
			return nil
		}
	},
	"R9": func(h *fakeHandler) { h.stuck = true },
	"R9/deregister": func(h *fakeHandler) {
		h.quick = true
		h.deregister = func(r state.Registration) (bool, error) {
			if r.Name == hanging {
				<-h.over
			}
			return false, nil
		}
	},
	"H3": func(h *fakeHandler) { h.deregister = func(state.Registration) (bool, error) { return true, nil } },
	"H4": func(h *fakeHandler) { h.dirty = true },
	"R5": func(h *fakeHandler) {
		h.register = func(_ context.Context, r state.Registration, _ func(state.Report)) error {
			slices.Sort(r.Versions)
			return nil
		}
	},
	"R5/address": func(h *fakeHandler) {
		var known sync.Map
		h.register = func(_ context.Context, r state.Registration, _ func(state.Report)) error {
			known.Store(&r.Versions[0], true)
			return nil
		}
		h.deregister = func(r state.Registration) (bool, error) {
			if _, ok := known.LoadAndDelete(&r.Versions[0]); !ok {
				return true, errors.New("unknown")
			}
			return false, nil
		}
	},
	"H5": func(h *fakeHandler) {
		h.register = func(_ context.Context, _ state.Registration, report func(state.Report)) error {
			go func() {
				for {
					select {
					case <-h.over:
						return
					case <-time.After(10 * time.Millisecond):
						report(state.Report{})
					}
				}
			}()
			return nil
		}
	},
	"H6": func(h *fakeHandler) {
		var known sync.Map
		h.register = func(_ context.Context, r state.Registration, _ func(state.Report)) error {
			if _, again := known.LoadOrStore(r.Entry.Path, true); again {
				return errors.New("registered already")
			}
			return nil
		}
	},
	"H7": func(h *fakeHandler) {
		var inside atomic.Int64
		h.register = func(context.Context, state.Registration, func(state.Report)) error {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				return errors.New("busy")
			}
			<-time.After(time.Millisecond)
			return nil
		}
	},
	"N1": func(h *fakeHandler) {
		h.register = func(_ context.Context, r state.Registration, _ func(state.Report)) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if slices.Contains(slices.Collect(maps.Values(h.held)), r.Name) {
				return errors.New("the name is taken")
			}
			return nil
		}
	},
	"N1/both": func(h *fakeHandler) {
		h.deregister = func(r state.Registration) (bool, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			maps.DeleteFunc(h.held, func(_, name string) bool { return name == r.Name })
			return true, nil
		}
	},
	"N2": nil,
}

func TestHandlerBites(t *testing.T) {
	complete(t, conformance.Handler(conformance.HandlerSubject{Handler: record.Handler{}}), slices.Collect(maps.Keys(brokenHandlers)))
	for id, breaks := range brokenHandlers {
		t.Run(id, func(t *testing.T) { handlerBites(t, id, breaks) })
	}
	t.Run("none", func(t *testing.T) { handlerBites(t, "", func(*fakeHandler) {}) })
}

func handlerBites(t *testing.T, id string, breaks func(*fakeHandler)) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHandler{held: map[string]string{}, over: make(chan struct{})}
		defer close(h.over)
		s := conformance.HandlerSubject{Handler: h, Registration: numbered, Fails: named(failing), Hangs: named(hanging), Held: h.count}
		if breaks == nil {
			s.Handler = &moody{fakeHandler: h}
		} else {
			breaks(h)
		}
		bites(t, conformance.Handler(s), ruleOf(id))
	})
}

func TestHandlers(t *testing.T) {
	t.Run("record", func(t *testing.T) {
		conformance.Test(t, conformance.Handler(conformance.HandlerSubject{Handler: record.Handler{}, Registration: numbered}))
	})
	t.Run("kubelet", func(t *testing.T) {
		conformance.Test(t, conformance.Handler(conformance.HandlerSubject{Handler: register.Kubelet(kubeletHandler{}, true), Registration: numbered}))
	})
}

// kubeletHandler is one that was written for the kubelet.
type kubeletHandler struct{}

func (kubeletHandler) ValidatePlugin(context.Context, string, string, []string) error { return nil }

func (kubeletHandler) RegisterPlugin(context.Context, string, string, []string, *time.Duration) error {
	return nil
}

func (kubeletHandler) DeRegisterPlugin(context.Context, string, string) {}
