package register

import (
	"context"
	"iter"
	"time"

	"github.com/plugpoll/plugpoll/register/internal/stream"
	"github.com/plugpoll/plugpoll/state"
)

// Events returns the changes from this call on, as a sequence to range over once. The first event is the View, so that nothing falls
// between; a reader that is more than 1024 events behind loses the oldest and is told how many (O4). The sequence ends with ctx or with Run.
func (m *Manager) Events(ctx context.Context) iter.Seq[state.Event] {
	m.mu.Lock()
	defer m.mu.Unlock()
	view := m.core.View(time.Now())
	r := stream.New(state.Event{Version: state.APIVersion, Time: view.Time, Kind: state.EventView, View: &view}, lostEvents)
	if m.ended {
		r.Finish()
	} else {
		m.readers[r] = struct{}{}
	}
	return r.All(ctx, func() { m.leave(r) })
}

func lostEvents(next state.Event, lost int) state.Event {
	return state.Event{Version: state.APIVersion, Time: next.Time, Kind: state.EventLost, Lost: lost}
}

func (m *Manager) leave(r *stream.Reader[state.Event]) {
	m.mu.Lock()
	delete(m.readers, r)
	m.mu.Unlock()
	r.Finish()
}
