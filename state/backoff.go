package state

import (
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// The numbers of R12.
const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 2 * time.Minute
)

const jitter = 0.2 // of all Delays

// fixedClock keeps backoff/v4 from reading the time: with MaxElapsedTime 0 it has no use for it.
type fixedClock struct{}

func (fixedClock) Now() time.Time { return time.Time{} }

// Delays are the pauses between failed tries: each is twice the one before, with 20 % jitter. The zero value starts with the first. Package register/cni has its
// own numbers for them (CN10).
type Delays struct{ source *backoff.ExponentialBackOff }

// Next returns the pause after one more failure: first after the first one, and never more than most.
func (d *Delays) Next(random *rand.Rand, first, most time.Duration) time.Duration {
	if d.source == nil {
		d.source = backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(first),
			backoff.WithMultiplier(2),
			backoff.WithMaxInterval(most),
			backoff.WithRandomizationFactor(0),
			backoff.WithMaxElapsedTime(0), // the default gives up for ever after 15 minutes
			backoff.WithClockProvider(fixedClock{}),
		)
	}
	spread := 1 + jitter*(2*random.Float64()-1)
	return min(most, time.Duration(float64(d.source.NextBackOff())*spread))
}

// Reset starts again with the first.
func (d *Delays) Reset() { d.source = nil }

// delays are those between the tries of one instance (R12).
type delays struct{ pauses Delays }

func (d *delays) next(random *rand.Rand) time.Duration {
	return d.pauses.Next(random, firstDelay, maxDelay)
}

func (d *delays) reset() { d.pauses.Reset() }
