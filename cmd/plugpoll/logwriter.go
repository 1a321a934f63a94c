package main

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// maxQueue is how many bytes of log may wait for a reader: some seconds of it at its loudest.
const maxQueue = 1 << 20

// logWriter stands between the log and where it goes: who logs never waits for who reads. Lines keep their order. When maxQueue is reached lines are
// dropped, and one line says how many once everything before it is written.
type logWriter struct {
	out  io.Writer
	lost func(n int) // writes to out that n lines are missing

	mu      sync.Mutex
	changed sync.Cond
	queue   [][]byte
	size    int // bytes in queue and in the line that is being written
	dropped int
	closed  bool
	gaveUp  bool          // what was left was thrown away
	done    chan struct{} // closed when everything is written
}

// newLogWriter starts one. Its goroutine ends with close.
func newLogWriter(out io.Writer, lost func(n int)) *logWriter {
	w := &logWriter{out: out, lost: lost, done: make(chan struct{})}
	w.changed.L = &w.mu
	go w.work()
	return w
}

// Write queues one line. It never blocks and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
	case w.dropped > 0 || w.size > 0 && w.size+len(line) > maxQueue:
		// After a dropped line the queue has to be written first: that makes one gap, where a reader that is only slow would see one at every other line.
		w.dropped++
	default:
		w.queue = append(w.queue, bytes.Clone(line))
		w.size += len(line)
		w.changed.Signal()
	}
	return len(line), nil
}

// close waits until everything is written, at most for patience, and gives up the rest. Lines that come later are dropped. A write that blocks
// cannot be ended: the goroutine ends with it.
func (w *logWriter) close(patience time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.changed.Signal()
	if w.gaveUp {
		patience = 0
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(patience):
		w.mu.Lock()
		w.gaveUp, w.queue, w.dropped = true, nil, 0
		w.mu.Unlock()
	}
}

func (w *logWriter) work() {
	defer close(w.done)
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case len(w.queue) > 0:
			line := w.queue[0]
			w.queue[0], w.queue = nil, w.queue[1:]
			w.unlocked(func() { _, _ = w.out.Write(line) })
			w.size -= len(line)
		case w.dropped > 0:
			n := w.dropped
			w.dropped = 0
			w.unlocked(func() { w.lost(n) })
		case w.closed:
			return
		default:
			w.changed.Wait()
		}
	}
}

func (w *logWriter) unlocked(write func()) {
	w.mu.Unlock()
	defer w.mu.Lock()
	write()
}
