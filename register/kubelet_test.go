package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/state"
)

// kubeletCSI keeps the rule of the kubelet's CSI handler (k8s.io/kubernetes/pkg/volume/csi): a driver that is registered at an equal or higher version
// is refused.
type kubeletCSI struct {
	drivers  map[string]*version.Version
	calls    []string
	timeouts []*time.Duration
}

func (k *kubeletCSI) highest(versions []string) *version.Version {
	var highest *version.Version
	for _, text := range versions {
		if v, err := version.ParseSemantic(text); err == nil && (highest == nil || highest.LessThan(v)) {
			highest = v
		}
	}
	return highest
}

func (k *kubeletCSI) ValidatePlugin(_ context.Context, name, endpoint string, versions []string) error {
	k.calls = append(k.calls, fmt.Sprint("Validate ", name, " ", endpoint, " ", versions))
	highest := k.highest(versions)
	if highest == nil {
		return errors.New("no version")
	}
	if old := k.drivers[name]; old != nil && !old.LessThan(highest) {
		return fmt.Errorf("another driver with the same name is already registered with a higher supported version: %q", old)
	}
	return nil
}

func (k *kubeletCSI) RegisterPlugin(_ context.Context, name, endpoint string, versions []string, timeout *time.Duration) error {
	k.calls = append(k.calls, fmt.Sprint("Register ", name, " ", endpoint, " ", versions))
	k.timeouts = append(k.timeouts, timeout)
	k.drivers[name] = k.highest(versions)
	return nil
}

func (k *kubeletCSI) DeRegisterPlugin(_ context.Context, name, endpoint string) {
	k.calls = append(k.calls, fmt.Sprint("DeRegister ", name, " ", endpoint))
	delete(k.drivers, name)
}

func (k *kubeletCSI) called(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(k.calls, want) {
		t.Errorf("the kubelet's handler was called\n%q, want\n%q", k.calls, want)
	}
	k.calls = nil
}

// R6: a driver that is replaced by one of the same or a lower version is registered at once.
func TestKubeletReplace(t *testing.T) {
	for _, next := range []string{"1.0.0", "0.9.0", "1.1.0"} {
		t.Run(next, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				h := &kubeletCSI{drivers: map[string]*version.Version{}}
				w.must(w.m.AddHandler("CSIPlugin", Kubelet(h, false)))
				w.takers = nil // this handler is none
				p := w.bind("a.sock", simfs.Plugin{Type: "CSIPlugin", Name: "d", Endpoint: "/run/1", Versions: []string{"1.0.0", "0.3.0"}})
				w.run()
				w.told(p, yes)
				h.called(w.T, "Validate d /run/1 [1.0.0 0.3.0]", "Register d /run/1 [1.0.0 0.3.0]")
				if len(h.timeouts) != 1 || h.timeouts[0] == nil || *h.timeouts[0] != DefaultHandlerTimeout-kubeletReserve {
					w.Errorf("R9: the client timeout is %v", h.timeouts)
				}
				w.bind("/new.sock", simfs.Plugin{Type: "CSIPlugin", Name: "d", Endpoint: "/run/2", Versions: []string{next}})
				w.must(w.node.Rename("/new.sock", at("a.sock")))
				w.pass(200 * time.Millisecond)
				h.called(w.T, "DeRegister d /run/1", "Validate d /run/2 ["+next+"]", "Register d /run/2 ["+next+"]")
				w.phase("a.sock", state.Registered)
				w.remove("a.sock")
				w.pass(time.Second)
				h.called(w.T, "DeRegister d /run/2")
			})
		})
	}
}

// N1: beside another socket of the same name the rule holds: the second one is refused, told why, and taken when the first one leaves.
func TestKubeletSecondSocket(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		h := &kubeletCSI{drivers: map[string]*version.Version{}}
		w.must(w.m.AddHandler("CSIPlugin", Kubelet(h, false)))
		w.takers = nil
		p := simfs.Plugin{Type: "CSIPlugin", Name: "d", Versions: []string{"1.0.0"}}
		w.bind("a.sock", p)
		w.run()
		second := w.bind("b.sock", p)
		w.pass(time.Second)
		refused := no(`validate: another driver with the same name is already registered with a higher supported version: "1.0.0"`)
		if got := second.Record().Notices; len(got) == 0 || got[0] != refused {
			w.Errorf("the second one was told %+v", got)
		}
		w.remove("a.sock")
		w.pass(5 * time.Second)
		w.phase("b.sock", state.Registered)
	})
}

// R9: the kubelet's handler gets what is left less 10 s, at least half of it.
func TestClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration]time.Duration{
			3 * time.Minute:  170 * time.Second,
			20 * time.Second: 10 * time.Second,
			15 * time.Second: 7500 * time.Millisecond,
			2 * time.Second:  time.Second,
			0:                0,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			if got := clientTimeout(ctx); got == nil || *got != want {
				t.Errorf("with %v left it is %v, want %v", left, got, want)
			}
			cancel()
		}
		if got := clientTimeout(t.Context()); got != nil {
			t.Errorf("without a deadline it is %v", *got)
		}
		expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
		defer cancel()
		if got := clientTimeout(expired); got == nil || *got > 0 {
			t.Errorf("after the deadline it is %v", *got)
		}
	})
}

// N2: whether a handler is exclusive is its own word; one that says nothing is not.
func TestExclusive(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			s.m.running = true // so that the core gets it by mail
			for _, c := range []struct {
				typ  string
				h    Handler
				want bool
			}{
				{"a", newTaker(), false},
				{"b", record.Handler{}, false},
				{"c", Kubelet(&kubeletCSI{}, false), false},
				{"d", Kubelet(&kubeletCSI{}, true), true},
			} {
				w.must(w.m.AddHandler(c.typ, c.h))
				s.expect(c.typ, s.inputs(), state.HandlerAdded{Type: c.typ, Exclusive: c.want})
			}
		})
		w.takers = nil
	})
}
