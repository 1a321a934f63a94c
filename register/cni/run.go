package cni

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	gocni "github.com/containerd/go-cni"

	"github.com/plugpoll/plugpoll/scanner"
)

// stopTimeout is how long what runs is waited for after Run's context has ended.
const stopTimeout = time.Second

// loop is one Run: a single goroutine that takes results, requests and one timer, and starts the work.
type loop struct {
	*Syncer
	ctx   context.Context // Run's own
	timer *time.Timer
	pace  scanner.Pace

	last     *scanner.Snapshot
	seen     *set      // what it comes to
	next     time.Time // the next poll
	scanning bool
	again    bool // somebody asked for a poll at once while one was running

	// building and looking say what runs; asking ends the STATUS verbs that do.
	building, looking bool
	asking            context.CancelFunc
	waiters           []waiter

	stopping bool
	stopBy   time.Time
}

// waiter is a Status that waits for the end of a round.
type waiter struct {
	statusWanted
	round uint64
}

// Run does the work until ctx ends. It returns nil then, or a *StuckError if something did not end within a second. What is wrong with the directory, from the
// start or later, is a status and no error of Run. A Syncer runs once.
func (s *Syncer) Run(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	l := &loop{Syncer: s, ctx: ctx, timer: time.NewTimer(0), pace: scanner.Pace{Interval: s.cfg.Interval}}
	defer s.end()
	defer l.timer.Stop()
	defer l.release(0)
	stop := ctx.Done()
	for {
		ticked := false
		select {
		case <-stop:
		case <-s.poke:
		case <-l.timer.C:
			ticked = true
		}
		for _, mail := range s.takeMail() {
			// Asked after the mail was taken: what fails because ctx has ended is no failure of a plugin.
			l.stopIfEnded()
			l.take(mail)
		}
		if l.stopIfEnded(); l.stopping {
			stop = nil
		}
		if l.stopping && l.finished(time.Now()) {
			return l.left()
		}
		if ticked {
			l.step(tick{})
		}
		l.startScan()
		l.timer.Reset(time.Until(l.wakeAt()))
	}
}

func (l *loop) take(mail any) {
	switch mail := mail.(type) {
	case *scanned:
		l.takePoll(mail)
	case statusWanted:
		l.step(checkAsked{})
		// A round may hang, and those who asked have gone.
		l.waiters = slices.DeleteFunc(l.waiters, func(w waiter) bool { return w.ctx.Err() != nil })
		l.waiters = append(l.waiters, waiter{mail, l.core.promised}) // only Run's goroutine changes the core
		if l.core.promised == 0 || l.stopping {
			l.release(0)
		}
	case retryAsked:
		l.step(mail)
		l.next, l.again = time.Time{}, l.scanning
	case built:
		l.building = false
		l.step(mail)
	case found:
		l.looking = false
		l.step(mail)
	case told:
		l.asking()
		l.asking = nil
		l.step(mail)
	}
}

// step gives the core an input and carries out what it answers. A new instance is there before anybody can see that it is in use, and events are published
// under the core's mutex, so that a View and the events after it fit together.
func (l *loop) step(in input) {
	l.mu.Lock()
	effects := l.core.step(time.Now(), in)
	for _, e := range effects {
		switch e := e.(type) {
		case use:
			l.current.Store(&e.instance)
		case emit:
			for s := range l.readers {
				s.Publish(e.event)
			}
		}
	}
	l.mu.Unlock()
	for _, e := range effects {
		l.carryOut(e)
	}
}

// carryOut does one effect, or starts it in a goroutine of its own.
func (l *loop) carryOut(e effect) {
	switch e := e.(type) {
	case build:
		l.building = true
		go func() {
			made, err := l.guarded(e.networks)
			l.post(built{e.id, made, err})
		}()
	case findPlugins:
		l.looking = true
		go func() { l.post(l.find(e)) }()
	case askPlugins:
		l.ask(e)
	case cancel:
		if l.asking != nil {
			l.asking()
		}
	case answered:
		l.release(e.round)
	case emit:
		l.metrics.happened(e.event)
		l.print(e)
	case synced:
		close(l.synced)
	}
}

// find looks for the plugins, and where they are if all are there.
func (l *loop) find(e findPlugins) found {
	f := found{round: e.round, missing: missing(l.cfg.FS, l.cfg.BinDirs, e.networks), ipam: missingIPAM(l.cfg.FS, l.cfg.BinDirs, e.networks), paths: map[string]string{}}
	for _, n := range e.networks {
		for _, plugin := range n.plugins {
			if len(f.missing) == 0 && f.paths[plugin] == "" {
				f.paths[plugin], _ = find(l.cfg.FS, l.cfg.BinDirs, plugin)
			}
		}
	}
	return f
}

