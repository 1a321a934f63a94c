package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/conformance"
	"github.com/plugpoll/plugpoll/scanner"
)

const checkHelp = `Check whether real plugins keep the registration protocol, or whether a filesystem is fit to be polled.

SOCKET is a plugin's registration socket; of DIR every socket in it, and below, is checked. A plugin is asked
what it is, over several connections, and its endpoint is connected to; it is told nothing, so that a plugin that
is registered by a kubelet stays as it is. With --notify it is also told that it is registered, and at last that it
is not: many exit then, so use that on a plugin you are developing.

With --fs the filesystem that DIR is on is checked, in a temporary directory in DIR that is removed at the end.

For each rule that does not hold it says what was seen and what to do. With -o json each rule is an object on a
line, and the last line has the totals (docs/api.md).

Exit codes:
  0  all rules that were checked hold
  1  some do not, or it failed; standard error says why
  2  bad flags`

// checkOptions are the flags of check.
type checkOptions struct {
	fs     bool
	notify bool
	types  []string
	skip   []string
	limit  time.Duration
	output *choice
}

func newCheck() *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check SOCKET|DIR",
		Short: "Check whether plugins keep the protocol, or a filesystem can be polled",
		Long:  checkHelp,
		Example: "  plugpoll check /var/lib/kubelet/plugins_registry\n  plugpoll check --notify /tmp/plugins/demo.sock\n" +
			"  plugpoll check --fs /mnt/share",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("SOCKET is missing: name a plugin's socket, or a directory of them (plugpoll check SOCKET|DIR)")
			case len(args) > 1:
				return usagef("unexpected argument %q: check takes one socket or directory", args[1])
			case args[0] == "":
				return usagef("SOCKET is empty: name a plugin's socket, or a directory of them")
			}
			return nil
		},

		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.fs, "fs", false, "check the filesystem of DIR instead of plugins")
	f.BoolVar(&o.notify, "notify", false, "also tell each plugin that it is registered, and at last that it is not")
	f.StringArrayVar(&o.types, "type", nil, "plugin `type` that is right as well, beside those that Kubernetes knows; may be given several times")
	complete(cmd, "type")
	f.StringSliceVar(&o.skip, "skip", nil, "`rule` that is not checked, by its id; may be given several times, or as a list with commas")
	complete(cmd, "skip", ruleIDs()...)
	addDuration(cmd, &o.limit, "timeout", conformance.DefaultPatience, "how long a plugin may take for each answer")
	o.output = addOutput(cmd, "how to print the results")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case o.fs:
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		ctx, end := signal.NotifyContext(cmd.Context(), stopSignals()...)
		defer end()
		c := &checking{checkOptions: o, report: &checkReport{w: cmd.OutOrStdout(), json: o.output.value == "json"}}
		if !c.report.json && onTerminal(cmd.ErrOrStderr()) {
			c.progress = &progress{terminal: cmd.ErrOrStderr(), shared: onTerminal(cmd.OutOrStdout()), text: c.text}
		}
		return c.run(ctx, args[0])
	}
	return cmd
}

// ruleIDs are those of both suites.
func ruleIDs() (ids []string) {
	for _, r := range slices.Concat(conformance.Plugin(conformance.PluginSubject{}), conformance.FS(conformance.FSSubject{})) {
		ids = append(ids, r.ID)
	}
	return ids
}

// check finds what is wrong with the flags.
func (o *checkOptions) check(cmd *cobra.Command) error {
	var errs []error
	if o.limit <= 0 {
		errs = append(errs, fmt.Errorf("--timeout is %v: it must be positive", o.limit))
	}
	for _, id := range o.skip {
		if !slices.Contains(ruleIDs(), id) {
			errs = append(errs, fmt.Errorf("--skip: there is no rule %q", id))
		}
	}
	for _, flag := range []string{"notify", "type", "timeout"} {
		if o.fs && cmd.Flags().Changed(flag) {
			errs = append(errs, fmt.Errorf("--%s is about plugins: it does not go with --fs", flag))
		}
	}
	return usage(errs...)
}

// checking is one run.
type checking struct {
	*checkOptions
	report      *checkReport
	progress    *progress
	total, done atomic.Int64 // subjects
}

// checked is one subject and what came of it.
type checked struct {
	path    string
	results []conformance.Result
}

func (c *checking) text() string {
	if c.fs {
		return "checking the filesystem"
	}
	return fmt.Sprintf("checking: %d of %s done", c.done.Load(), counted(int(c.total.Load()), "socket", "sockets"))
}

