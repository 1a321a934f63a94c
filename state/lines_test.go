package state

import (
	"testing"
	"time"
)

// O1, as a table: a failure is said once, each new cause too, again after an hour or a recovery, never more than eight times an hour.
func TestLineLevels(t *testing.T) {
	var l Lines
	now := start
	for i, step := range []struct {
		after time.Duration
		cause string // empty: it recovers
		want  Level
	}{
		{0, "", Debug},
		{0, "a", Warn},
		{time.Minute, "a", Debug},
		{time.Minute, "b", Warn},
		{time.Minute, "a", Debug},
		{time.Minute, "", Notice},
		{time.Minute, "", Debug},
		{time.Minute, "a", Warn},
		{time.Hour, "a", Warn},
		{0, "c", Warn},
		{0, "d", Warn},
		{0, "e", Warn},
		{0, "f", Warn},
		{0, "g", Warn},
		{0, "h", Warn},
		{0, "i", Warn},
		{0, "j", Debug},
		{0, "", Notice},
		{0, "k", Debug},
		{0, "", Debug},
	} {
		now = now.Add(step.after)
		say := l.Level
		if step.cause == "" {
			say = func(time.Time, string) Level { return l.Recovered() }
		}
		if got := say(now, step.cause); got != step.want {
			t.Errorf("step %d (%q): level %d, want %d", i, step.cause, got, step.want)
		}
	}
}
