package cni

import (
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/state"
)

// The numbers of O1.
const (
	repeatLine = time.Hour
	maxLines   = 8 // in repeatLine, about one kind of failure
)

// lines decides which failure deserves a line: the first, and each changed cause, once an hour (O1). Its zero value has said nothing.
type lines []line

type line struct {
	cause string
	at    time.Time
	past  bool // it recovered since
}

// level is how loud a failure with this cause is now.
func (l *lines) level(now time.Time, cause string) state.Level {
	*l = slices.DeleteFunc(*l, func(said line) bool { return now.Sub(said.at) >= repeatLine })
	if len(*l) == maxLines || slices.ContainsFunc(*l, func(said line) bool { return said.cause == cause && !said.past }) {
		return state.Debug
	}
	*l = append(*l, line{cause: cause, at: now})
	return state.Warn
}

// recovered lets every cause be said again, within the bound, and returns how loud the recovery is: as long as its failure was said, it is too.
func (l *lines) recovered() state.Level {
	level := state.Debug
	for i := range *l {
		if !(*l)[i].past {
			(*l)[i].past, level = true, state.Notice
		}
	}
	return level
}