func (c *checking) run(ctx context.Context, path string) (err error) {
	end := c.progress.start()
	defer func() { end() }()
	var sockets []string
	switch info, statErr := os.Stat(path); {
	case c.fs:
		err = c.filesystem(ctx, path)
	case statErr == nil && info.IsDir():
		sockets, err = socketsBelow(ctx, path)
		if err == nil && len(sockets) == 0 {
			err = fmt.Errorf("no socket in %s: start a plugin that makes one there (plugpoll scan says what is there)", scanner.Quote(path))
		}
	default:
		sockets = []string{path}
	}
	c.report.brief = len(sockets) > 1
	c.plugins(ctx, sockets)
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("stopped before everything was checked"))
	}
	end()
	end = func() {}
	c.report.end()
	switch {
	case c.report.err != nil:
		return fmt.Errorf("standard output: %w", c.report.err)
	case err == nil && c.report.broken > 0:
		return said(errors.New("some rules do not hold"))
	}
	return err
}

// socketsBelow are those that the daemon would ask.
func socketsBelow(ctx context.Context, dir string) (sockets []string, err error) {
	s, err := scanner.New(scanner.Config{Root: dir})
	if err != nil {
		return nil, flagErrors(err)
	}
	found, err := s.Scan(ctx, nil)
	if found == nil {
		return nil, err
	}
	for e := range found.All() {
		sockets = append(sockets, e.Path)
	}
	return sockets, err
}

// checkedAtOnce is how many plugins are checked at the same time: those that do not answer take long.
const checkedAtOnce = 8

// plugins checks sockets and prints each as soon as those before it are.
func (c *checking) plugins(ctx context.Context, sockets []string) {
	c.total.Store(int64(len(sockets)))
	places := make(chan struct{}, checkedAtOnce)
	var work sync.WaitGroup
	results := make([]chan checked, len(sockets))
	for i := range sockets {
		results[i] = make(chan checked, 1)
	}
	work.Go(func() {
		for i, path := range sockets {
			places <- struct{}{}
			work.Go(func() {
				results[i] <- checked{path, collect(ctx, c.rules(path))}
				c.done.Add(1)
				<-places
			})
		}
	})
	for _, r := range results {
		one := <-r
		c.progress.step(false, func() { c.report.subject(one) })
	}
	work.Wait()
}

// collect checks as many rules as ctx leaves time for.
func collect(ctx context.Context, rules []conformance.Rule) (results []conformance.Result) {
	if ctx.Err() != nil {
		return nil
	}
	for r := range conformance.Check(ctx, rules) {
		if _, broken := errors.AsType[*conformance.Broken](r.Err); r.Err == nil || broken {
			results = append(results, r)
		}
	}
	return results
}

// rules are a plugin's, and say in words of this command why one is skipped.
func (c *checking) rules(path string) []conformance.Rule {
	rules := conformance.Plugin(conformance.PluginSubject{
		Socket: path, Types: c.types, Notifies: c.notify, Rejects: c.notify, Patience: c.limit, Lacks: c.skip,
	})
	for i, r := range rules {
		switch {
		case r.Skip == "":
		case slices.Contains(c.skip, r.ID):
			rules[i].Skip = "--skip"
		case r.ID == "P12":
			rules[i].Skip = "this command removes no socket"
		default:
			rules[i].Skip = "the plugin is told nothing without --notify"
		}
	}
	return rules
}

// filesystem checks the one that a directory is on. The name of the temporary directory begins with a dot, which those that look for plugins skip (D3).
func (c *checking) filesystem(ctx context.Context, path string) (err error) {
	dir, err := os.MkdirTemp(path, ".plugpoll-check-")
	if err != nil {
		return fmt.Errorf("no temporary directory can be made in %s: %w", scanner.Quote(path), cmp.Or(errors.Unwrap(err), err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rules := conformance.FS(conformance.FSSubject{Dir: dir, Lacks: c.skip, Socket: func(path string) error {
		// Unlike package net this knows no limit to the length of a path, where there is a way round it (R15).
		s, err := bind(ctx, path)
		if err != nil {
			return err
		}
		return s.Close()
	}})
	for i, r := range rules {
		switch {
		case slices.Contains(c.skip, r.ID):
			rules[i].Skip = "--skip"
		case r.ID == "U3":
			rules[i].Skip = "a listing cannot be made to fail from here"
		}
	}
	c.report.subject(checked{path, collect(ctx, rules)})
	return nil
}
