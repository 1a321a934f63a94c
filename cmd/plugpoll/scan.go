package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

const scanHelp = `Read a directory once and print for every entry what the daemon would make of it. No socket is connected to.

Verdicts:
  socket      the daemon asks it what it is
  maybe       the filesystem cannot tell whether it is a socket: the daemon asks, to find out
  directory   what is in it is listed too
  ignored     skipped, with the reason
  unreadable  could not be looked at, with the error

Below the entries it says how the daemon would poll the directory, at its default interval: the kind of
filesystem, whether directories that have not changed are skipped and why, and what a look costs. A look that takes more than a second shows on a
terminal how far it has come.

With -o json each entry is one line, and the last line has the totals (docs/api.md). The exit code is 1 if the
directory could not be read as a whole; what could be read is printed all the same. A limit of 0 means the
default.`

func newScan() *cobra.Command {
	var depth, entries int
	cmd := &cobra.Command{
		Use:     "scan DIR",
		Short:   "Read a directory once and print a verdict on every entry",
		Long:    scanHelp,
		Example: "  plugpoll scan /var/lib/kubelet/plugins_registry\n  plugpoll scan -o json /run/plugins",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("DIR is missing: name the directory to look at (plugpoll scan DIR)")
			case len(args) > 1:
				return usagef("unexpected argument %q: scan takes one directory", args[1])
			case args[0] == "":
				return usagef("DIR is empty: name the directory to look at")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	output := addOutput(cmd, "how to print the entries")
	addLimits(cmd, &depth, &entries)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, end := signal.NotifyContext(cmd.Context(), stopSignals()...)
		defer end()
		l := &listing{
			w: cmd.OutOrStdout(), json: output.value == "json",
			total: total{Version: state.APIVersion, Kind: "total", Path: args[0], PathBase64: scanner.Base64(args[0])},
		}
		if !l.json && onTerminal(cmd.ErrOrStderr()) {
			l.progress = &progress{terminal: cmd.ErrOrStderr(), shared: onTerminal(l.w)}
		}
		return l.scan(ctx, scanner.Config{Root: args[0], MaxDepth: depth, MaxEntries: entries, Each: l.each})
	}
	return cmd
}

// entry is one line of scan -o json.
type entry struct {
	Version    string            `json:"version"`
	Kind       string            `json:"kind"` // "entry"
	Path       string            `json:"path"`
	PathBase64 string            `json:"path_base64,omitempty"`
	Verdict    string            `json:"verdict"` // socket, maybe, directory, ignored, unreadable
	Type       string            `json:"type"`
	Reason     scanner.Reason    `json:"reason,omitempty"`
	Error      string            `json:"error,omitempty"`
	Identity   *scanner.Identity `json:"identity,omitempty"`
}

// total is the last line of scan -o json.
type total struct {
	Version     string      `json:"version"`
	Kind        string      `json:"kind"` // "total"
	Path        string      `json:"path"`
	PathBase64  string      `json:"path_base64,omitempty"`
	Sockets     int         `json:"sockets"`
	Maybe       int         `json:"maybe"`
	Directories int         `json:"directories"`
	Ignored     int         `json:"ignored"`
	Unreadable  int         `json:"unreadable"`
	Errors      []string    `json:"errors,omitempty"`
	Filesystem  *filesystem `json:"filesystem,omitempty"`
}

func (t total) entries() int { return t.Sockets + t.Maybe + t.Directories + t.Ignored + t.Unreadable }

// String leaves out what there is none of.
func (t total) String() string {
	var parts []string
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{t.Sockets, "socket", "sockets"},
		{t.Maybe, "maybe", "maybe"},
		{t.Directories, "directory", "directories"},
		{t.Ignored, "ignored", "ignored"},
		{t.Unreadable, "unreadable", "unreadable"},
	} {
		if c.n > 0 {
			parts = append(parts, counted(c.n, c.one, c.many))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// listing prints a scan while it runs.
type listing struct {
	w        io.Writer
	json     bool
	progress *progress
	total    total
	printing time.Duration // how long printing took, which is no cost of the scan
	err      error         // of the first write that failed
}

const row = "%-10s  %-9s  %s"

func (l *listing) scan(ctx context.Context, cfg scanner.Config) error {
	s, err := scanner.New(cfg)
	if err != nil {
		return flagErrors(err)
	}
	end, began := l.progress.start(), time.Now()
	_, err = s.Scan(ctx, nil)
	took := time.Since(began) - l.printing
	end()
	p, without := s.Polling(ctx)
	errs := l.complaints(cmp.Or(err, without))
	next := outlookOf(p, took)
	if without == nil {
		l.total.Filesystem = next.json()
	}
	switch {
	case l.json:
		l.encode(l.total)
	case len(errs) > 0 && l.total.entries() == 0:
		// Nothing was seen, and the errors say why.
	default:
		l.print("%s in %s\n", l.total, scanner.Quote(l.total.Path))
		if without == nil {
			l.print("\n%s", next.text(l.total))
		}
	}
	if l.err != nil {
		return fmt.Errorf("standard output: %w", l.err)
	}
	return errors.Join(errs...)
}

// complaints takes apart what a scan complained of.
func (l *listing) complaints(err error) (errs []error) {
	for _, e := range flatten(err) {
		// The scanner speaks of its field where this command has a flag.
		if text, ok := strings.CutSuffix(e.Error(), "MaxEntries"); ok {
			e = errors.New(text + "--max-entries")
		}
		errs = append(errs, e)
		l.total.Errors = append(l.total.Errors, scanner.Clean(e.Error(), maxComplaint))
	}
	return errs
}

// each takes one entry: it is printed at once, so that a directory that hangs does not hide what was seen before.
func (l *listing) each(path string, v scanner.Verdict) {
	began := time.Now()
	l.progress.step(v.Outcome == scanner.IsDirectory, func() { l.show(path, v) })
	l.printing += time.Since(began)
}

func (l *listing) show(path string, v scanner.Verdict) {
	if !l.json && l.total.entries() == 0 {
		l.print(row+"\n", "VERDICT", "TYPE", "PATH")
	}
	e := entry{Version: state.APIVersion, Kind: "entry", Path: path, PathBase64: scanner.Base64(path), Type: v.Type, Reason: v.Reason}
	switch v.Outcome {
	case scanner.IsSocket:
		e.Verdict, e.Identity = "socket", &v.Entry.ID
		l.total.Sockets++
	case scanner.MaybeSocket:
		e.Verdict, e.Identity = "maybe", &v.Entry.ID
		l.total.Maybe++
	case scanner.IsDirectory:
		e.Verdict = "directory"
		l.total.Directories++
	case scanner.IsIgnored:
		e.Verdict = "ignored"
		l.total.Ignored++
	case scanner.IsUnreadable:
		e.Verdict = "unreadable"
		l.total.Unreadable++
	}
	if v.Err != nil {
		e.Error = scanner.Clean(v.Err.Error(), maxComplaint)
	}
	if l.json {
		l.encode(e)
		return
	}
	why := cmp.Or(string(e.Reason), e.Error)
	if why != "" {
		why = "  (" + why + ")"
	}
	l.print(row+"%s\n", e.Verdict, e.Type, scanner.Quote(path), why)
}

func (l *listing) print(format string, args ...any) {
	if _, err := fmt.Fprintf(l.w, format, args...); l.err == nil {
		l.err = err
	}
}

func (l *listing) encode(v any) {
	if err := printJSON(l.w, v); l.err == nil {
		l.err = err
	}
}
