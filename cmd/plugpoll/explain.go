package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// filesystem is how scan -o json says how a directory is polled.
type filesystem struct {
	Type           string  `json:"type"`
	SkipsUnchanged bool    `json:"skips_unchanged"`
	Why            string  `json:"why"`
	SettleSeconds  float64 `json:"settle_seconds,omitzero"`
	LookSeconds    float64 `json:"look_seconds"`
	PauseSeconds   float64 `json:"pause_seconds"`
}

// outlook is what to expect of the next looks at a directory, after one that took so long.
type outlook struct {
	scanner.Polling
	took, pause time.Duration
}

func outlookOf(p scanner.Polling, took time.Duration) outlook {
	took = max(took, 0)
	pace := scanner.Pace{Interval: p.Interval}
	var now time.Time
	return outlook{p, took, pace.Next(now, took, false).Sub(now)}
}

func (o outlook) json() *filesystem {
	return &filesystem{
		Type: o.Type, SkipsUnchanged: o.SkipsUnchanged, Why: o.Why,
		SettleSeconds: o.Settle.Seconds(), LookSeconds: o.took.Round(time.Microsecond).Seconds(), PauseSeconds: o.pause.Round(time.Microsecond).Seconds(),
	}
}

const laterLooks = "Later ones cost one stat for each directory that has not changed, and read the others."

// text is a paragraph, a sentence a line; t says what was seen.
func (o outlook) text(t total) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	what := "every look reads every directory"
	if o.SkipsUnchanged {
		what = "directories that have not changed are skipped"
	}
	say("Filesystem %s: %s, because %s.", o.Type, what, o.Why)
	if o.SkipsUnchanged {
		say("A directory is skipped once it has been left alone for %s; each is read at least every %s.", spell(o.Settle), spell(scanner.FullEvery))
	}
	where := "in this directory"
	if t.Directories > 0 {
		where += fmt.Sprintf(" and %d below it", t.Directories)
	}
	say("This look took %s for %s %s.", spell(o.took), counted(t.entries(), "entry", "entries"), where)
	pause := "When nothing changes, the daemon looks again " + spell(o.pause) + " after the end of a look"
	switch {
	case !o.SkipsUnchanged:
		say("Every later one takes about as long.")
		say("%s: it spends %s of the time looking.", pause, share(o.took, o.pause))
	case o.pause > o.Interval:
		say(laterLooks)
		say("%s as long as this one, and %s after a short one.", pause, spell(o.Interval))
	default:
		say(laterLooks)
		say("%s.", pause)
	}
	return b.String()
}

// share says how much of the time is spent looking.
func share(look, pause time.Duration) string {
	percent := 100 * float64(look) / float64(look+pause)
	if percent < 0.1 {
		return "less than 0.1 %"
	}
	return "about " + short(percent) + " %"
}

// spell prints a duration for people, to about two digits.
func spell(d time.Duration) string {
	switch {
	case d < time.Millisecond-time.Microsecond/2:
		return short(float64(d)/float64(time.Microsecond)) + " µs"
	case d < time.Second-time.Millisecond/2:
		return short(float64(d)/float64(time.Millisecond)) + " ms"
	}
	return short(d.Seconds()) + " s"
}

func short(x float64) string {
	if x < 9.95 {
		return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
