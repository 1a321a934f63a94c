package main

import (
	"iter"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/state"
)

// feedLength is how many events a reader may be behind before it loses the oldest.
const feedLength = 1024

// feed is one subscription to the events of the Manager and of each Syncer for all who read them over HTTP. Each event is encoded once, and a reader that does not read holds a
// number and nothing else, so that it costs the Manager nothing.
type feed struct {
	mu    sync.Mutex
	ring  [feedLength]feedEvent
	next  uint64        // number of the next event
	wake  chan struct{} // closed when there is more
	ended bool
}

type feedEvent struct {
	source int // 0: the Manager; from 1 on: the Syncers
	time   time.Time
	line   []byte
}

func newFeed() *feed { return &feed{wake: make(chan struct{})} }

// run takes the events until all end.
func (f *feed) run(events iter.Seq[state.Event], ofCNI ...iter.Seq[cni.Event]) {
	var reading sync.WaitGroup
	for i, events := range ofCNI {
		reading.Go(func() {
			for e := range events {
				if e.Kind != cni.EventView {
					f.add(feedEvent{source: 1 + i, time: e.Time, line: encodeJSON(cniEventOf(e))})
				}
			}
		})
	}
	for e := range events {
		if e.Kind != state.EventView { // each reader gets a View of its own time
			f.add(feedEvent{time: e.Time, line: encodeJSON(e)})
		}
	}
	reading.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	close(f.wake)
}

func (f *feed) add(e feedEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring[f.next%feedLength] = e
	f.next++
	close(f.wake)
	f.wake = make(chan struct{})
}

// place is the number of the next event.
func (f *feed) place() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// batch is what a reader gets at once.
type batch struct {
	events []feedEvent
	next   uint64 // where to go on
	lost   int    // how many came before these and are gone
	wake   <-chan struct{}
	ended  bool
}

// from returns the events from place on.
func (f *feed) from(place uint64) batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := batch{next: f.next, wake: f.wake, ended: f.ended}
	if f.next > feedLength && place < f.next-feedLength {
		oldest := f.next - feedLength
		b.lost = int(oldest - place)
		place = oldest
	}
	for ; place < f.next; place++ {
		b.events = append(b.events, f.ring[place%feedLength])
	}
	return b
}
