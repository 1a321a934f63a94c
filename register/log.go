package register

import (
	"cmp"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// messages are the constant texts of the log, one for each kind of event. doc.go lists the keys.
var messages = map[state.EventKind]string{
	state.EventFound:           "found",
	state.EventReplaced:        "replaced",
	state.EventAdopted:         "adopted, it is the same instance",
	state.EventGone:            "gone",
	state.EventRegistered:      "registered",
	state.EventAcknowledged:    "acknowledged",
	state.EventNotAcknowledged: "registered, but the plugin could not be told",
	state.EventObserved:        "observed, it is acceptable",
	state.EventStandby:         "standby, another instance of its name is registered",
	state.EventUnreachable:     "unreachable, it does not answer any more",
	state.EventReachable:       "reachable again",
	state.EventFailing:         "failing, will try again",
	state.EventRejected:        "rejected",
	state.EventIgnored:         "ignored, it is not a registration socket",
	state.EventDeregistered:    "deregistered",
	state.EventReport:          "handler reports",
	state.EventRootFailing:     "cannot read the whole directory; sockets found earlier are kept",
	state.EventRootRecovered:   "the directory can be read again",
	state.EventSynced:          "everything found at start was tried",
}

// maxValue is how many bytes of what a plugin says of itself stand in a line.
const maxValue = 256

// print writes an event to the log, as loud as the core decided (O1).
func (l *loop) print(e state.Emit) {
	level := hclog.Debug
	switch e.Level {
	case state.Notice:
		level = hclog.Info
	case state.Warn:
		level = hclog.Warn
	case state.Debug:
	}
	ev := e.Event
	var args []any
	add := func(key, value string) {
		if value != "" {
			args = append(args, key, shown(value))
		}
	}
	add("path", cmp.Or(ev.Path, ev.Root))
	if p := ev.Plugin; p != nil {
		add("type", scanner.Clean(p.Type, maxValue))
		add("name", scanner.Clean(p.Name, maxValue))
		if p.Endpoint != ev.Path {
			add("endpoint", scanner.Clean(p.Endpoint, maxValue))
		}
	}
	add("holder", ev.Holder)
	message := messages[ev.Kind]
	switch {
	case ev.Kind == state.EventRegistered:
		add("versions", scanner.Clean(strings.Join(ev.Plugin.Versions, ","), maxValue))
	case ev.Kind == state.EventDeregistered && ev.Error != "":
		message = "deregistered, but its handler failed to let it go"
	}
	if ev.Report != nil {
		add("health", string(ev.Report.Health))
		add("message", ev.Report.Message)
	}
	if ev.Tries > 0 {
		args = append(args, "tries", ev.Tries)
	}
	if !ev.NextTry.IsZero() {
		args = append(args, "next_try", ev.NextTry.Format("2006-01-02T15:04:05.000Z07:00"))
	}
	add("reason", string(ev.Reason))
	add("error", ev.Error)
	l.log.Log(level, message, args...)
}

// printCall writes the end of a call to a plugin, which nobody but a developer reads.
func (l *loop) printCall(message, path string, err error, args ...any) {
	args = append([]any{"path", shown(path)}, args...)
	if err != nil {
		args = append(args, "error", shown(scanner.Clean(err.Error(), 1024)))
	}
	l.log.Debug(message, args...)
}

func (l *loop) printTold(n state.Notify, err error) {
	message, args := "plugin told", []any{"registered", n.Registered}
	if err != nil {
		message = "plugin could not be told"
	}
	if n.Message != "" {
		args = append(args, "message", shown(n.Message))
	}
	l.printCall(message, n.Path, err, args...)
}

// shown is the value of a log line for a text that comes from elsewhere. hclog would print a newline in it as a new line, which could forge one (D10).
func shown(text string) any {
	if scanner.Quote(text) == text {
		return text
	}
	return hclog.Quote(text)
}
