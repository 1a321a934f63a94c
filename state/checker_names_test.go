package state

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// The promises about names: R7's for all, N2's for those that one instance has at a time.

type answer3 int

const (
	no answer3 = iota
	maybe
	yes
)

// excludes reports whether a name is one instance's at a time.
func (k *checker) excludes(key name) bool { return k.exclusive[key.typ] && !k.cfg.Observe }

// holder is the path that has a name registered.
func (k *checker) holder(key name) *pathModel {
	if k.holders != nil {
		return k.holders[key]
	}
	for _, p := range k.paths {
		if p.held != nil && p.held.reg.key() == key {
			return p
		}
	}
	return nil
}

// superseded is R6: the new instance has answered, in whatever way, or had its two seconds.
func (k *checker) superseded(p *pathModel) bool {
	return p.held != nil && p.present && !p.current() &&
		(p.answer != nil || p.refused != accepted || k.now.Sub(p.held.replaced) >= 2*time.Second)
}

// departs reports whether what is held is to be deregistered, whatever others of its name do, and why.
func (k *checker) departs(p *pathModel) (reasons []Reason) {
	if p.held == nil || k.cfg.Observe {
		return nil
	}
	if !p.present {
		reasons = append(reasons, ReasonGone)
	}
	if k.superseded(p) {
		if p.answer != nil || p.refused != accepted {
			reasons = append(reasons, ReasonReplaced)
		}
		if k.now.Sub(p.held.replaced) >= 2*time.Second {
			reasons = append(reasons, ReasonSilent)
		}
	}
	if k.expired(p.held) && p.current() {
		reasons = append(reasons, ReasonUnreachable)
	}
	return reasons
}

// candidate reports whether a socket is free to be handed to its handler under a name.
func (p *pathModel) candidate(key name) bool {
	return p.present && p.answer != nil && p.held == nil && p.call == nil && p.registration().key() == key
}

// above reports whether a candidate outranks another one, or a holder.
func (p *pathModel) above(o *pathModel) bool {
	if o.held != nil {
		return !p.spent && p.rank.compare(o.held.rank) > 0
	}
	if p.spent != o.spent {
		return o.spent
	}
	return p.rank.compare(o.rank) > 0
}

// above2 is above between two answers, whatever they hold of other names.
func (p *pathModel) above2(o *pathModel) bool {
	if p.spent != o.spent {
		return o.spent
	}
	return p.rank.compare(o.rank) > 0
}

// mayTakeOver is N2's rule for taking a name over.
func mayTakeOver(c, h *pathModel) bool {
	a, b := c.answer.peer, h.held.peer
	return a == nil || b == nil || a.UID == 0 || a.UID == b.UID || !h.held.since.IsZero()
}

// best is the candidate of a free name, and whether that is certain.
func (k *checker) best(key name) (best *pathModel, sure bool) {
	sure = true
	for _, p := range k.paths {
		if p.present && p.answer != nil && p.registration().key() == key && (p.answer.open || !p.candidate(key)) {
			sure = false // it may come in between, once it is free
		}
		if p.candidate(key) && !p.answer.open && (best == nil || p.above(best)) {
			best = p
		}
	}
	return best, sure
}

// challenger is the best one of those that may take a name over from its holder.
func (k *checker) challenger(h *pathModel, open bool) (best *pathModel) {
	key := h.held.reg.key()
	for _, p := range k.paths {
		if p != h && p.candidate(key) && (open || !p.answer.open) && p.above(h) && mayTakeOver(p, h) && (best == nil || p.above(best)) {
			best = p
		}
	}
	return best
}

// rival reports whether somebody outranks a candidate of a name: one that is busy (its own old registration is being ended) or, if free, any.
func (k *checker) rival(p *pathModel, key name, free bool) bool {
	for _, o := range k.paths {
		if o != p && o.present && o.answer != nil && o.registration().key() == key && (free || !o.candidate(key)) && o.above2(p) {
			return true
		}
	}
	return false
}

