package scanner

import (
	"context"
	"time"
)

// watchdog is what a scan needs to have its calls made (U4).
type watchdog struct {
	caller *caller
	timer  *time.Timer
	// held are the paths that nothing may be called on, and why.
	held map[string]error
	full error // not nil: nothing may be called at all
	// troubled says that this scan has given up a call.
	troubled bool
	// nested says that the scan itself is a job of its caller.
	nested bool
}

// attempt runs the scan, or a copy of it that it returns.
//
// To hand a job over takes longer than most calls do. So, where no call is stuck yet, a copy is first run as one job, from the caller's goroutine.
// If one of its calls does not return, all is lost that it knew, and the scan begins again, now with a job for each step. It does so at once where
// Config.Each is to hear of each entry, which must be once and from the goroutine of Scan.
func (w *scan) attempt(ctx context.Context) (_ *scan, unchanged bool, err error) {
	if err := w.begin(ctx); err != nil {
		return w, false, err
	}
	defer w.end()
	if w.cfg.Each == nil && len(w.held) == 0 {
		whole := *w
		var same bool // these two and whole may still be written to if the job is given up
		var failed error
		stuck, ended := w.ask(ctx, func(c *caller) {
			whole.caller, whole.nested = c, true
			same, failed = whole.run(ctx)
		})
		if ended != nil {
			return w, false, ended
		}
		if stuck == nil {
			return &whole, same, failed
		}
	}
	unchanged, err = w.run(ctx)
	return w, unchanged, err
}

// begin takes stock of the calls that are stuck. One that a scan's end has left behind has its time like any other.
func (w *scan) begin(ctx context.Context) error {
	w.calls.forget()
	for c, g := range w.calls.left() {
		if g.after == 0 && !g.apart {
			if err := w.await(ctx, c, g); err != nil {
				return err
			}
		}
	}
	for _, g := range w.calls.left() {
		if g.after == 0 && w.cfg.CallTimeout > 0 && time.Since(g.Since) >= w.cfg.CallTimeout {
			g.after = w.cfg.CallTimeout
		}
		if g.after > 0 {
			_ = w.hold(g)
		}
	}
	return nil
}

func (w *scan) await(ctx context.Context, c *caller, g givenUp) error {
	var timeout <-chan time.Time
	if w.cfg.CallTimeout > 0 {
		timer := time.NewTimer(time.Until(g.Since.Add(w.cfg.CallTimeout)))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-c.ended:
	case <-timeout:
		w.troubled = true
	case <-ctx.Done():
	}
	return ctx.Err()
}

// hold keeps this scan away from the path of a call that is stuck.
func (w *scan) hold(call givenUp) error {
	if w.held == nil {
		w.held = map[string]error{}
	}
	path := call.Path
	if path == w.root {
		path = w.cfg.Root
	}
	err := &Error{Op: call.Op, Path: path, Err: noAnswer(call.after)}
	w.held[call.Path] = err
	if max(len(w.held), w.calls.hung()) >= maxStuck && w.full == nil {
		w.full = &Error{Op: "list", Path: w.cfg.Root, Err: tooManyStuck(maxStuck)}
	}
	return err
}

// barred says why nothing may be called on path, nil if it may.
func (w *scan) barred(path string) error {
	if err := w.held[path]; err != nil {
		return err
	}
	return w.full
}

// ask has a job done that makes calls. The job is given up if one of its calls does not return: stuck is that call's error then. A job changes
// what it likes of the scan, but never while it makes a call. ended is the context's error.
func (w *scan) ask(ctx context.Context, job func(*caller)) (stuck, ended error) {
	if w.nested {
		job(w.caller)
		return nil, nil
	}
	if w.caller == nil {
		w.caller = w.newCaller()
		w.caller.content, w.content = w.content, nil
	}
	if w.timer == nil {
		w.timer = time.NewTimer(max(w.calls.soonest(w.cfg.CallTimeout, w.troubled), 0))
		if w.cfg.CallTimeout < 0 {
			w.timer.Stop()
		}
	}
	w.caller.jobs <- job
	for {
		select {
		case <-w.caller.done:
			return nil, nil
		case <-ctx.Done():
			w.caller.quit(&w.calls, false)
			w.caller = nil
			return nil, ctx.Err()
		case <-w.timer.C:
			// It is set once and not for each call, so it may be about a call that has returned long since.
			call, stuck, later := w.caller.giveUp(&w.calls, w.cfg.CallTimeout, w.troubled)
			if !stuck {
				w.timer.Reset(later)
				continue
			}
			close(w.caller.jobs)
			w.caller, w.troubled = nil, true
			w.timer.Reset(w.calls.soonest(w.cfg.CallTimeout, true))
			return w.hold(call), nil
		}
	}
}

// end lets the caller go, and waits for that.
func (w *scan) end() {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.caller != nil {
		close(w.caller.jobs)
		<-w.caller.ended
		w.content = w.caller.content
	}
}
