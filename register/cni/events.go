package cni

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// backlog is how many events a slow reader of Events may be behind before it loses the oldest.
const backlog = 1024

// subscription is one reader's place in the stream.
type subscription struct {
	mu     sync.Mutex
	view   *Event // the first event, never lost; nil once it was read
	events []Event
	lost   int
	closed bool
	poke   chan struct{}
}

// Events returns the changes from this call on, as a sequence to range over once. The first event is the View, so that nothing falls between; a reader that is
// more than 1024 events behind loses the oldest and is told how many (O4). The sequence ends with ctx or with Run.
func (s *Syncer) Events(ctx context.Context) iter.Seq[Event] {
	r := &subscription{poke: make(chan struct{}, 1)}
	s.mu.Lock()
	view := s.core.show(time.Now())
	r.view = &Event{
		Version: state.APIVersion, Time: view.Time, Kind: EventView, Name: view.Name, ConfDir: view.ConfDir, ConfDirBase64: view.ConfDirBase64,
		State: view.State, View: &view,
	}
	if s.ended {
		r.finish()
	} else {
		s.readers[r] = struct{}{}
	}
	s.mu.Unlock()
	// Whoever never ranges over the sequence must not be kept for ever.
	stop := context.AfterFunc(ctx, func() { s.leave(r) })
	return func(yield func(Event) bool) {
		defer stop()
		defer s.leave(r)
		for {
			e, ok, more := r.next()
			switch {
			case ok:
				if ctx.Err() != nil || !yield(e) {
					return
				}
			case !more:
				return
			default:
				select {
				case <-ctx.Done():
					return
				case <-r.poke:
				}
			}
		}
	}
}

func (s *Syncer) leave(r *subscription) {
	s.mu.Lock()
	delete(s.readers, r)
	s.mu.Unlock()
	r.finish()
}

func (r *subscription) publish(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == backlog {
		r.events = r.events[1:]
		r.lost++
	}
	r.events = append(r.events, e)
	r.signal()
}

func (r *subscription) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.signal()
}

func (r *subscription) signal() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// next returns the oldest event if there is one, and whether there may be more.
func (r *subscription) next() (e Event, ok, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view != nil {
		e, r.view = *r.view, nil
		return e, true, true
	}
	if r.lost > 0 {
		first := r.events[0]
		e = Event{
			Version: state.APIVersion, Time: first.Time, Kind: EventLost, Name: first.Name, ConfDir: first.ConfDir, ConfDirBase64: scanner.Base64(first.ConfDir),
			State: first.State, Lost: r.lost,
		}
		r.lost = 0
		return e, true, true
	}
	if len(r.events) == 0 {
		return e, false, !r.closed
	}
	e = r.events[0]
	r.events = r.events[1:]
	return e, true, true
}
