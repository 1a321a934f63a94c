package register

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/register/internal/stream"
	"github.com/plugpoll/plugpoll/state"
)

// reader collects what Events yields.
type reader struct {
	events []state.Event
	ended  bool
}

// read ranges over Events until they end or after, if it is not nil, says so.
func (w *world) read(ctx context.Context, until func(state.Event) bool) *reader {
	r := &reader{}
	seq := w.m.Events(ctx)
	go func() {
		for e := range seq {
			r.events = append(r.events, e)
			if until != nil && until(e) {
				break
			}
		}
		r.ended = true
	}()
	synctest.Wait()
	return r
}

func (r *reader) kinds() []state.EventKind {
	var kinds []state.EventKind
	for _, e := range r.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (w *world) readers() int {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	return len(w.m.readers)
}

// O4: the first event is the View, what follows is all that happened since.
func TestEvents(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		early := w.read(w.Context(), nil)
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		late := w.read(w.Context(), nil)
		w.remove("a.sock")
		w.pass(time.Second)
		after := []state.EventKind{state.EventGone, state.EventDeregistered}
		want := append([]state.EventKind{
			state.EventView, state.EventFound, state.EventRegistered, state.EventSynced, state.EventAcknowledged,
		}, after...)
		if got := early.kinds(); !slices.Equal(got, want) {
			w.Errorf("the early reader got %q, want %q", got, want)
		}
		if v := early.events[0].View; v == nil || len(v.Sockets) != 0 {
			w.Errorf("the early reader's View is %+v", v)
		}
		if got := late.kinds(); !slices.Equal(got, append([]state.EventKind{state.EventView}, after...)) {
			w.Errorf("the late reader got %q", got)
		}
		if v := late.events[0].View; v == nil || find(*v, at("a.sock")).Phase != state.Registered {
			w.Errorf("the late reader's View is %+v", v)
		}
		for _, e := range early.events[1:] {
			if e.Version != state.APIVersion || e.Time.IsZero() || e.View != nil || e.Kind != state.EventSynced && e.Path != at("a.sock") {
				w.Errorf("an event is %+v", e)
			}
		}
		if early.ended || late.ended {
			w.Error("the sequence ended before Run")
		}
		w.must(w.stop())
		if !early.ended || !late.ended || w.readers() != 0 {
			w.Error("the sequence goes on after Run")
		}
		// After the end there is the last View, and nothing else.
		if r := w.read(w.Context(), nil); !r.ended || len(r.events) != 1 || r.events[0].Kind != state.EventView {
			w.Errorf("after the end a reader got %+v", r)
		}
	})
}

// O4: wherever among many events a subscription starts, View and events fit together.
func TestEventsFitTheView(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.run()
		var readers []*reader
		for i := range 50 {
			if i%2 == 0 {
				w.bind(fmt.Sprintf("%d.sock", i), simfs.Plugin{GetInfo: simfs.Call{Delay: 7 * time.Millisecond}})
			} else {
				w.remove(fmt.Sprintf("%d.sock", i-1))
			}
			readers = append(readers, w.read(w.Context(), nil))
			w.pass(13 * time.Millisecond)
		}
		w.pass(time.Second)
		for n, r := range readers {
			known := map[string]bool{}
			for _, s := range r.events[0].View.Sockets {
				known[s.Path] = s.Phase == state.Registered
			}
			for _, e := range r.events[1:] {
				registered, found := known[e.Path]
				switch {
				case e.Kind == state.EventFound && found,
					e.Kind != state.EventFound && e.Kind != state.EventSynced && !found,
					e.Kind == state.EventRegistered && registered,
					e.Kind == state.EventDeregistered && !registered:
					w.Errorf("reader %d: %s of %s does not follow from what it got before", n, e.Kind, e.Path)
				}
				switch e.Kind {
				case state.EventFound:
					known[e.Path] = false
				case state.EventRegistered:
					known[e.Path] = true
				case state.EventDeregistered:
					delete(known, e.Path)
				case state.EventGone:
					if !registered {
						delete(known, e.Path)
					}
				}
			}
		}
	})
}

// O4: a slow reader loses the oldest events, is told how many, and still gets the View first.
func TestSlowReader(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		seq := w.m.Events(w.Context())
		for range 3 * stream.Backlog {
			w.h.last(state.Report{})
			w.pass(0) // else the last one alone counts
		}
		w.remove("a.sock")
		w.pass(time.Second)
		w.must(w.stop())
		var got []state.Event
		for e := range seq {
			got = append(got, e)
		}
		if len(got) != stream.Backlog+2 || got[0].Kind != state.EventView || got[1].Kind != state.EventLost {
			w.Fatalf("got %d events, first %s and %s", len(got), got[0].Kind, got[1].Kind)
		}
		if all := 3*stream.Backlog + 2; got[1].Lost+stream.Backlog != all {
			w.Errorf("got %d events and was told of %d lost, want %d in all", stream.Backlog, got[1].Lost, all)
		}
		if last := got[len(got)-1]; last.Kind != state.EventDeregistered {
			w.Errorf("the last event is %+v", last)
		}
	})
}

// O4: the sequence ends by its context, by break, or never having been ranged over, and leaves nothing behind.
func TestEventsEnd(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.run()
		ctx, cancel := context.WithCancel(w.Context())
		byContext := w.read(ctx, nil)
		_ = w.m.Events(ctx) // never ranged over
		byBreak := w.read(w.Context(), func(state.Event) bool { return true })
		if !byBreak.ended || w.readers() != 2 {
			w.Errorf("after a break there are %d readers, want 2", w.readers())
		}
		cancel()
		w.pass(0)
		if !byContext.ended || w.readers() != 0 {
			w.Errorf("after its context there are %d readers", w.readers())
		}
		for range w.m.Events(ctx) {
			w.Error("an event comes though the context has ended")
		}
		w.pass(0)
		if w.readers() != 0 {
			w.Error("a reader stays")
		}
	})
}