// judge refuses those who outrank a holder and may not take its place.
func (k *checker) judge() {
	if k.stopping {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(k.paths)) {
		c := k.paths[path]
		if c.answer != nil && !c.answer.open && c.answer.conn != nil && c.answer.conn.ended { // it ended while that was open
			switch k.standing(c) {
			case yes:
				conn := c.answer.conn
				c.answer = nil
				k.lost(c, conn)
				c.wait.from = k.now
			case maybe:
				k.perhapsLost(c, c.answer.conn)
			}
		}
		if c.answer == nil || c.answer.open && !k.chose(path, EventRejected) || c.held != nil || c.call != nil {
			continue
		}
		key := c.registration().key()
		if !k.excludes(key) || k.running[key] != 0 {
			continue
		}
		h := k.holder(key)
		if h == nil || h == c || len(k.departs(h)) > 0 || !c.above(h) || mayTakeOver(c, h) {
			continue
		}
		if (k.calling(key) || k.rival(c, key, true)) && !k.chose(path, EventRejected) { // that is decided when the better one has been
			continue
		}
		k.counts["takeovers refused"]++
		conn := c.answer.conn
		c.answer = nil
		c.mention, c.blocked, c.blocker = strings.Trim(h.path, "\n"), &key, h.path
		k.refuse(c, permanent, conn)
	}
}

// unblock lets those who were refused a name try again once it is free, or its holder unreachable.
func (k *checker) unblock() {
	for _, p := range k.paths {
		if p.blocked == nil {
			continue
		}
		h := k.holder(*p.blocked)
		if h == nil || h.path != p.blocker || len(k.departs(h)) > 0 || !h.held.since.IsZero() || h.call != nil || k.calling(*p.blocked) {
			p.early, p.urgent = true, true
		}
	}
}

// standing reports whether a socket stands by: maybe while a call of its name runs, which may be about to end that or to begin it.
func (k *checker) standing(p *pathModel) answer3 {
	if p.answer == nil || p.call != nil {
		return no
	}
	key := p.registration().key()
	if !k.excludes(key) {
		return no
	}
	h := k.holder(key)
	switch {
	case k.running[key] != 0:
		return maybe
	case h == nil: // it stands by for one that is about to have the name
		if k.rival(p, key, true) {
			return maybe
		}
		return no
	case h == p:
		return no
	case p.held != nil, len(k.departs(h)) > 0:
		return maybe
	case p.above(h) && k.rival(p, key, true):
		return maybe
	case p.above(h):
		return no
	}
	return yes
}

// oneHolder is N2: an exclusive name is registered once at most.
func (k *checker) oneHolder() {
	held := map[name]*pathModel{}
	for _, p := range k.paths {
		if p.held == nil || !k.excludes(p.held.reg.key()) {
			continue
		}
		if other := held[p.held.reg.key()]; other != nil {
			k.failf("%q and %q both have %v (N2)", other.path, p.path, p.held.reg.key())
		}
		held[p.held.reg.key()] = p
	}
}

// handlerCall checks what holds for every handler call.
func (k *checker) handlerCall(op Op, what kind, instance int, generation uint64, reg Registration) *pathModel {
	f := k.begin(op, what, instance, generation)
	f.reg = reg
	p, key := f.path, reg.key()
	if p.call != nil {
		k.failf("call %d of %q beside %d (R7)", op.ID, op.Path, p.call.id)
	}
	if other := k.running[key]; other != 0 {
		k.failf("call %d for %v beside %d (R7)", op.ID, key, other)
	}
	chained := false
	for _, m := range []**must{&k.mustDeregister, &k.mustValidate, &k.mustRegister} {
		if *m == nil || (*m).reg.key() != key {
			continue
		}
		want := map[**must]kind{&k.mustDeregister: deregister, &k.mustValidate: validate, &k.mustRegister: register}[m]
		if what != want || (*m).path != op.Path || !sameRegistration((*m).reg, reg) && !p.loose {
			k.failf("call %d of %q for %v comes between: %q was to come (R6, R7, N2)", op.ID, op.Path, key, (*m).path)
		}
		*m, chained = nil, true
	}
	if k.ended != nil && k.ended.kind == deregister && k.ended.reg.key() == key && k.excludes(key) { // whoever follows, follows in the same place
		chained = true
	}
	f.parked = chained && k.ended != nil && k.ended.parked
	p.call = f
	k.running[key] = op.ID
	f.chained = chained
	k.placed()
	return p
}

