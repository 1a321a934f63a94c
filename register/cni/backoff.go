package cni

import (
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// The numbers of CN10. A plugin whose STATUS fails at start mostly waits for its own daemon, which takes seconds.
const (
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
	jitter     = 0.2
)

// fixedClock keeps backoff/v4 from reading the time: with MaxElapsedTime 0 it has no use for it.
type fixedClock struct{}

func (fixedClock) Now() time.Time { return time.Time{} }

// delays are the pauses between failed tries. The zero value starts with the first.
type delays struct{ source *backoff.ExponentialBackOff }

func (d *delays) next(random *rand.Rand) time.Duration {
	if d.source == nil {
		d.source = backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(firstDelay),
			backoff.WithMultiplier(2),
			backoff.WithMaxInterval(maxDelay),
			backoff.WithRandomizationFactor(0),
			backoff.WithMaxElapsedTime(0), // the default gives up for ever after 15 minutes
			backoff.WithClockProvider(fixedClock{}),
		)
	}
	spread := 1 + jitter*(2*random.Float64()-1)
	return min(maxDelay, time.Duration(float64(d.source.NextBackOff())*spread))
}

func (d *delays) reset() { d.source = nil }
