package main

import (
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/scanner"
)

// newLogger makes the daemon's log on stderr. Each line has the time, short where somebody looks on, and none where the journal adds its own.
func newLogger(stderr *os.File, level, format string) hclog.Logger {
	o := &hclog.LoggerOptions{Output: stderr, Level: hclog.LevelFromString(level), JSONFormat: format == "json"}
	switch {
	case o.JSONFormat:
		o.Name = "plugpoll"
	case isTerminal(stderr):
		o.TimeFormat = "15:04:05.000"
		if os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
			o.Color, o.ColorHeaderOnly = hclog.AutoColor, true
		}
	case isJournal(stderr):
		o.DisableTime = true
	}
	return hclog.New(o)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// shown is the value of a log line for a text that comes from elsewhere: hclog prints a newline in a plain one as a new line, which could forge one (D10).
func shown(text string) any {
	if scanner.Quote(text) == text {
		return text
	}
	return hclog.Quote(text)
}

// listed is the value of a log line for several paths.
func listed(paths []string) any {
	if len(paths) == 1 {
		return shown(paths[0])
	}
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = scanner.Quote(p)
	}
	return strings.Join(quoted, ",")
}
