package state

import (
	"container/heap"
	"iter"
	"time"
)

// slots hands out a fixed number of places. First tries go before retries, the newest first, and retries never take the last quarter (R11). Among
// retries the one that has waited longest goes first: newest first would leave the older ones out for ever when there are more than places.
type slots struct {
	size, used     int
	first, retries tickets
	sequence       uint64
	queued         func(*socket) *ticket
}

// ticket is a socket's place in a queue; it has one at most.
type ticket struct {
	socket   *socket
	sequence uint64 // 0: it is in no queue
	retry    bool
	index    int
}

// push queues a socket. If it is queued already it keeps its place, unless it moves between first tries and retries.
func (q *slots) push(s *socket, retry bool) {
	t := q.queued(s)
	if t.sequence != 0 && t.retry == retry {
		return
	}
	q.drop(s)
	q.sequence++
	*t = ticket{socket: s, sequence: q.sequence, retry: retry}
	heap.Push(q.heap(t), t)
}

// drop takes a socket out of the queue.
func (q *slots) drop(s *socket) {
	t := q.queued(s)
	if t.sequence == 0 {
		return
	}
	heap.Remove(q.heap(t), t.index)
	t.sequence = 0
}

func (q *slots) heap(t *ticket) *tickets {
	if t.retry {
		return &q.retries
	}
	return &q.first
}

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
	var t *ticket
	switch {
	case q.used < q.size && q.first.Len() > 0:
		t = q.first[0]
	case q.used < q.size-q.size/4 && q.retries.Len() > 0:
		t = q.retries[0]
	default:
		return nil
	}
	q.drop(t.socket)
	return t.socket
}

func (q *slots) take()    { q.used++ }
func (q *slots) release() { q.used-- }

// tickets is a heap: of first tries with the newest on top, of retries with the oldest.
type tickets []*ticket

func (h tickets) Len() int { return len(h) }
func (h tickets) Less(i, j int) bool {
	if h[i].retry {
		return h[i].sequence < h[j].sequence
	}
	return h[i].sequence > h[j].sequence
}

func (h tickets) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *tickets) Push(x any) {
	t := x.(*ticket)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *tickets) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

// alarm is when a socket wants to be looked at; it has one at most.
type alarm struct {
	socket *socket
	at     time.Time // zero: never
	index  int
}

// alarms is a heap with the earliest on top.
type alarms []*alarm

// set moves the alarm of s. The zero time takes it away.
func (h *alarms) set(s *socket, at time.Time) {
	a := &s.alarm
	switch {
	case a.at.Equal(at):
	case at.IsZero():
		heap.Remove(h, a.index)
		a.at = at
	case a.at.IsZero():
		a.socket, a.at = s, at
		heap.Push(h, a)
	default:
		a.at = at
		heap.Fix(h, a.index)
	}
}

func (h alarms) first() time.Time {
	if len(h) == 0 {
		return time.Time{}
	}
	return h[0].at
}

// due takes away and yields what has come.
func (h *alarms) due(now time.Time) iter.Seq[*socket] {
	return func(yield func(*socket) bool) {
		for len(*h) > 0 && !(*h)[0].at.After(now) {
			a := heap.Pop(h).(*alarm)
			a.at = time.Time{}
			if !yield(a.socket) {
				return
			}
		}
	}
}

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarms) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}

func (h *alarms) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return a
}
