package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// progress shows on a terminal how far a long look has come: one line, written anew every progressEvery, and taken away at the end. A nil one
// shows nothing.
type progress struct {
	terminal io.Writer
	shared   bool // the entries are printed on a terminal as well, which is taken to be this one
	// text is what is being done and how far it has come. nil: the entries and directories that were seen.
	text func() string

	mu                   sync.Mutex
	began                time.Time
	entries, directories int
	width                int // of the line that is shown; 0: none
}

// start begins to count the time. The goroutine that it starts ends with end, after which no line is left.
func (p *progress) start() (end func()) {
	if p == nil {
		return func() {}
	}
	p.began = time.Now()
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for timer := time.NewTimer(progressAfter); ; timer.Reset(progressEvery) {
			select {
			case <-stop:
				return
			case <-timer.C:
				p.draw()
			}
		}
	})
	return func() {
		close(stop)
		work.Wait()
		p.clear()
	}
}

// step counts one entry, and has show print it, with no line in its way.
func (p *progress) step(directory bool, show func()) {
	if p == nil {
		show()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries++
	if directory {
		p.directories++
	}
	if p.shared {
		p.clear()
	}
	show()
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.text
	if text == nil {
		text = p.seen
	}
	line := text() + ", " + spell(time.Since(p.began).Truncate(progressEvery))
	// Spaces, since not every terminal knows how to clear a line.
	_, _ = fmt.Fprintf(p.terminal, "\r%-*s", p.width, line)
	p.width = max(p.width, len(line))
}

func (p *progress) seen() string {
	return fmt.Sprintf("looking: %s, %s so far", counted(p.entries, "entry", "entries"), counted(p.directories, "directory", "directories"))
}

func (p *progress) clear() {
	if p.width > 0 {
		_, _ = fmt.Fprintf(p.terminal, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}
