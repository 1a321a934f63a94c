package scanner

import "time"

// The constants of U6. They are no knobs: what they trade off is measured in docs/design.md.
const (
	eagerInterval = 20 * time.Millisecond // after a change, plugins tend to come in groups and to touch their socket again
	eagerFor      = time.Second
	duty          = 99 // a pause of 99 × the scan's time keeps scanning near 1 % of wall time …
	maxRest       = 5 * time.Second
	leastDuty     = 4 // … and one of 4 × that, whatever the scan before took, below a fifth
)

// Pace decides when a root is scanned next (U6). It is pure: it reads no clock. The zero value paces at DefaultInterval.
type Pace struct {
	// Interval is the least pause between the end of a scan and the start of the next. 0: DefaultInterval.
	Interval time.Duration

	eagerUntil time.Time
	scanned    bool
	before     time.Duration // what the scan before took
}

// Next returns when to scan again after a scan that ended at now, took so long, and saw a change among the candidates or not.
func (p *Pace) Next(now time.Time, took time.Duration, changed bool) time.Time {
	interval := p.Interval
	if interval <= 0 {
		interval = DefaultInterval
	}
	steady := took
	if p.scanned {
		// A filesystem that is slow is so twice. One slow scan may be the machine's doing.
		steady = min(took, p.before)
	}
	p.scanned, p.before = true, took
	wait := max(interval, min(max(duty*steady, leastDuty*took), maxRest))
	if changed {
		p.eagerUntil = now.Add(eagerFor)
	}
	if now.Before(p.eagerUntil) {
		wait = min(wait, max(eagerInterval, leastDuty*took))
	}
	return now.Add(wait)
}
