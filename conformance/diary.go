package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// What can happen, as a diary names it. The first three are calls of a handler, noted when they begin but for Register, which is noted when it has succeeded;
// the others are calls of a plugin.
const (
	validated    = "Validate"
	registered   = "Register"
	deregistered = "Deregister"
	asked        = "GetInfo"
	told         = "Notify(true)"
	refused      = "Notify(false)"
)

// event is something that happened.
type event struct {
	at         time.Time
	what, name string
	path       string   // the endpoint that a handler was given, or the plugin's socket
	text       string   // that a refused plugin was told
	versions   []string // that a handler was given
}

// diary has what happened, in order.
type diary struct {
	mu     sync.Mutex
	events []event
	more   chan struct{} // closed when there is one more event
	over   chan struct{} // closed when the registrar has ended
	err    error         // of its Run, once over is closed
}

func newDiary() *diary { return &diary{more: make(chan struct{}), over: make(chan struct{})} }

func (d *diary) note(e event) {
	e.at = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	close(d.more)
	d.more = make(chan struct{})
}

// mark is a moment.
func (d *diary) mark() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.events)
}

// since returns what happened after mark and is wanted.
func (d *diary) since(mark int, wanted func(event) bool) (found []event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events[mark:] {
		if wanted(e) {
			found = append(found, e)
		}
	}
	return found
}

var errReturned = errors.New("its Run returned by itself")

// await returns the first n events after mark that are wanted, or those of them that there were when ctx or the registrar ended, with an error.
func (d *diary) await(ctx context.Context, mark, n int, wanted func(event) bool) ([]event, error) {
	for {
		d.mu.Lock()
		more := d.more
		d.mu.Unlock()
		found := d.since(mark, wanted)
		if len(found) >= n {
			return found[:n], nil
		}
		select {
		case <-more:
		case <-d.over:
			if d.err == nil {
				return found, errReturned
			}
			return found, fmt.Errorf("%w, with the error %w", errReturned, d.err)
		case <-ctx.Done():
			return found, ctx.Err()
		}
	}
}

// is wants what happened to a name.
func is(what, name string) func(event) bool {
	return func(e event) bool { return e.what == what && e.name == name }
}

// at wants what happened at a path.
func at(what, path string) func(event) bool {
	return func(e event) bool { return e.what == what && e.path == path }
}

// any of a name, but for being asked.
func concerns(names ...string) func(event) bool {
	return func(e event) bool { return e.what != asked && slices.Contains(names, e.name) }
}

// arrival is how long the answer of a plugin that was told may be on its way: one that dies meanwhile was not told, as the registrar sees it.
const arrival = 50 * time.Millisecond

// wait waits until something has happened n times after mark, and returns the last of them.
func (s *stage) wait(mark, n int, what, name string, limit time.Duration) (event, error) {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	found, err := s.await(ctx, mark, n, is(what, name))
	switch {
	case err == nil && what == told:
		return found[n-1], pause(s.ctx, arrival)
	case err == nil:
		return found[n-1], nil
	case s.ctx.Err() != nil:
		return event{}, s.ctx.Err()
	case !errors.Is(err, context.DeadlineExceeded):
		return event{}, err
	case n > 1:
		return event{}, fmt.Errorf("%d %s of %q within %v, not %d", len(found), what, name, limit, n)
	}
	return event{}, fmt.Errorf("no %s of %q within %v", what, name, limit)
}

// soon waits until something has happened to a name.
func (s *stage) soon(what, name string) (event, error) { return s.wait(0, 1, what, name, s.Patience) }

// silent waits for the subject's Quiet, and returns an error if what is unwanted has happened since mark.
func (s *stage) silent(mark int, unwanted func(event) bool) (string, error) {
	if err := pause(s.ctx, s.Quiet); err != nil {
		return "", err
	}
	if found := s.since(mark, unwanted); len(found) > 0 {
		return "", fmt.Errorf("%d calls within %v, the first %s of %q at %s", len(found), s.Quiet, found[0].what, found[0].name, scanner.Quote(found[0].path))
	}
	return fmt.Sprintf("none in %v", s.Quiet), nil
}

// after shows how long something took.
func after(e event, since time.Time) string { return fmt.Sprintf("%.2f s", e.at.Sub(since).Seconds()) }
