package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// R11's figures.
const (
	evictable  = 20 * time.Millisecond
	hanging    = time.Second
	parkedFrom = 250 * time.Millisecond
)

// isFirst says whether a probe goes before retries.
func (k *checker) isFirst(p *pathModel, what kind) string {
	switch {
	case p.urgent:
		return "maybe"
	case p.evicted, what == ask && p.tries > 0, what == tell && p.tries > 1, what == acknowledge && p.held != nil && p.held.fails > 0:
		return "no"
	case p.current() && what == ask, p.wait != nil, p.spacing > 0, what == acknowledge && !p.current():
		return "maybe" // checks, and what standbys are told
	}
	return "yes"
}

func (k *checker) probe(op Op, what kind, conn *connModel) *pathModel {
	f := k.begin(op, what, k.instanceOf(op.Path), 0)
	p := f.path
	f.conn = conn
	switch {
	case k.stopping:
		k.failf("probe %d after Stopping", op.ID)
	case !p.present:
		k.failf("probe %d of %q, which is gone", op.ID, op.Path)
	case p.probe != nil:
		k.failf("probe %d of %q beside %d (R7)", op.ID, op.Path, p.probe.id)
	case conn != nil && conn.path != op.Path:
		k.failf("probe %d of %q uses the connection %d of %q", op.ID, op.Path, conn.id, conn.path)
	}
	f.first = k.isFirst(p, what)
	p.probe = f
	p.urgent = false
	if k.evicting > 0 {
		k.evicting--
		if f.first == "no" {
			k.failf("probe %d of %q, a retry, takes a place that another one lost (R11)", op.ID, op.Path)
		}
	}
	if n := k.liveProbes(); n > k.probes || f.first == "no" && n > k.probes-k.probes/4 {
		k.failf("%d probes in %d slots; whether the last is a first try: %s (R11)", n, k.probes, f.first)
	}
	return p
}

// evict is a probe that is ended so that a first try has its place.
func (k *checker) evict(f *flightModel) {
	p := f.path
	k.counts["evictions"]++
	k.freed = k.now // how many follow at once is open
	if age := k.now.Sub(f.started); age < evictable {
		k.failf("probe %d of %q is ended after %v (R11)", f.id, p.path, age)
	} else if age < hanging && k.now.Sub(k.answered) < evictable {
		k.failf("probe %d of %q is ended after %v, though another one has ended only now (R11)", f.id, p.path, age)
	}
	if n := k.liveProbes(); n < k.probes {
		k.failf("probe %d of %q is ended, with %d of %d slots used (R11)", f.id, p.path, n, k.probes)
	}
	for _, o := range k.paths {
		if o.probe != nil && o.probe.started.Before(f.started) {
			k.failf("probe %d of %q is ended, and %d of %q runs for longer (R11)", f.id, p.path, o.probe.id, o.path)
		}
	}
	k.evicting++
	p.evicted, p.awaited = true, false
	if f.kind == ask {
		p.early = true
		if f.check {
			p.wait = &waitModel{why: lost, what: waitEither, from: k.now, by: k.now}
			if f.doubt || f.again {
				p.wait.why = doubt
			}
		}
	}
}

func (k *checker) liveProbes() (n int) {
	for _, p := range k.paths {
		if p.probe != nil {
			n++
		}
	}
	return n
}

// usedCalls is how many places handler calls take.
func (k *checker) usedCalls() (n int) {
	for _, p := range k.paths {
		if p.call != nil && !p.call.parked {
			n++
		}
	}
	return n
}

func (k *checker) parkedCalls() (n int) {
	for _, p := range k.paths {
		if p.call != nil && p.call.parked {
			n++
		}
	}
	return n
}

// park has the calls that have run for 250 ms give their places back, as far as MaxParked goes. Which ones, if not all, is the Core's choice.
func (k *checker) park() {
	var long []*flightModel
	for _, p := range k.paths {
		if p.call != nil && !p.call.parked && !p.call.ending && k.now.Sub(p.call.started) >= parkedFrom {
			long = append(long, p.call)
		}
	}
	if len(long) == 0 {
		return
	}
	slices.SortFunc(long, func(a, b *flightModel) int { return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.id, b.id)) })
	parked := k.parkedCalls()
	if k.stopping || parked+len(long) > k.maxParked {
		k.blurred = true
	}
	for _, f := range long[:min(len(long), max(0, k.maxParked-parked))] {
		f.parked = true
		f.path.awaited = false
		k.counts["parked"]++
	}
}

