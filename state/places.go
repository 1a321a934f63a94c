package state

import (
	"slices"
	"time"
)

// running is the probes, or the handler calls, that hold a place, in the order in which they began.
type running []*flight

// manyOver is how many there may be before those that are over are taken out: behind one that never ends they would be kept for ever.
const manyOver = 256

func (r *running) add(f *flight) {
	if len(*r) >= manyOver {
		*r = slices.DeleteFunc(*r, func(f *flight) bool { return f.over })
	}
	*r = append(*r, f)
}

// oldest returns the one that has run longest; nil: none runs.
func (r *running) oldest() *flight {
	for len(*r) > 0 {
		if f := (*r)[0]; !f.over {
			return f
		}
		(*r)[0] = nil
		*r = (*r)[1:]
	}
	return nil
}

// makeRoom frees places that are held for long, if somebody waits for one, and reports whether it did (R11).
func (c *Core) makeRoom() bool {
	made := false
	for f := c.parkable(); f != nil && c.now.Sub(f.began) >= parkAge; f = c.parkable() {
		c.park(f)
		made = true
	}
	if f := c.evictable(); f != nil && !c.now.Before(c.evictAt(f)) {
		c.evict(f)
		made = true
	}
	return made
}

// parkable is the next handler call to be parked. Once it is stopping only what Deregister waits for matters.
func (c *Core) parkable() *flight {
	if c.parked == c.cfg.MaxParked || c.stopping && !c.cfg.DeregisterOnStop {
		return nil
	}
	return c.calling.oldest()
}

// evictable is the next probe to give way.
func (c *Core) evictable() *flight {
	if c.stopping || c.probes.used < c.probes.size {
		return nil
	}
	for c.probes.first.Len() > 0 {
		if s := c.probes.first[0].socket; c.wantsProbe(s) == none {
			c.probes.drop(s) // it has come to want something else
			continue
		}
		return c.probing.oldest()
	}
	return nil
}

// roomAt is when makeRoom has something to do if nothing happens before. Zero: never.
func (c *Core) roomAt() (at time.Time) {
	if f := c.parkable(); f != nil {
		at = f.began.Add(parkAge)
	}
	if f := c.evictable(); f != nil {
		if evict := c.evictAt(f); at.IsZero() || evict.Before(at) {
			at = evict
		}
	}
	return at
}

// stall is how long probes have stood still, and what was done about it. The zero value: they move.
type stall struct {
	since       time.Time // when a probe last ended by itself, or the last round of evictions began
	round, left int       // how many gave way in that round at most, and how many still may
}

// count counts one that gives way.
func (s *stall) count(now time.Time) {
	if s.left == 0 {
		s.round = max(1, 2*s.round)
		s.since, s.left = now, s.round
	}
	s.left--
}

// evictAt is when f gives way. As long as probes end, first tries get on, and whoever takes long may do so because the machine has much to do: what is
// given up then would only have to be done again. If none ends, one gives way, and 20 ms later two, then four and so on. But nobody holds on to a place for
// long.
func (c *Core) evictAt(f *flight) time.Time {
	from, latest := f.began.Add(evictAge), f.began.Add(evictAgeAlways)
	if at := c.stall.since.Add(evictAge); c.stall.left == 0 && at.After(from) {
		from = at
	}
	if from.After(latest) {
		return latest
	}
	return from
}

// park lets a handler call go on without a place.
func (c *Core) park(f *flight) {
	f.over, f.parked = true, true
	c.parked++
	c.calls.release()
	c.tried(f.socket) // O3
	c.version++
}

// evict ends a probe so that a first try can begin. It is queued again at once, as a retry.
func (c *Core) evict(f *flight) {
	if c.now.Sub(f.began) < evictAgeAlways {
		c.stall.count(c.now)
	}
	s := f.socket
	c.dropProbe(s)
	s.evicted = true
	c.tried(s)
	c.touch(s)
}
