package state

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// core compares what a Core shows with the model.
func (k *checker) core(c *Core) error {
	if err := bounded(c); err != nil {
		return err
	}
	k.errs = nil
	if k.blurred {
		k.sharpen(c.View(k.now))
	}
	deadline := c.Deadline()
	if w := k.soonest; !w.at.IsZero() && (deadline.IsZero() || deadline.After(w.at)) {
		k.failf("%q is to be looked at by %v, and the deadline is %v", w.path, w.at, deadline)
	}
	if !deadline.IsZero() && !deadline.After(k.now) {
		k.failf("the deadline %v has passed", deadline)
	}
	if deadline.Sub(k.now) > 10*time.Minute {
		k.failf("the deadline %v is further away than anything can be", deadline)
	}
	return errors.Join(k.errs...)
}

// view compares a View with the model (O2).
func (k *checker) view(v View) error {
	k.errs = nil
	if v.Synced != k.synced || len(v.Sockets) != len(k.paths) || len(v.Types) != len(k.types) {
		k.failf("view: synced %v, %d sockets, %d types; want %v, %d, %d", v.Synced, len(v.Sockets), len(v.Types), k.synced, len(k.paths), len(k.types))
	}
	for _, s := range v.Sockets {
		p := k.paths[s.Path]
		if p == nil {
			k.failf("view: %q should not be there", s.Path)
			continue
		}
		k.viewOf(p, s)
		if s.Since.After(v.Time) || s.Found.After(v.Time) || (s.Stale == nil) != (p.entry.Stale == nil) && p.present && !p.loose {
			k.failf("view: %q: since %v, found %v, stale %v", s.Path, s.Since, s.Found, s.Stale)
		}
	}
	return errors.Join(k.errs...)
}

func (k *checker) viewOf(p *pathModel, s SocketView) {
	_, phases := k.phaseOf(p)
	if !slices.Contains(phases, s.Phase) {
		k.failf("view: %q is %s, want %s", s.Path, s.Phase, phases)
	}
	tries, nexts := p.tries, []time.Time{{}}
	switch {
	case s.Phase == Backoff, s.Phase == NotPlugin, s.Phase == Rejected:
		if !p.never {
			nexts[0] = p.next
		}
	case s.Phase == Unreachable && p.probe == nil:
		nexts = []time.Time{p.next, latest(p.next, p.heldBack)}
	case s.Phase == Unreachable:
		nexts = append(nexts, p.next, latest(p.next, p.heldBack))
	case s.Phase == Registered && p.held != nil && p.held.ack == AckNo && (k.stopped || p.held.conn.live()):
		tries, nexts[0] = p.held.fails, p.held.next
	}
	exact := !k.stopping && p.wait == nil && !p.early && (p.held == nil || p.held.conn == nil || p.held.conn.live() || !p.held.since.IsZero())
	if exact && (s.Tries != tries || !slices.ContainsFunc(nexts, s.NextTry.Equal)) {
		k.failf("view: %q, %s: tries %d, next %v; want %d, %v", s.Path, s.Phase, s.Tries, s.NextTry, tries, nexts)
	}
	switch h := p.held; {
	case h == nil || k.cfg.Observe:
	case h.told:
		h.ack = s.Acknowledged
	case s.Acknowledged != h.ack && !p.leaving():
		k.failf("view: %q: acknowledged %q, want %q", s.Path, s.Acknowledged, h.ack)
	}
	k.viewOfCall(p, s.Call)
	if s.Phase == Standby {
		key := p.registration().key()
		if h := k.holder(key); k.running[key] == 0 && h != nil && s.Holder != h.path || s.Holder == "" || s.Holder == s.Path {
			k.failf("view: %q stands by for %q, the holder is %v", s.Path, s.Holder, h)
		}
	} else if s.Holder != "" {
		k.failf("view: %q is %s and has the holder %q", s.Path, s.Phase, s.Holder)
	}
}

func (k *checker) viewOfCall(p *pathModel, v *CallView) {
	f := p.call
	switch {
	case f == nil && v == nil:
	case f == nil || v == nil:
		k.failf("view: %q: its call is %v, want %v", p.path, v, f)
	case v.Verb != map[kind]string{validate: "validate", register: "register", deregister: "deregister"}[f.kind], !v.Since.Equal(f.started), v.Parked != f.parked && !k.blurred:
		k.failf("view: %q: its call is %+v, want kind %d since %v, parked %v", p.path, *v, f.kind, f.started, f.parked)
	}
}

func (k *checker) phased(p *pathModel) {
	was := p.phase
	is, all := k.phaseOf(p)
	if !p.visible() {
		is = ""
	}
	p.phase = is
	if was != is {
		k.counts[fmt.Sprintf("phase %s→%s", was, is)]++
	}
	if !slices.Contains(all, Standby) {
		p.said = false
	}
	if is == Standby && len(all) == 1 && !p.said && !k.chose(p.path, EventStandby) {
		k.failf("%q stands by from now on, and no event says so (N2)", p.path)
	}
}

// phaseOf is the phase of a socket, and all that are right where the contract leaves a choice.
func (k *checker) phaseOf(p *pathModel) (Phase, []Phase) {
	one := func(phase Phase, others ...Phase) (Phase, []Phase) { return phase, append(others, phase) }
	asking := p.probe != nil && p.probe.kind == ask
	standing := k.standing(p)
	switch {
	case !p.present || p.leaving():
		return one(Deregistering)
	case p.current() && !p.held.since.IsZero():
		return one(Unreachable)
	case p.current() && k.cfg.Observe:
		return one(Observed)
	case p.current():
		return one(Registered)
	case p.answer != nil && p.answer.open:
		return one(Registering, Standby, Pending, Backoff)
	case standing == yes && k.stopping:
		return one(Standby, Registering)
	case standing == yes:
		return one(Standby)
	case standing == maybe && p.said:
		return one(Standby, Registering)
	case standing == maybe:
		return one(Registering, Standby)
	case asking && p.probe.stamped, p.wait != nil:
		return one(Registering, Pending, Standby, Backoff, Rejected, NotPlugin)
	case asking, p.answer != nil, p.live(p.call):
		return one(Registering)
	case p.refused == unsupported:
		return one(NotPlugin)
	case p.refused != accepted:
		return one(Rejected)
	case p.tries > 0:
		return one(Backoff)
	}
	return one(Pending)
}