// placed checks the number of calls when one more starts.
func (k *checker) placed() {
	if n := k.usedCalls(); n > k.calls && !k.blurred {
		k.failf("%d calls in %d slots (R11)", n, k.calls)
	}
}

// sharpen takes from a View which calls are parked, where that is the Core's choice, and checks how many.
func (k *checker) sharpen(v View) {
	for _, s := range v.Sockets {
		p := k.paths[s.Path]
		if p == nil || p.call == nil || s.Call == nil || p.call.parked == s.Call.Parked {
			continue
		}
		if s.Call.Parked && k.now.Sub(p.call.started) < parkedFrom && !p.call.chained {
			k.failf("%q: its call is parked after %v (R11)", s.Path, k.now.Sub(p.call.started))
		}
		if p.call.parked = s.Call.Parked; p.call.parked {
			p.awaited = false
		}
	}
	if n := k.parkedCalls(); n > k.maxParked {
		k.failf("%d calls are parked, and %d may be (R11)", n, k.maxParked)
	}
	if n := k.usedCalls(); n > k.calls {
		k.failf("%d calls in %d slots (R11)", n, k.calls)
	}
}

// busy is R11: a slot that may be used is used. And what is to be done later has its Deadline.
func (k *checker) busy() {
	if k.evicting > 0 {
		k.failf("%d probes were ended for nobody (R11)", k.evicting)
	}
	if k.stopping {
		return
	}
	k.busyProbes()
	if !k.blurred {
		k.busyCalls()
	}
}

func (k *checker) busyProbes() {
	probes := k.liveProbes()
	var oldest *flightModel
	for _, p := range k.paths {
		if p.probe != nil && (oldest == nil || p.probe.started.Before(oldest.started)) {
			oldest = p.probe
		}
	}
	for path, p := range k.paths {
		k.busyLook(p)
		want, first, at := k.wantsProbe(p)
		switch {
		case want && (first && probes < k.probes || probes < k.probes-k.probes/4):
			k.failf("%q waits for a probe, with %d of %d slots used", path, probes, k.probes)
		case want && first && !k.now.Before(k.giveWay(oldest)):
			k.failf("%q waits, and %d of %q runs for %v (R11)", path, oldest.id, oldest.path.path, k.now.Sub(oldest.started))
		case want && first:
			k.expect(fmt.Sprintf("%s for %s", oldest.path.path, path), k.giveWay(oldest))
		case !at.IsZero():
			k.expect(path, at)
		}
	}
}

// giveWay is when a probe has to end for a first try: after 20 ms in which none has ended, or after a second.
func (k *checker) giveWay(f *flightModel) time.Time {
	quiet, long := latest(f.started, k.freed).Add(evictable), f.started.Add(hanging)
	if long.Before(quiet) {
		return long
	}
	return quiet
}

// busyLook: a look that is due is made.
func (k *checker) busyLook(p *pathModel) {
	w := p.wait
	if w == nil || w.what != waitLook || w.by.IsZero() || !p.present || p.look != nil || p.leaving() {
		return
	}
	if k.now.Before(w.by) {
		k.expect(p.path, w.by)
		return
	}
	k.failf("%q is not looked at, which was due at %v (L1)", p.path, w.by)
}

func (k *checker) busyCalls() {
	calls := k.usedCalls()
	for path, p := range k.paths {
		for _, at := range k.timesOfCalls(p) {
			k.expect(path, at)
		}
		key, want := k.wantsCall(p)
		if want && k.running[key] == 0 && calls < k.calls-k.calls/4 {
			k.failf("%q waits for a handler call, with %d of %d slots used", path, calls, k.calls)
		}
	}
}

