package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

const watchHelp = `Print what changes in the running daemon, a line for each event, until interrupted.

The first line is the state at that moment, one more is that of each CNI directory; nothing falls between these and
those that follow. A reader that is too slow loses the oldest events and is told how many. With -o json each line is an Event of docs/api.md.

It ends with 0 when interrupted or when nobody reads it any more (| head), and with 1 when the daemon ends.`

// silence is how long a daemon may send nothing at all, not even a heartbeat.
const silence = 3 * heartbeat

func newWatch() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "watch",
		Short:   "Print what changes in the running daemon",
		Long:    watchHelp,
		Example: "  plugpoll watch\n  plugpoll watch -o json | jq 'select(.kind == \"failing\")'",
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
		ctx, end := signal.NotifyContext(cmd.Context(), stopSignals()...)
		defer end()
		return a.printEvents(ctx, cmd.OutOrStdout(), output.value == "json", func(string) bool { return true })
	}
	return cmd
}

// printEvents prints the events of the kinds that are wanted until ctx or the daemon ends, or nobody reads them any more.
func (a *asker) printEvents(ctx context.Context, w io.Writer, inJSON bool, wanted func(kind string) bool) error {
	signal.Ignore(syscall.SIGPIPE) // a reader that has seen enough goes away, which is no failure
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	whenUnread(ctx, w, cancel)
	err := a.watch(ctx, func(line []byte) error {
		if !wanted(kindOf(line)) {
			return nil
		}
		if err := printEvent(w, line, inJSON); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		return nil
	})
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil // as it is meant to end
	}
	return err
}

// watch calls each with every event, in JSON, until it returns an error or the daemon ends.
func (a *asker) watch(ctx context.Context, each func(line []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() {
		cancel(fmt.Errorf("the daemon at %s has been silent for %s: it hangs, or the connection does", a.address, silence))
	})
	defer quiet.Stop()
	answer, err := a.open(ctx, "/v1/events")
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		quiet.Reset(silence)
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if err := each(data); err != nil {
				return err
			}
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the daemon at %s: %w", a.address, bare(err))
	}
	return fmt.Errorf("the daemon at %s has ended", a.address)
}

// showEvent prints an event as a line for people.
func showEvent(w io.Writer, line []byte) error {
	if isCNI(kindOf(line)) {
		var e cniEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("an event that is not one: %w", err)
		}
		_, err := fmt.Fprintln(w, cniLine(e))
		return err
	}
	var e state.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("an event that is not one: %w", err)
	}
	_, err := fmt.Fprintln(w, eventLine(e))
	return err
}

func eventLine(e state.Event) string {
	parts := []string{eventTime(e.Time), fmt.Sprintf("%-16s", scanner.Clean(string(e.Kind), 32))}
	if p := e.Plugin; p != nil {
		parts = append(parts, word(p.Type), word(p.Name))
	}
	switch {
	case e.Path != "":
		parts = append(parts, pathText(e.Path, e.PathBase64))
	case e.Root != "":
		parts = append(parts, pathText(e.Root, e.RootBase64))
	}
	if detail := eventDetail(e); detail != "" {
		parts = append(parts, scanner.Clean(detail, maxComplaint))
	}
	return strings.TrimRight(strings.Join(parts, "  "), " ")
}

func eventTime(t time.Time) string { return t.Local().Format("15:04:05.000") }

func eventDetail(e state.Event) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.View != nil {
		add("%s in %s", dash(summary(*e.View)), counted(len(e.View.Roots), "directory", "directories"))
	}
	if e.Lost > 0 {
		add("%d events came too fast and are missing here", e.Lost)
	}
	if e.Reason != "" {
		add("reason: %s", e.Reason)
	}
	if e.Holder != "" {
		add("held by %s", pathText(e.Holder, e.HolderBase64))
	}
	if e.Error != "" {
		add("%s", e.Error)
	}
	if e.Report != nil {
		add("%s: %s", e.Report.Health, e.Report.Message)
	}
	if left := e.NextTry.Sub(e.Time); e.Tries > 0 && left > 0 {
		add("next try in %s", spanText(left))
	}
	return strings.Join(parts, "; ")
}
