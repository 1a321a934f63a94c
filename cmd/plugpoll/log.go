package main

import (
	"io"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/scanner"
)

// newLogger makes the daemon's log on stderr, and the queue that it goes through, which must be closed. Each line has the time, short where somebody
// looks on, and none where the journal adds its own.
func newLogger(stderr *os.File, level, format string) (hclog.Logger, *logWriter) {
	o := hclog.LoggerOptions{JSONFormat: format == "json"}
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
	logTo := func(w io.Writer, level hclog.Level) hclog.Logger {
		o := o
		o.Level = level
		o.Output = output{w, stderr}
		if o.JSONFormat {
			o.Output = printableJSON{w}
		}
		return hclog.New(&o)
	}
	// That lines are missing is said at any level.
	direct := logTo(stderr, hclog.Warn)
	queue := newLogWriter(stderr, func(n int) { direct.Warn("the log was not read in time, lines are missing here", "lost", n) })
	return logTo(queue, hclog.LevelFromString(level)), queue
}

// output is a way to a file. hclog asks the file whether it takes colours; on Windows it has none for what is not the file itself.
type output struct {
	io.Writer
	file *os.File
}

// Fd is the file's.
func (o output) Fd() uintptr { return o.file.Fd() }

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
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