func (k *checker) validate(e Validate) {
	p := k.handlerCall(e.Op, validate, k.instanceOf(e.Path), 0, e.Registration)
	key := e.Registration.key()
	if p.answer != nil {
		p.answer.open = false
		p.wait = nil
	}
	switch {
	case k.stopping:
		k.failf("validate %d after Stopping (S1)", e.ID)
	case !p.present, p.answer == nil:
		k.failf("validate %d of %q, which has no live answer", e.ID, e.Path)
	case p.held != nil:
		k.failf("validate %d of %q, which has something registered (R6)", e.ID, e.Path)
	case !sameRegistration(e.Registration, p.registration()) && !p.loose:
		k.failf("validate %d of %q with what it did not say", e.ID, e.Path)
	case p.tries > 0 && !p.call.chained && k.usedCalls() > k.calls-k.calls/4 && !k.blurred:
		k.failf("validate %d of %q, a retry, takes one of the last slots (R11)", e.ID, e.Path)
	}
	if !k.excludes(key) {
		return
	}
	if h := k.holder(key); h != nil {
		k.failf("validate %d of %q, and %q has the name (N2)", e.ID, e.Path, h.path)
	}
	for _, o := range k.paths {
		if o != p && o.candidate(key) && !o.answer.open && o.above(p) {
			k.failf("validate %d of %q, though %q outranks it (N2)", e.ID, e.Path, o.path)
		}
	}
}

func (k *checker) register(e Register) {
	validated := k.mustRegister != nil && k.mustRegister.path == e.Path
	p := k.handlerCall(e.Op, register, k.instanceOf(e.Path), 0, e.Registration)
	switch {
	case k.stopping:
		k.failf("register %d after Stopping (S1)", e.ID)
	case k.cfg.Observe:
		k.failf("register %d in observe mode (R18)", e.ID)
	case !validated:
		k.failf("register %d of %q without a Validate just before (R1)", e.ID, e.Path)
	case !p.present, p.answer == nil, p.held != nil:
		k.failf("register %d of %q, which has no live answer or is registered", e.ID, e.Path)
	}
}

func (k *checker) deregister(e Deregister) {
	p := k.paths[e.Path]
	if p == nil || p.held == nil {
		k.failf("deregister %d of %q, which is not registered (R5)", e.ID, e.Path)
		return
	}
	late := k.mustDeregister != nil && k.mustDeregister.path == e.Path
	reasons := k.departs(p)
	if slices.Contains(reasons, ReasonReplaced) || slices.Contains(reasons, ReasonSilent) {
		k.counts["replacements"]++
	}
	if k.expired(p.held) && !slices.Contains(reasons, ReasonUnreachable) { // whether R6's time goes before L2's is open
		reasons = append(reasons, ReasonUnreachable)
	}
	if late {
		reasons = append(reasons, ReasonGone, ReasonReplaced, ReasonSilent)
	}
	if k.stopping {
		reasons = append(reasons, ReasonStopping)
	}
	if k.excludes(p.held.reg.key()) && !late && !k.stopping {
		if c := k.challenger(p, true); c != nil {
			reasons = append(reasons, ReasonOutranked)
			if len(reasons) == 1 {
				k.counts["takeovers"]++
			}
		}
	}
	switch {
	case k.cfg.Observe:
		k.failf("deregister %d in observe mode (R18)", e.ID)
	case k.stopping && !k.cfg.DeregisterOnStop:
		k.failf("deregister %d after Stopping (S2)", e.ID)
	case len(reasons) == 0:
		k.failf("deregister %d of %q for no reason", e.ID, e.Path)
	case !sameRegistration(e.Registration, p.held.reg):
		k.failf("deregister %d of %q with what was not registered (R5)", e.ID, e.Path)
	}
	k.handlerCall(e.Op, deregister, p.held.instance, p.held.gen, e.Registration)
	p.call.reasons = reasons
}
