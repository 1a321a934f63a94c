package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/state"
)

// lastEvents is how long a reader of the events may take for the last ones when the daemon has stopped.
const lastEvents = time.Second

// lastLines is the same for the reader of the log. One who wants it to end at once gives lastWords.
const (
	lastLines = time.Second
	lastWords = 100 * time.Millisecond
)

// daemon is what run runs: a Manager and Syncers with their log, their events and their signals.
type daemon struct {
	cfg     register.Config
	follows followed
	log     hclog.Logger
	stderr  *logWriter // log goes there
	events  io.Writer  // nil: not printed
	web     webOptions
}

func newDaemon(cfg register.Config, network []cni.Config, log hclog.Logger, stderr *logWriter) (*daemon, error) {
	d := &daemon{cfg: cfg, log: log, stderr: stderr}
	for _, c := range network {
		s, err := cni.New(c)
		if err != nil {
			return nil, cniFlagErrors(err)
		}
		d.follows.cni = append(d.follows.cni, s)
		d.follows.interval = max(d.follows.interval, c.Interval)
	}
	if len(cfg.Roots) == 0 {
		d.follows.plugins = noPlugins{make(chan struct{})}
		return d, nil
	}
	m, err := register.NewManager(cfg)
	if err != nil {
		return nil, flagErrors(err)
	}
	for _, t := range record.Types {
		if err := m.AddHandler(t, record.Handler{}); err != nil {
			return nil, err
		}
	}
	d.follows.plugins = m
	for _, r := range cfg.Roots {
		d.follows.interval = max(d.follows.interval, r.Interval)
	}
	return d, nil
}

// run works until a signal or ctx ends it. An error that it returns is on stderr already: main would wait for a reader.
func (d *daemon) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A log that nobody reads is no reason to stop; events that nobody reads are, and say so.
	signal.Ignore(syscall.SIGPIPE)
	defer d.handleSignals(cancel)()
	web, err := d.web.serve(ctx, d.follows, d.log.Named("web"))
	if err != nil {
		return err
	}
	d.started()
	printed := d.printEvents(cancel)
	err = d.follow(ctx, cancel)
	web.close()
	select {
	case printErr := <-printed:
		err = errors.Join(printErr, err)
	case <-time.After(lastEvents):
		err = errors.Join(errors.New("standard output: nobody reads the last events"), err)
	}
	if err == nil {
		d.log.Info("stopped")
	}
	complain(d.stderr, err)
	d.stderr.close(lastLines)
	return said(err)
}

