package register

import (
	"context"
	"sort"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// filesStopTimeout is how long calls of a filesystem, which scans, looks and dials make, are waited for after Run's context has ended (S1).
const filesStopTimeout = time.Second

// loop is one Run: a single goroutine that takes results, requests and one timer, and starts the work.
type loop struct {
	*Manager
	ctx     context.Context // Run's own
	timer   *time.Timer
	running map[state.EffectID]*work
	looks   map[state.EffectID]*work
	scans   int

	stopping         bool
	stopped          bool // the core wants nothing any more
	filesBy, callsBy time.Time
}

// scanned is the end of a scan of a root.
type scanned struct {
	root     *watched
	snapshot *scanner.Snapshot
	err      error
	started  time.Time
	ended    time.Time
}

// done is the end of an effect: input is its result.
type done struct {
	id    state.EffectID
	input state.Input
}

// Run does the work until ctx ends. It returns nil then, or a *StuckError if something did not end in time (S1); what is registered stays registered unless
// Config.DeregisterOnStop is set (S2). A Manager runs once.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.begin(); err != nil {
		return err
	}
	l := &loop{Manager: m, ctx: ctx, timer: time.NewTimer(0), running: map[state.EffectID]*work{}, looks: map[state.EffectID]*work{}}
	defer m.end()
	defer l.timer.Stop()
	stop := ctx.Done()
	for {
		tick := false
		select {
		case <-stop:
		case <-m.poke:
		case <-l.timer.C:
			tick = true
		}
		for _, mail := range m.takeMail() {
			// Asked after the mail was taken: what fails because ctx has ended is no failure of a plugin.
			l.stopIfEnded()
			l.take(mail)
		}
		if l.stopIfEnded(); l.stopping {
			stop = nil
		}
		if tick {
			l.step(state.Tick{})
		}
		if l.stopping && l.finished(time.Now()) {
			return l.left()
		}
		l.startScans()
		l.timer.Reset(time.Until(l.wakeAt()))
	}
}

func (l *loop) take(mail any) {
	switch mail := mail.(type) {
	case scanned:
		l.takeScan(mail)
	case looked:
		l.takeLook(mail.result)
	case done:
		l.running[mail.id].cancel()
		delete(l.running, mail.id)
		l.step(mail.input)
	case state.RetryAsked:
		l.step(mail)
		if mail.Path == "" {
			l.scanAll()
		}
	case state.Disconnected:
		if l.conn(mail.Conn) != nil { // not closed meanwhile
			l.step(mail)
		}
	case state.Input:
		l.step(mail)
	}
}

// step gives the core an input and carries out what it answers. Events are published under the core's mutex, so that a View and the
// events after it fit together (O4).
func (l *loop) step(in state.Input) {
	l.mu.Lock()
	effects := l.core.Step(time.Now(), in)
	for _, e := range effects {
		if e, ok := e.(state.Emit); ok {
			for s := range l.readers {
				s.Publish(e.Event)
			}
		}
	}
	l.mu.Unlock()
	for _, e := range effects {
		l.carryOut(e)
	}
}

func (l *loop) startScans() {
	if l.stopping {
		return
	}
	now := time.Now()
	for _, r := range l.roots {
		if r.busy || r.next.After(now) {
			continue
		}
		r.busy = true
		l.scans++
		last := r.last
		go func() {
			started := time.Now()
			snapshot, err := r.scanner.Scan(l.ctx, last)
			if l.ctx.Err() != nil {
				// The scan left a call behind. Run gives it its time, and lists it if that was not enough (S1).
				r.scanner.Wait(context.Background())
			}
			l.post(scanned{r, snapshot, err, started, time.Now()})
		}()
	}
}

func (l *loop) takeScan(s scanned) {
	l.scans--
	r := s.root
	r.busy = false
	if l.stopping {
		return
	}
	l.metrics.scanned(s)
	changed := s.snapshot != r.last && len(scanner.Diff(r.last, s.snapshot)) > 0
	r.last, r.ended, r.took = s.snapshot, s.ended, s.ended.Sub(s.started)
	r.next = r.pace.Next(r.ended, r.took, changed)
	if r.soon {
		r.next = earlier(r.next, r.eager())
	}
	if r.again {
		r.next = s.ended
	}
	r.again, r.soon = false, false
	l.step(state.Scanned{Root: r.path, Snapshot: s.snapshot, Err: s.err, Started: s.started, Ended: s.ended, Filesystem: r.scanner.Filesystem()})
}

func (l *loop) scanAll() {
	for _, r := range l.roots {
		r.next, r.again = time.Time{}, r.busy
	}
}

// wakeAt is the earliest moment at which there is something to do without mail.
func (l *loop) wakeAt() time.Time {
	if l.stopping {
		if l.inFiles() > 0 && time.Now().Before(l.filesBy) {
			return l.filesBy
		}
		return l.callsBy
	}
	at := l.core.Deadline() // only Run's goroutine changes the core
	for _, r := range l.roots {
		if !r.busy && (at.IsZero() || r.next.Before(at)) {
			at = r.next
		}
	}
	if at.IsZero() {
		return time.Now().Add(time.Hour)
	}
	return at
}

func (l *loop) stopIfEnded() {
	if l.ctx.Err() != nil && !l.stopping {
		l.stop()
	}
}

// stop begins the end: no call starts any more, what runs is cancelled.
func (l *loop) stop() {
	now := time.Now()
	l.stopping = true
	l.filesBy, l.callsBy = now.Add(min(filesStopTimeout, l.cfg.StopTimeout)), now.Add(l.cfg.StopTimeout)
	l.step(state.Stopping{})
}

func (l *loop) finished(now time.Time) bool {
	if !now.Before(l.callsBy) {
		return true
	}
	return l.stopped && len(l.running) == 0 && (l.inFiles() == 0 || !now.Before(l.filesBy))
}

// inFiles is how many calls of filesystems run. A dial is one of them once it was given up, before it is among running.
func (l *loop) inFiles() int { return l.scans + len(l.looks) + l.dials.count() }

// left lists what is left behind, and ends its contexts: a Deregister's is not Run's own.
func (l *loop) left() error {
	var stuck []string
	paths := map[string]bool{}
	for _, w := range l.running {
		w.cancel()
		paths[w.path] = true
		stuck = append(stuck, w.what+" of "+scanner.Quote(w.path))
	}
	if l.cfg.DeregisterOnStop {
		for _, path := range l.core.Held() { // only Run's goroutine changes the core
			if !paths[path] {
				stuck = append(stuck, "Deregister of "+scanner.Quote(path)+", which has not begun")
			}
		}
	}
	for _, path := range l.dials.stuck() {
		if !paths[path] {
			stuck = append(stuck, "dial of "+scanner.Quote(path))
		}
	}
	for _, w := range l.looks {
		w.cancel() // what does not end is among the calls below
	}
	for _, r := range l.roots {
		calls := r.scanner.Stuck()
		for _, call := range calls {
			stuck = append(stuck, call.String())
		}
		if r.busy && len(calls) == 0 {
			stuck = append(stuck, "scan of "+scanner.Quote(r.path))
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	sort.Strings(stuck)
	return &StuckError{Calls: stuck}
}
