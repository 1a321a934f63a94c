// Package stream carries events to readers that may be slow (O4).
package stream

import (
	"context"
	"iter"
	"sync"
)

// Backlog is how many events a slow reader may be behind before it loses the oldest.
const Backlog = 1024

// Reader is one reader's place in a stream of events. Make one with New; its methods are safe for concurrent use.
type Reader[E any] struct {
	told func(next E, lost int) E

	mu     sync.Mutex
	first  *E // never lost; nil once it was read
	events []E
	lost   int
	closed bool
	poke   chan struct{}
}

// New returns a place at which first is read before anything else. told makes the event that says how many were lost before the next one.
func New[E any](first E, told func(next E, lost int) E) *Reader[E] {
	return &Reader[E]{told: told, first: &first, poke: make(chan struct{}, 1)}
}

// All returns the events as a sequence to range over once. It ends with ctx, or when all was read that was published before Finish. leave is called, once or
// more, when nobody will read any more; whoever never ranges over the sequence is let go with ctx.
func (r *Reader[E]) All(ctx context.Context, leave func()) iter.Seq[E] {
	stop := context.AfterFunc(ctx, leave)
	return func(yield func(E) bool) {
		defer stop()
		defer leave()
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

// Publish adds an event. It never blocks: a reader that is too far behind loses the oldest one.
func (r *Reader[E]) Publish(e E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == Backlog {
		r.events = r.events[1:]
		r.lost++
	}
	r.events = append(r.events, e)
	r.signal()
}

// Finish says that there will be no more events.
func (r *Reader[E]) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.signal()
}

func (r *Reader[E]) signal() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// next returns the oldest event if there is one, and whether there may be more.
func (r *Reader[E]) next() (e E, ok, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first != nil {
		e, r.first = *r.first, nil
		return e, true, true
	}
	if r.lost > 0 {
		e = r.told(r.events[0], r.lost)
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
