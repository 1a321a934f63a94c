package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/state"
)

// Many requests must not cost the registrations anything. Each gets a View of its own moment while making these, and their JSON, has taken no more than a
// twentieth of the time, with shotBurst to begin with; beyond that requests share one, which is at most maxShotAge old.
const (
	shotShare  = 20
	shotBurst  = 250 * time.Millisecond
	maxShotAge = time.Second
)

// source is what there is to see of a Manager.
type source interface{ View() state.View }

// shot is a View, and those of the CNI directories, with the JSON that was made of them.
type shot struct {
	view   state.View
	cni    []cni.View
	place  uint64 // in the feed: what comes from there on is not in the view, or is older than it
	taken  time.Time
	spent  func(since time.Time)
	mu     sync.Mutex
	bodies map[string]*body
}

// body is an answer in JSON. Both forms are made when they are first asked for.
type body struct {
	plain  func() []byte
	zipped func() []byte
}

// shots gives out shots.
type shots struct {
	source source
	cni    []syncer
	place  func() uint64
	cost   atomic.Int64 // nanoseconds that were spent and not yet taken off the budget

	mu     sync.Mutex
	last   *shot
	budget time.Duration // it may be below zero
	asked  time.Time
}

// current returns a shot that is fresh enough, of a place in the feed not before since.
func (s *shots) current(since uint64) *shot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.last == nil {
		s.budget = shotBurst
	} else {
		s.budget += now.Sub(s.asked) / shotShare
	}
	s.budget = min(s.budget, shotBurst) - time.Duration(s.cost.Swap(0))
	s.asked = now
	if last := s.last; last != nil && s.budget <= 0 && last.place >= since && now.Sub(last.taken) < maxShotAge {
		return last
	}
	place := s.place()
	s.last = &shot{view: s.source.View(), cni: cniViews(s.cni), place: place, taken: now, spent: s.spent, bodies: map[string]*body{}}
	s.spent(now)
	return s.last
}

func (s *shots) spent(since time.Time) { s.cost.Add(int64(time.Since(since))) }

// time is the moment that it shows of a source in the feed.
func (s *shot) time(source int) time.Time {
	if source == 0 {
		return s.view.Time
	}
	return s.cni[source-1].Time
}

// body returns the JSON of what of makes of the View, which is kept under a name.
func (s *shot) body(name string, of func(state.View) any) *body {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bodies[name]; b != nil {
		return b
	}
	b := &body{}
	b.plain = sync.OnceValue(func() []byte {
		defer s.spent(time.Now())
		return encodeJSON(of(s.view))
	})
	b.zipped = sync.OnceValue(func() []byte {
		plain := b.plain()
		defer s.spent(time.Now())
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is a valid one
		_, _ = w.Write(plain)                             // a Buffer takes everything
		_ = w.Close()
		return out.Bytes()
	})
	s.bodies[name] = b
	return b
}

// encodeJSON is v as a line of JSON that neither a terminal nor a page obeys (D10): encoding/json escapes what HTML would, escape the rest.
func encodeJSON(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil { // a Report's Detail is the handler's own
		line, _ = json.Marshal(problem{Version: state.APIVersion, Error: "this cannot be written as JSON: " + err.Error()})
	}
	return append(escape(line), '\n')
}

// problem is the answer to a request that cannot be answered.
type problem struct {
	Version string `json:"version"`
	Error   string `json:"error"`
}
