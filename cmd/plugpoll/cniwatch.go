package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

const cniWatchHelp = `Print what changes in the running daemon's CNI directories, a line for each event, until interrupted.

The first lines are the state of each directory at that moment; nothing falls between them and those that follow.
plugpoll watch prints the same beside the events of plugins. With -o json each line is an Event of docs/api.md, of a
kind that begins with cni_ (or lost, for a reader that was too slow).

It ends with 0 when interrupted or when nobody reads it any more (| head), and with 1 when the daemon ends or follows
no CNI directory.`

func newCNIWatch() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "watch",
		Short:   "Print what changes in the running daemon's CNI directories",
		Long:    cniWatchHelp,
		Example: "  plugpoll cni watch\n  plugpoll cni watch -o json | jq 'select(.kind == \"cni_not_ready\")'",
		Args:    noArgs("it shows every event; choose with -o json and jq"),

		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	output := addOutput(cmd, "how to print the events")
	at := addAddress(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a, err := newAsker(*at)
		if err != nil {
			return err
		}
		a.flag = "--cni-conf-dir"
		ctx, end := signal.NotifyContext(cmd.Context(), stopSignals()...)
		defer end()
		if _, _, err := a.someCNI(ctx); err != nil {
			return err
		}
		return a.printEvents(ctx, cmd.OutOrStdout(), output.value == "json", func(kind string) bool { return isCNI(kind) || kind == string(state.EventLost) })
	}
	return cmd
}

// kindOf is the kind of an event in JSON, empty if it has none.
func kindOf(line []byte) string {
	e := struct{ Kind string }{}
	_ = json.Unmarshal(line, &e) // whoever shows it says what is wrong
	return e.Kind
}

// printEvent prints an event as it came, or as a line for people.
func printEvent(w io.Writer, line []byte, inJSON bool) error {
	if inJSON {
		_, err := printableJSON{w}.Write(append(line, '\n'))
		return err
	}
	return showEvent(w, line)
}

// cniLine is an event of a CNI directory as a line for people.
func cniLine(e cniEvent) string {
	parts := []string{eventTime(e.Time), fmt.Sprintf("%-16s", scanner.Clean(e.Kind, 32)), confDirOf(e)}
	if e.Name != "" {
		parts = append(parts, cell(e.Name))
	}
	if detail := cniDetail(e); detail != "" {
		parts = append(parts, scanner.Clean(detail, maxComplaint))
	}
	return strings.Join(parts, "  ")
}

func confDirOf(e cniEvent) string { return pathText(e.ConfDir, e.ConfDirBase64) }

func cniDetail(e cniEvent) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if v := e.Directory; v != nil {
		add("%s", v.State)
		if is := networksAre(*v); len(v.Networks) > 0 && is != loaded {
			add("%s %s", networksText(*v), is)
		}
		if why := cniReason(*v); why != "" {
			add("%s", why)
		}
	}
	if e.Lost > 0 {
		add("%d events came too fast and are missing here", e.Lost)
	}
	if e.Network != "" {
		add("network %s", cell(e.Network))
	}
	if e.Former != "" {
		add("it was %s before", cell(e.Former))
	}
	if e.Networks > 1 {
		add("%d networks", e.Networks)
	}
	switch {
	case e.Error != "":
		add("%s", e.Error)
	case e.Conf != nil:
		add("%s", confLine(*e.Conf))
	}
	if left := e.NextRetry.Sub(e.Time); !e.NextRetry.IsZero() && left > 0 {
		add("next try in %s", spanText(left))
	}
	if e.State == cni.Stale && e.Kind == cniPrefix+string(cni.EventRejected) {
		add("the last good configuration stays in use")
	}
	return strings.Join(parts, "; ")
}
