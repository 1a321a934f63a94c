package main

import (
	"net/http"
	"time"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/state"
)

// maxReaders is how many may read events at once. The rest of maxConns is for those who ask and go.
const maxReaders = 256

const (
	// readerPatience is how long a reader may take nothing before it is hung up on. It may come again, and begins with a View then.
	readerPatience = 30 * time.Second
	// heartbeat is the longest time without a byte: what is between the two must not take the connection for dead.
	heartbeat = 15 * time.Second
)

// events streams a View, one of each CNI directory, and then what changes, as server-sent events (O4).
func (s *site) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.readers <- struct{}{}:
		defer func() { <-s.readers }()
	default:
		w.Header().Set("Retry-After", "10")
		fail(w, http.StatusServiceUnavailable, "too many read events already: close one of them")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // that of the request would end the stream
	if r.Method == http.MethodHead {
		return
	}
	// A View that so much has come after that some of it may be lost already is of no use.
	oldest := uint64(0)
	if place := s.feed.place(); place > feedLength/2 {
		oldest = place - feedLength/2
	}
	from := s.shots.current(oldest)
	first := from.body("event", func(v state.View) any {
		return state.Event{Version: state.APIVersion, Time: v.Time, Kind: state.EventView, View: &v}
	})
	if sendEvent(w, c, "retry: 2000\n", first.plain()) != nil {
		return
	}
	for _, v := range from.cni {
		view := cniEventOf(cni.Event{
			Version: v.Version, Time: v.Time, Kind: cni.EventView, Name: v.Name, ConfDir: v.ConfDir, ConfDirBase64: v.ConfDirBase64, State: v.State, View: &v,
		})
		if sendEvent(w, c, "", encodeJSON(view)) != nil {
			return
		}
	}
	s.follow(w, r, c, from)
}

// follow sends what came after a shot until the reader or the feed ends.
func (s *site) follow(w http.ResponseWriter, r *http.Request, c *http.ResponseController, from *shot) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	place := from.place
	for {
		b := s.feed.from(place)
		place = b.next
		if b.lost > 0 {
			lost := state.Event{Version: state.APIVersion, Time: time.Now(), Kind: state.EventLost, Lost: b.lost}
			if sendEvent(w, c, "", encodeJSON(lost)) != nil {
				return
			}
		}
		for _, e := range b.events {
			if e.time.Before(from.time(e.source)) {
				continue // the View shows it
			}
			if sendEvent(w, c, "", e.line) != nil {
				return
			}
		}
		if b.ended {
			return
		}
		select {
		case <-b.wake:
		case <-r.Context().Done():
			return
		case <-beat.C:
			if sendComment(w, c) != nil {
				return
			}
		}
	}
}

// sendEvent sends one line of JSON.
func sendEvent(w http.ResponseWriter, c *http.ResponseController, before string, line []byte) error {
	_ = c.SetWriteDeadline(time.Now().Add(readerPatience))
	for _, part := range [][]byte{[]byte(before + "data: "), line, {'\n'}} { // the line ends with one already
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return c.Flush()
}

func sendComment(w http.ResponseWriter, c *http.ResponseController) error {
	_ = c.SetWriteDeadline(time.Now().Add(readerPatience))
	if _, err := w.Write([]byte(":\n\n")); err != nil {
		return err
	}
	return c.Flush()
}