// follow runs the Manager and the Syncers beside one another, and returns when all have ended. One that fails ends the others.
func (d *daemon) follow(ctx context.Context, cancel context.CancelFunc) error {
	runs := []func(context.Context) error{d.follows.plugins.Run}
	for _, s := range d.follows.cni {
		runs = append(runs, s.Run)
	}
	var running sync.WaitGroup
	errs := make([]error, len(runs))
	for i, run := range runs {
		running.Go(func() {
			if errs[i] = run(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (d *daemon) started() {
	for _, v := range cniViews(d.follows.cni) {
		args := []any{"path", shown(v.ConfDir), "bin_dirs", listed(pathsOf(v.BinDirs))}
		if v.Name != "" {
			args = append(args, "handler", shown(v.Name))
		}
		d.log.Named("cni").Info("following network configuration", args...)
	}
	if len(d.cfg.Roots) == 0 {
		d.log.Info("started: no plugin is registered, there is no --dir", "version", readBuild().Plugpoll)
		return
	}
	var dirs []string
	for _, r := range d.cfg.Roots {
		dirs = append(dirs, r.Root)
	}
	args := []any{"version", readBuild().Plugpoll, "dirs", listed(dirs), "interval", d.cfg.Roots[0].Interval, "types", strings.Join(record.Types[:], ",")}
	if allowed := uids(d.cfg.AllowedUIDs); len(allowed) > 0 {
		args = append(args, "allowed_uids", allowed.String())
	}
	switch {
	case d.cfg.Observe:
		d.log.Info("started: plugins are observed, none is registered or told anything", args...)
		return
	case d.cfg.DeregisterOnStop:
		args = append(args, "on_stop", "deregister")
	default:
		args = append(args, "on_stop", "stay registered")
	}
	d.log.Info("started: plugins are registered as their sockets appear", args...)
}

// printEvents prints events until Run ends, and then sends nil or what went wrong. It stops the daemon if they cannot be printed.
func (d *daemon) printEvents(cancel context.CancelFunc) <-chan error {
	result := make(chan error, 1)
	if d.events == nil {
		result <- nil
		return result
	}
	// The subscriptions start here and end with Run, so that neither the first view nor the last event is missed.
	streams := []iter.Seq[any]{lines(d.follows.plugins.Events(context.Background()), func(e state.Event) any { return e })}
	for _, s := range d.follows.cni {
		streams = append(streams, lines(s.Events(context.Background()), func(e cni.Event) any { return cniEventOf(e) }))
	}
	go func() {
		p := &printer{w: d.events, cancel: cancel}
		ctx, end := context.WithCancel(context.Background())
		defer func() {
			end()
			p.mu.Lock()
			defer p.mu.Unlock()
			result <- p.err
		}()
		whenUnread(ctx, d.events, func() { p.fail(syscall.EPIPE) })
		var nexts []func() (any, bool)
		for _, stream := range streams {
			next, stop := iter.Pull(stream)
			defer stop()
			nexts = append(nexts, next)
			if view, ok := next(); ok { // the Views come first, in order
				p.print(view)
			}
		}
		var printing sync.WaitGroup
		for _, next := range nexts {
			printing.Go(func() {
				for e, ok := next(); ok && p.print(e); e, ok = next() {
				}
			})
		}
		printing.Wait()
	}()
	return result
}

// lines is what is printed of events.
func lines[E any](events iter.Seq[E], of func(E) any) iter.Seq[any] {
	return func(yield func(any) bool) {
		events(func(e E) bool { return yield(of(e)) })
	}
}

// printer prints the lines of several.
type printer struct {
	w      io.Writer
	cancel context.CancelFunc // for the first error

	mu  sync.Mutex
	err error
}

// print reports whether there is any use in more.
func (p *printer) print(v any) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return false
	}
	if err := printJSON(p.w, v); err != nil {
		p.failed(err)
	}
	return p.err == nil
}

// fail says that nothing more can be printed.
func (p *printer) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed(err)
}

func (p *printer) failed(err error) {
	if p.err == nil {
		p.err = fmt.Errorf("standard output: %w", err)
		p.cancel()
	}
}

// oneSignal is how long a signal is the same one: supervisors and timeout(1) signal a process and then its whole group.
const oneSignal = 500 * time.Millisecond

// handleSignals has SIGINT and SIGTERM stop the daemon and SIGHUP look and retry. The function it returns ends that.
func (d *daemon) handleSignals(cancel context.CancelFunc) (end func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append(stopSignals(), syscall.SIGHUP)...) // Windows never sends SIGHUP
	go func() {
		var stopping time.Time
		for s := range signals {
			switch {
			case s == syscall.SIGHUP:
				d.log.Info("SIGHUP: looking at everything and retrying it now")
				d.retry()
			case !stopping.IsZero() && time.Since(stopping) < oneSignal:
			case !stopping.IsZero():
				complain(d.stderr, fmt.Errorf("%s again: ended at once, running calls were not waited for", signalName(s)))
				d.stderr.close(lastWords)
				os.Exit(exitStuck)
			default:
				stopping = time.Now()
				d.log.Info("stopping; a second signal ends it at once", "signal", signalName(s))
				cancel()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// retry has everything looked at and tried now.
func (d *daemon) retry() {
	if err := d.follows.plugins.Retry(""); err != nil {
		d.log.Warn("retry", "error", shown(err.Error()))
	}
	for _, s := range d.follows.cni {
		s.Retry()
	}
}

// stopSignals are those that end a command. A shell that starts it in the background has SIGINT ignored, and means it.
func stopSignals() []os.Signal {
	if signal.Ignored(os.Interrupt) {
		return []os.Signal{syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM}
}

func signalName(s os.Signal) string {
	switch s {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return s.String()
}
