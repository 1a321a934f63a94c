package scanner

import (
	"context"
	"iter"
	"time"
)

// Delta is what a Watch yields: the new Snapshot, and what changed since the one before.
type Delta struct {
	// Changes may be empty: an entry became stale or was confirmed, what is ignored changed, or only the error did.
	Changes []Change
	// Snapshot is never nil.
	Snapshot *Snapshot
}

// Watch scans again and again, at the pace of Pace (U6), and yields the first scan and then every one that changed the Snapshot, whose error
// reads differently, or that ended without an error after one with. A Delta that comes with an error may be used. It ends when ctx ends or the
// loop over it does. Scans run in the loop's own goroutine; a loop body that takes its time delays them.
func (s *Scanner) Watch(ctx context.Context) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		pace := Pace{Interval: s.cfg.Interval}
		var last *Snapshot
		var lastErr error
		for {
			began := time.Now()
			next, err := s.Scan(ctx, last)
			if ctx.Err() != nil {
				return
			}
			ended := time.Now()
			changes := Diff(last, next)
			if next != last || !sameError(err, lastErr) {
				if !yield(Delta{Changes: changes, Snapshot: next}, err) {
					return
				}
			}
			last, lastErr = next, err
			if !sleepUntil(ctx, pace.Next(ended, ended.Sub(began), len(changes) > 0)) {
				return
			}
		}
	}
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return sameText(a, b)
}

func sleepUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
