package register

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/state"
)

// backlog is how many events a slow reader of Events may be behind before it loses the oldest (O4).
const backlog = 1024

// subscription is one reader's place in the stream.
type subscription struct {
	mu     sync.Mutex
	view   *state.Event // the first event, never lost; nil once it was read
	events []state.Event
	lost   int
	closed bool
	poke   chan struct{}
}

// Events returns the changes from this call on, as a sequence to range over once. The first event is the View, so that nothing falls
// between; a reader that is more than 1024 events behind loses the oldest and is told how many (O4). The sequence ends with ctx or with Run.
func (m *Manager) Events(ctx context.Context) iter.Seq[state.Event] {
	s := &subscription{poke: make(chan struct{}, 1)}
	m.mu.Lock()
	view := m.core.View(time.Now())
	s.view = &state.Event{Version: state.APIVersion, Time: view.Time, Kind: state.EventView, View: &view}
	if m.ended {
		s.finish()
	} else {
		m.readers[s] = struct{}{}
	}
	m.mu.Unlock()
	// Whoever never ranges over the sequence must not be kept for ever.
	stop := context.AfterFunc(ctx, func() { m.leave(s) })
	return func(yield func(state.Event) bool) {
		defer stop()
		defer m.leave(s)
		for {
			e, ok, more := s.next()
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
				case <-s.poke:
				}
			}
		}
	}
}

func (m *Manager) leave(s *subscription) {
	m.mu.Lock()
	delete(m.readers, s)
	m.mu.Unlock()
	s.finish()
}

func (s *subscription) publish(e state.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) == backlog {
		s.events = s.events[1:]
		s.lost++
	}
	s.events = append(s.events, e)
	s.signal()
}

func (s *subscription) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signal()
}

func (s *subscription) signal() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// next returns the oldest event if there is one, and whether there may be more.
func (s *subscription) next() (e state.Event, ok, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		e, s.view = *s.view, nil
		return e, true, true
	}
	if s.lost > 0 {
		e = state.Event{Version: state.APIVersion, Time: s.events[0].Time, Kind: state.EventLost, Lost: s.lost}
		s.lost = 0
		return e, true, true
	}
	if len(s.events) == 0 {
		return e, false, !s.closed
	}
	e = s.events[0]
	s.events = s.events[1:]
	return e, true, true
}