// timesOfCalls are when time alone makes a call due or parks one.
func (k *checker) timesOfCalls(p *pathModel) (times []time.Time) {
	if p.call != nil {
		if !p.call.parked && k.parkedCalls() < k.maxParked {
			times = append(times, p.call.started.Add(parkedFrom))
		}
		return times
	}
	if h := p.held; h != nil && len(k.departs(p)) == 0 {
		if p.present && !p.current() && !k.cfg.Observe {
			times = append(times, h.replaced.Add(2*time.Second))
		}
		if p.current() && !h.since.IsZero() && k.grace > 0 && !k.cfg.Observe {
			times = append(times, h.since.Add(k.grace))
		}
	}
	return times
}

// wantsCall reports whether a socket could do with a handler call now, and for which name.
func (k *checker) wantsCall(p *pathModel) (key name, want bool) {
	switch {
	case p.call != nil:
		return key, false
	case p.held != nil && !k.cfg.Observe:
		key = p.held.reg.key()
		if len(k.departs(p)) > 0 || !k.excludes(key) {
			return key, len(k.departs(p)) > 0
		}
		c := k.challenger(p, false)
		return key, c != nil && !k.rival(c, key, false)
	case p.held != nil, p.answer == nil, p.answer.open:
		return key, false
	}
	key = p.registration().key()
	if !k.excludes(key) {
		return key, true
	}
	best, sure := k.best(key)
	return key, sure && best == p && k.holder(key) == nil
}

// expect notes a time at which the Core has to be woken; core compares it.
func (k *checker) expect(path string, at time.Time) {
	if k.soonest.at.IsZero() || at.Before(k.soonest.at) {
		k.soonest = wakeup{path, at}
	}
}

// wantsProbe reports whether a path could do with a probe now and whether that counts as a first try; else when it will, if ever.
func (k *checker) wantsProbe(p *pathModel) (want, first bool, at time.Time) {
	switch {
	case !p.present || p.probe != nil:
	case p.tell != nil:
		return true, k.isFirst(p, tell) == "yes", at
	case p.wait != nil:
		if w := p.wait; w.what == waitAsk && !w.by.IsZero() && !p.leaving() {
			if k.now.Before(w.by) && (p.urgent || !k.now.Before(w.from)) { // it may be waiting for a place already
				return false, false, at
			}
			if k.now.Before(w.by) {
				return false, false, w.by
			}
			return true, false, at
		}
	case p.current() && p.held.since.IsZero():
		if h := p.held; h.conn.live() && p.look == nil && !h.told && !k.cfg.Observe && !p.leaving() && (h.ack == "" || h.ack == AckNo) {
			if k.now.Before(h.next) {
				return false, false, h.next
			}
			return true, k.isFirst(p, acknowledge) == "yes", at
		}
	case p.answer != nil:
		return !p.answer.open && !p.spent && p.answer.ack == "" && p.answer.conn.live() && k.standing(p) == yes, false, at
	case p.live(p.call), p.leaving(), p.never:
	case p.soft && k.now.Before(latest(p.next, p.lastReset.Add(5*time.Second))): // it may be waiting for a place already
	case k.now.Before(p.next), !p.urgent && k.now.Before(p.heldBack):
		if p.urgent {
			return false, false, p.next
		}
		return false, false, latest(p.next, p.heldBack)
	case k.now.Before(p.tolerate):
	default:
		return true, k.isFirst(p, ask) == "yes", at
	}
	return false, false, at
}

// bounded is R12: what is gone is gone from everywhere, so that no queue can outgrow the sockets there are.
func bounded(c *Core) error {
	waiting := 0
	for _, line := range c.waiting {
		waiting += len(line)
	}
	for _, n := range []struct {
		what string
		n    int
	}{
		{"alarms", len(c.alarms)},
		{"tickets for probes", len(c.probes.first) + len(c.probes.retries)},
		{"tickets for calls", len(c.calls.first) + len(c.calls.retries)},
		{"sockets waiting for a name", waiting},
	} {
		if n.n > len(c.sockets) {
			return fmt.Errorf("%d %s for %d sockets", n.n, n.what, len(c.sockets))
		}
	}
	return nil
}
