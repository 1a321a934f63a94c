package register

import (
	"context"
	"errors"
	"time"

	"github.com/plugpoll/plugpoll/state"
)

// looked is the end of a Look. Like a scan it is a call of a filesystem, which is waited for no longer than one when Run ends (S1).
type looked struct{ result state.Looked }

var errNoRoot = errors.New("no root has shown it")

// look has one path looked at. When Run ends it is given up like a scan.
func (l *loop) look(op state.Op) {
	r := l.rootOf(op.Path)
	if r == nil {
		l.post(state.Looked{ID: op.ID, Err: errNoRoot, Started: time.Now()})
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	l.looks[op.ID] = &work{"look", op.Path, cancel}
	go func() {
		started := time.Now()
		entry, err := r.scanner.Look(ctx, op.Path)
		if l.ctx.Err() != nil {
			r.scanner.Wait(context.Background())
		}
		l.post(looked{state.Looked{ID: op.ID, Entry: entry, Err: err, Started: started}})
	}()
}

// rootOf is the root whose scan has shown path.
func (l *loop) rootOf(path string) *watched {
	if len(l.roots) == 1 {
		return l.roots[0]
	}
	for _, r := range l.roots {
		if _, ok := r.last.At(path); ok {
			return r
		}
	}
	return nil
}

func (l *loop) takeLook(in state.Looked) {
	l.looks[in.ID].cancel()
	delete(l.looks, in.ID)
	l.step(in)
}

// rescan has a root scanned at the eager pace once (U6): that of a root in which something has changed, but not for as long as then. A scan that runs began
// before the look that found nothing, so it does not count.
func (l *loop) rescan(path string) {
	for _, r := range l.roots {
		if r.path == path {
			r.soon = r.busy
			r.next = earlier(r.next, r.eager())
		}
	}
}

// eager is when the next scan is due at the eager pace.
func (r *watched) eager() time.Time {
	pace := r.pace // a copy: only this once
	return pace.Next(r.ended, r.took, true)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
