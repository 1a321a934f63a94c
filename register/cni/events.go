package cni

import (
	"context"
	"iter"
	"time"

	"github.com/plugpoll/plugpoll/register/internal/stream"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// Events returns the changes from this call on, as a sequence to range over once. The first event is the View, so that nothing falls between; a reader that is
// more than 1024 events behind loses the oldest and is told how many (O4). The sequence ends with ctx or with Run.
func (s *Syncer) Events(ctx context.Context) iter.Seq[Event] {
	s.mu.Lock()
	defer s.mu.Unlock()
	view := s.core.show(time.Now())
	r := stream.New(Event{
		Version: state.APIVersion, Time: view.Time, Kind: EventView, Name: view.Name, ConfDir: view.ConfDir, ConfDirBase64: view.ConfDirBase64,
		State: view.State, View: &view,
	}, lostEvents)
	if s.ended {
		r.Finish()
	} else {
		s.readers[r] = struct{}{}
	}
	return r.All(ctx, func() { s.leave(r) })
}

func lostEvents(next Event, lost int) Event {
	return Event{
		Version: state.APIVersion, Time: next.Time, Kind: EventLost, Name: next.Name, ConfDir: next.ConfDir, ConfDirBase64: scanner.Base64(next.ConfDir),
		State: next.State, Lost: lost,
	}
}

func (s *Syncer) leave(r *stream.Reader[Event]) {
	s.mu.Lock()
	delete(s.readers, r)
	s.mu.Unlock()
	r.Finish()
}
