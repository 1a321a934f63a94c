package scanner

import "time"

// The constants of U6. They are no knobs: what they trade off is measured in docs/design.md.
const (
	eagerInterval = 20 * time.Millisecond // after a change, plugins tend to come in groups and to touch their socket again
	eagerFor      = time.Second
	duty          = 99 // a pause of 99 × the scan's time keeps scanning near 1 % of wall time …
	maxRest       = 5 * time.Second
)

// Pace decides when a root is scanned next (U6). It is pure: it reads no clock. The zero value paces at DefaultInterval.
type Pace struct {
	// Interval is the least pause between the end of a scan and the start of the next. 0: DefaultInterval.
	Interval time.Duration

	eagerUntil time.Time
}

// Next returns when to scan again after a scan that ended at now, took so long, and saw a change among the candidates or not.
func (p *Pace) Next(now time.Time, took time.Duration, changed bool) time.Time {
	interval := p.Interval
	if interval <= 0 {
		interval = DefaultInterval
	}
	wait := max(interval, min(duty*took, maxRest))
	if changed {
		p.eagerUntil = now.Add(eagerFor)
	}
	if now.Before(p.eagerUntil) {
		// A slow filesystem stays below a fifth of wall time even then.
		wait = min(wait, max(eagerInterval, 4*took))
	}
	return now.Add(wait)
}
