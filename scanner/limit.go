package scanner

import (
	"maps"
	"time"
)

// This file decides how long a call may take before it is given up (U4). That is Config.CallTimeout, but directories that hang seldom hang alone, and
// the time that is given to each of them adds up while the rest of the tree waits. So after the first that is given up, a scan gives the others a short
// time only. That may hit one that is slow and works, so it is remembered how long a call took in the end: who was slow gets the time next time,
// who hung gets little of it for a while.

const (
	// briefTimeout is long for a directory that works and short for the tree that waits.
	briefTimeout = 250 * time.Millisecond
	// holdOff is how long a path that hung and answers again is not believed in.
	holdOff = 30 * time.Second
	// slowFor is how long it is remembered that a path is slow, and slowFactor how many times that long it may take.
	slowFor    = 10 * time.Minute
	slowFactor = 4
)

// past is what is known about a call that was given up and has returned. The zero value: nothing.
type past struct {
	took     time.Duration
	returned time.Time
}

// limitOf says how long a call may take. timeout is Config.CallTimeout, troubled whether the scan has given up a call already.
func limitOf(timeout time.Duration, troubled bool, p past, now time.Time) time.Duration {
	brief := min(timeout, briefTimeout)
	hung, ago := p.took >= timeout, now.Sub(p.returned)
	switch {
	case hung && ago < holdOff:
		return brief
	case !troubled:
		return timeout
	case !hung && ago < slowFor:
		return min(timeout, max(brief, slowFactor*p.took))
	}
	return brief
}

// limit is limitOf for a path.
func (l *calls) limit(timeout time.Duration, troubled bool, path string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return limitOf(timeout, troubled, l.past[path], time.Now())
}

// soonest is the least that limit may be for any path.
func (l *calls) soonest(timeout time.Duration, troubled bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if troubled || len(l.past) > 0 {
		return min(timeout, briefTimeout)
	}
	return timeout
}

// forget lets go of what is too long ago to matter.
func (l *calls) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.past) > 0 {
		now := time.Now()
		maps.DeleteFunc(l.past, func(_ string, p past) bool { return now.Sub(p.returned) >= max(holdOff, slowFor) })
	}
}
