package cni

import (
	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// messages are the constant texts of the log, one for each kind of event. doc.go lists the keys.
var messages = map[EventKind]string{
	EventApplied:        "network configuration taken into use",
	EventRejected:       "network configuration cannot be used",
	EventRepaired:       "network configuration can be used again, it is the one in use",
	EventUnaffected:     "files have changed, and none of those in use",
	EventEmpty:          "there is no network configuration",
	EventDefaultChanged: "the default network has another name",
	EventPluginsMissing: "network plugins are missing",
	EventPluginsFound:   "all network plugins are there",
	EventStatusFailing:  "a network plugin is not ready",
	EventStatusOK:       "the network plugins are ready again",
	EventScanFailing:    "cannot read the whole directory; what is in use stays",
	EventScanRecovered:  "the directory can be read again",
	EventReady:          "network ready",
	EventNotReady:       "network not ready",
	EventSynced:         "the directory was looked at for the first time",
}

// print writes an event to the log, as loud as the core decided (O1).
func (l *loop) print(e emit) {
	level := hclog.Debug
	switch e.level {
	case state.Notice:
		level = hclog.Info
	case state.Warn:
		level = hclog.Warn
	case state.Debug:
	}
	ev := e.event
	var args []any
	add := func(key, value string) {
		if value != "" {
			args = append(args, key, loggable(value))
		}
	}
	path, message := ev.ConfDir, messages[ev.Kind]
	if ev.Conf != nil {
		path = ev.Conf.Path
	}
	if ev.Kind == EventRejected && l.CNI() != nil {
		message = "network configuration cannot be used; the last good one stays in use"
	}
	if ev.Kind == EventScanFailing && ev.Network == "" {
		message = "cannot read the directory"
	}
	add("path", path)
	add("network", ev.Network)
	add("former", ev.Former)
	if ev.Networks > 1 {
		args = append(args, "networks", ev.Networks)
	}
	add("revision", string(ev.Revision))
	if !ev.NextRetry.IsZero() {
		args = append(args, "next_try", ev.NextRetry.Format("2006-01-02T15:04:05.000Z07:00"))
	}
	add("error", ev.Error)
	l.log.Log(level, message, args...)
}

// loggable is the value of a log line for a text that comes from elsewhere. hclog would print a newline in it as a new line, which could forge one (D10).
func loggable(text string) any {
	if scanner.Quote(text) == text {
		return text
	}
	return hclog.Quote(text)
}
