package state

import (
	"slices"
	"time"
)

// The numbers of O1.
const (
	repeatLine = time.Hour
	maxLines   = 8 // in repeatLine, about one socket, root or kind of failure
)

// Lines decides which failure deserves a line in the log: the first, and each changed cause, once an hour (O1). Causes that take turns, or never are the same
// twice, do not make it a line for each try. The zero value has said nothing.
type Lines []line

type line struct {
	cause string
	at    time.Time
	past  bool // it recovered since
}

// Level is how loud a failure with this cause is now: Warn, or Debug if that was said already.
func (l *Lines) Level(now time.Time, cause string) Level {
	*l = slices.DeleteFunc(*l, func(said line) bool { return now.Sub(said.at) >= repeatLine })
	if len(*l) == maxLines || slices.ContainsFunc(*l, func(said line) bool { return said.cause == cause && !said.past }) {
		return Debug
	}
	*l = append(*l, line{cause: cause, at: now})
	return Warn
}

// Recovered lets every cause be said again, within the bound, and returns how loud the recovery is: Notice if its failure was said, else Debug.
func (l *Lines) Recovered() Level {
	level := Debug
	for i := range *l {
		if !(*l)[i].past {
			(*l)[i].past, level = true, Notice
		}
	}
	return level
}
