package main

import (
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/state"
)

const statusHelp = `Ask the running daemon what it watches, what is registered and what is not.

The daemon answers at 127.0.0.1:9808 unless its --listen says otherwise; --address must say the same. The same as
a page is at http://127.0.0.1:9808/ on the node.

Output (-o):
  text  the directories, a line for each socket, and what needs attention
  wide  the same with endpoint, versions, number of tries, acknowledgement and handler's report
  json  the View of docs/api.md, as the daemon gave it
  yaml  the same as YAML

Exit codes:
  0  all is well
  1  no daemon answers, or it failed; standard error says why
  2  bad flags
  4  something needs attention: a directory that cannot be read, a plugin that fails, is turned down, does not
     answer, could not be told, or that its handler says is down`

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show what the running daemon sees: directories, sockets, plugins",
		Long:    statusHelp,
		Example: "  plugpoll status\n  plugpoll status -o wide\n  plugpoll status -o json | jq '.sockets[] | select(.phase != \"registered\")'\n  plugpoll status --address unix:/run/plugpoll.sock",
		Args:    noArgs("plugpoll why NAME tells about one plugin"),

		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	output := addChoice(cmd, "output", "o", "text", "how to print", "text", "wide", "json", "yaml")
	at := addAddress(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a, err := newAsker(*at)
		if err != nil {
			return err
		}
		ctx, end := signal.NotifyContext(cmd.Context(), stopSignals()...)
		defer end()
		v, content, err := a.view(ctx)
		if err != nil {
			return err
		}
		if err := printStatus(cmd.OutOrStdout(), output.value, v, content); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		if len(troubles(v)) > 0 {
			return attentionError{}
		}
		return nil
	}
	return cmd
}

func printStatus(w io.Writer, form string, v state.View, content []byte) error {
	switch form {
	case "json":
		_, err := printableJSON{w}.Write(append(content, '\n'))
		return err
	case "yaml":
		return printYAML(w, content)
	}
	_, err := io.WriteString(w, statusText(v, form == "wide"))
	return err
}

// attentionError is no failure: what was printed says what is to be seen to.
type attentionError struct{ notReady bool }

func (attentionError) Error() string { return "something needs attention" }

func (a attentionError) code() int {
	if a.notReady {
		return exitNotReady
	}
	return exitNeeds
}

// needsAttention reports whether err is one.
func needsAttention(err error) bool {
	_, ok := errors.AsType[attentionError](err)
	return ok
}

// troubles says what in a View needs attention, a line each.
func troubles(v state.View) (lines []string) {
	if !v.Synced {
		lines = append(lines, "not everything that was there at start was tried yet")
	}
	for _, r := range v.Roots {
		switch path := pathText(r.Path, r.PathBase64); {
		case r.LastScan.IsZero():
			lines = append(lines, "directory "+path+" was not read yet")
		case r.Error != "" || r.LastGoodScan.IsZero():
			lines = append(lines, "directory "+path+" cannot be read as a whole")
		}
	}
	count := map[string]int{}
	var order []string
	for _, s := range v.Sockets {
		if t := trouble(s); t != "" {
			if count[t] == 0 {
				order = append(order, t)
			}
			count[t]++
		}
	}
	for _, t := range order {
		lines = append(lines, counted(count[t], "socket ", "sockets ")+t)
	}
	return lines
}

// trouble is what is wrong with a socket, as the end of a sentence that begins with it; empty if nothing is.
func trouble(s state.SocketView) string {
	switch s.Phase {
	case state.Backoff:
		return "failing, tried again by itself"
	case state.Rejected:
		return "rejected"
	case state.Unreachable:
		return "registered but not answering"
	}
	switch {
	case s.Call != nil && s.Call.Parked:
		return "held up by its handler"
	case s.Stale != nil:
		return "not to be seen on the filesystem any more, nor known to be gone"
	case s.Acknowledged == state.AckNo:
		return "registered, but could not be told so"
	case s.Report != nil && s.Report.Health == state.HealthDown:
		return "registered, but its handler says it is down"
	}
	return ""
}

// summary counts phases: "2 registered, 1 backoff".
func summary(v state.View) string {
	count := map[state.Phase]int{}
	for _, s := range v.Sockets {
		count[s.Phase]++
	}
	var parts []string
	for _, p := range []state.Phase{
		state.Registered, state.Observed, state.Standby, state.Registering, state.Pending, state.Backoff, state.Rejected,
		state.Unreachable, state.Deregistering, state.NotPlugin,
	} {
		if count[p] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[p], p))
		}
	}
	return strings.Join(parts, ", ")
}