func (l *loop) ask(e askPlugins) {
	if l.cfg.StatusTimeout < 0 {
		l.asking = func() {}
		l.post(told{e.round, nil})
		return
	}
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.cfg.StatusTimeout, &lateError{l.cfg.StatusTimeout})
	l.asking = cancel
	go func() { l.post(told{e.round, l.status(ctx, l.cfg.BinDirs, e.networks)}) }()
}

var errGoexit = errors.New("an option ended its goroutine (runtime.Goexit) and did not return")

// guarded makes an instance. The options are an embedder's code: what they do wrong is an error of theirs.
func (l *loop) guarded(networks []network) (made gocni.CNI, err error) {
	done := make(chan struct{})
	err = errGoexit
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				text, _, _ := strings.Cut(fmt.Sprint(value), "\n")
				err = errors.New("panic: " + scanner.Clean(text, maxLine))
			}
		}()
		made, err = l.make(networks, l.options())
	}()
	<-done
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (l *loop) options() instanceOptions {
	return instanceOptions{
		confDir: l.cfg.ConfDir, binDirs: l.cfg.BinDirs, prefix: l.cfg.InterfacePrefix, max: max(l.cfg.MaxConfNum, 0),
		min: l.cfg.MinNetworks, loopback: l.cfg.Loopback, options: slices.Clone(l.cfg.Options),
	}
}

// release lets those go that wait for a round, or an earlier one. 0: all of them.
func (l *loop) release(round uint64) {
	l.waiters = slices.DeleteFunc(l.waiters, func(w waiter) bool {
		if round != 0 && w.round > round {
			return false
		}
		close(w.done)
		return true
	})
}

// startScan begins a poll if one is due. What the files come to is worked out in its goroutine too, since parsing may take long.
func (l *loop) startScan() {
	if l.stopping || l.scanning || l.next.After(time.Now()) {
		return
	}
	l.scanning = true
	last, seen := l.last, l.seen
	go func() {
		p := &scanned{started: time.Now()}
		p.snapshot, p.err = l.scanner.Scan(l.ctx, last)
		if l.ctx.Err() != nil {
			// The scan left a call behind. Run gives it its time, and lists it if that was not enough.
			l.scanner.Wait(context.Background())
		} else if p.snapshot != last || last == nil {
			s := load(l.cfg.ConfDir, slices.Collect(p.snapshot.All()), choose{max: max(l.cfg.MaxConfNum, 0), pin: l.cfg.DefaultNetwork, done: l.ctx.Done(), before: seen})
			p.set = &s
		}
		p.ended, p.filesystem = time.Now(), l.scanner.Filesystem()
		l.post(p)
	}()
}

func (l *loop) takePoll(p *scanned) {
	l.scanning = false
	if l.stopping {
		return
	}
	l.last = p.snapshot
	if p.set != nil {
		l.seen = p.set
	}
	l.step(p)
	l.next = l.pace.Next(p.ended, p.ended.Sub(p.started), l.core.polls.changed)
	if l.again {
		l.next = p.ended
	}
	l.again = false
}

// wakeAt is the earliest moment at which there is something to do without mail.
func (l *loop) wakeAt() time.Time {
	if l.stopping {
		return l.stopBy
	}
	at := l.core.deadline()
	if !l.scanning {
		at = earliest(at, l.next)
	}
	if at.IsZero() {
		return time.Now().Add(time.Hour)
	}
	return at
}

func (l *loop) stopIfEnded() {
	if l.ctx.Err() != nil && !l.stopping {
		l.stopping, l.stopBy = true, time.Now().Add(stopTimeout)
		l.step(stopping{})
	}
}

func (l *loop) finished(now time.Time) bool {
	return !l.scanning && !l.building && !l.looking && l.asking == nil || !now.Before(l.stopBy)
}

// left lists what is left behind.
func (l *loop) left() error {
	var stuck []string
	calls := l.scanner.Stuck()
	for _, call := range calls {
		stuck = append(stuck, call.String())
	}
	dir := scanner.Quote(l.cfg.ConfDir)
	if l.scanning && len(calls) == 0 {
		stuck = append(stuck, "scan of "+dir)
	}
	if l.building {
		stuck = append(stuck, "making a go-cni instance of "+dir)
	}
	if l.looking {
		stuck = append(stuck, "looking for plugins in "+quoted(l.cfg.BinDirs))
	}
	if l.asking != nil {
		l.asking()
		stuck = append(stuck, "STATUS of the plugins of "+dir)
	}
	if len(stuck) == 0 {
		return nil
	}
	sort.Strings(stuck)
	return &StuckError{Calls: stuck}
}
