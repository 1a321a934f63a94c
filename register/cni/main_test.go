package cni

import (
	"testing"

	"github.com/sasha-s/go-deadlock"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Under the race detector go-cni's locks are those of go-deadlock, whose timers go from one bubble to the next.
	deadlock.Opts.DeadlockTimeout = 0
	goleak.VerifyTestMain(m)
}
