package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
)

// lastEvents is how long a reader of the events may take for the last ones when the daemon has stopped.
const lastEvents = time.Second

// lastLines is the same for the reader of the log. One who wants it to end at once gives lastWords.
const (
	lastLines = time.Second
	lastWords = 100 * time.Millisecond
)

// daemon is what run runs: a Manager with its log, its events and its signals.
type daemon struct {
	cfg     register.Config
	manager *register.Manager
	log     hclog.Logger
	stderr  *logWriter // log goes there
	events  io.Writer  // nil: not printed
	web     webOptions
}

func newDaemon(cfg register.Config, log hclog.Logger, stderr *logWriter) (*daemon, error) {
	m, err := register.NewManager(cfg)
	if err != nil {
		return nil, flagErrors(err)
	}
	for _, t := range record.Types {
		if err := m.AddHandler(t, record.Handler{}); err != nil {
			return nil, err
		}
	}
	return &daemon{cfg: cfg, manager: m, log: log, stderr: stderr}, nil
}

// run works until a signal or ctx ends it. An error that it returns is on stderr already: main would wait for a reader.
func (d *daemon) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A log that nobody reads is no reason to stop; events that nobody reads are, and say so.
	signal.Ignore(syscall.SIGPIPE)
	defer d.handleSignals(cancel)()
	web, err := d.web.serve(ctx, d.manager, d.cfg, d.log.Named("web"))
	if err != nil {
		return err
	}
	d.started()
	printed := d.printEvents(cancel)
	err = d.manager.Run(ctx)
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

func (d *daemon) started() {
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
	// The subscription starts here and ends with Run, so that neither the first view nor the last event is missed.
	events := d.manager.Events(context.Background())
	go func() {
		for e := range events {
			if err := printJSON(d.events, e); err != nil {
				cancel()
				result <- fmt.Errorf("standard output: %w", err)
				return
			}
		}
		result <- nil
	}()
	return result
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
				if err := d.manager.Retry(""); err != nil {
					d.log.Warn("retry", "error", shown(err.Error()))
				}
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
