package state

import (
	"container/heap"
	"iter"
	"time"
)

// slots hands out a fixed number of places. First tries go before retries, the newest first, and retries never take the last quarter (R11).
type slots struct {
	size, used     int
	first, retries tickets
	sequence       uint64
	queued         func(*socket) *ticket
}

// ticket is a socket's place in a queue. A socket whose ticket differs from the queue's copy has left the queue or taken another place.
type ticket struct {
	socket   *socket
	sequence uint64
	retry    bool
}

// push queues a socket. If it is queued already it keeps its place, unless what was a retry is now a first try.
func (q *slots) push(s *socket, retry bool) {
	t := q.queued(s)
	if t.sequence != 0 && (t.retry == retry || retry) {
		return
	}
	q.sequence++
	*t = ticket{s, q.sequence, retry}
	if retry {
		heap.Push(&q.retries, *t)
	} else {
		heap.Push(&q.first, *t)
	}
}

// drop takes a socket out of the queue.
func (q *slots) drop(s *socket) { q.queued(s).sequence = 0 }

// grant yields the sockets that may try to start now. Whoever starts takes a place by take.
func (q *slots) grant() iter.Seq[*socket] {
	return func(yield func(*socket) bool) {
		for {
			s := q.next()
			if s == nil || !yield(s) {
				return
			}
		}
	}
}

func (q *slots) next() *socket {
	if q.used < q.size {
		if s := q.pop(&q.first); s != nil {
			return s
		}
	}
	if q.used < q.size-q.size/4 {
		return q.pop(&q.retries)
	}
	return nil
}

func (q *slots) pop(h *tickets) *socket {
	for h.Len() > 0 {
		t := heap.Pop(h).(ticket)
		if own := q.queued(t.socket); own.sequence == t.sequence {
			own.sequence = 0
			return t.socket
		}
	}
	return nil
}

func (q *slots) take()    { q.used++ }
func (q *slots) release() { q.used-- }

// tickets is a heap with the newest ticket on top.
type tickets []ticket

func (h tickets) Len() int           { return len(h) }
func (h tickets) Less(i, j int) bool { return h[i].sequence > h[j].sequence }
func (h tickets) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *tickets) Push(x any)        { *h = append(*h, x.(ticket)) }
func (h *tickets) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}

// timers is a heap of times at which a socket wants to be looked at. An entry that is no longer of use costs one look.
type timers []timer

type timer struct {
	at     time.Time
	socket *socket
}

func (h *timers) add(at time.Time, s *socket) { heap.Push(h, timer{at, s}) }

func (h timers) first() time.Time {
	if len(h) == 0 {
		return time.Time{}
	}
	return h[0].at
}

func (h *timers) due(now time.Time) iter.Seq[*socket] {
	return func(yield func(*socket) bool) {
		for len(*h) > 0 && !(*h)[0].at.After(now) {
			if !yield(heap.Pop(h).(timer).socket) {
				return
			}
		}
	}
}

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timers) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timers) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}
