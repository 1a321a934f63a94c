package state

import (
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// wantsCall says which handler call the socket needs now, and for which name. Deregister comes before Validate: the kubelet's own CSI handler refuses
// a name that is still registered (R6).
func (c *Core) wantsCall(s *socket) (kind, name) {
	h := s.registered
	switch {
	case s.call != nil:
		return none, name{}
	case c.stopping:
		if h != nil && !h.observed && c.cfg.DeregisterOnStop {
			return deregister, h.key()
		}
		return none, name{}
	case h != nil && (s.gone || c.superseded(s) || c.outranked(s)):
		return deregister, h.key()
	case s.answer != nil && !s.gone && h == nil && c.mayHave(s, s.answer.info.key()):
		return validate, s.answer.info.key()
	}
	return none, name{}
}

// mayHave reports whether s is the one to be registered under its name now.
func (c *Core) mayHave(s *socket, key name) bool {
	if !c.exclusive(key.typ) {
		return true
	}
	holder, best := c.contest(key)
	return holder == nil && best == s
}

// superseded reports whether what is registered must make way for another instance: that one has answered, in whatever way, or had its
// time (R6). What is unreachable for too long makes way for nothing (L2).
func (c *Core) superseded(s *socket) bool {
	if s.current() {
		return c.gaveUp(s.registered)
	}
	return s.answer != nil || s.refused != accepted || !c.now.Before(s.registered.makeWay)
}

// startCall uses a free place, if the socket still has a need for it and its name is free.
func (c *Core) startCall(s *socket) {
	k, key := c.wantsCall(s)
	if k == none {
		return
	}
	if c.reserved[key] {
		if s.waitsFor != key {
			c.waitNoMore(s)
			s.waitsFor = key
			c.waiting[key] = append(c.waiting[key], s)
		}
		return
	}
	c.calls.take()
	c.reserved[key] = true
	c.waitNoMore(s)
	c.call(s, k, key, false)
}

// waitNoMore takes s out of the line for a reserved name.
func (c *Core) waitNoMore(s *socket) {
	key := s.waitsFor
	if key == (name{}) {
		return
	}
	s.waitsFor = name{}
	line := slices.DeleteFunc(c.waiting[key], func(o *socket) bool { return o == s })
	if c.waiting[key] = line; len(line) == 0 {
		delete(c.waiting, key)
	}
}

// begin gives the socket a call in a place and under a name that it holds. parked: the calls before it gave the place back, and it has none.
func (c *Core) begin(s *socket, k kind, key name, parked bool) *flight {
	f := c.fly(s, k)
	f.key, f.parked = key, parked
	s.call = f
	if !parked {
		c.calling.add(f)
	}
	return f
}

// call starts a Deregister or a Validate.
func (c *Core) call(s *socket, k kind, key name, parked bool) {
	f := c.begin(s, k, key, parked)
	switch k {
	case deregister:
		f.generation, f.subject, f.reason = s.registered.generation, s.registered.Registration, c.reason(s)
		c.do(Deregister{f.op(), f.subject})
	case validate:
		f.subject = s.registration(s.answer)
		c.do(Validate{f.op(), f.subject})
	}
	c.phased(s)
}

// reason is why the registration of s must go now.
func (c *Core) reason(s *socket) Reason {
	h := s.registered
	switch {
	case c.stopping:
		return ReasonStopping
	case s.gone:
		return ReasonGone
	case s.current() && c.gaveUp(h):
		return ReasonUnreachable
	case !s.current() && (s.answer != nil || s.refused != accepted):
		return ReasonReplaced
	case !s.current() && !c.now.Before(h.makeWay):
		return ReasonSilent
	}
	return ReasonOutranked
}

// registerNow follows a Validate that passed.
func (c *Core) registerNow(s *socket, validated *flight) {
	f := c.begin(s, register, validated.key, validated.parked)
	f.subject = validated.subject
	c.reporting[f.id] = s
	c.do(Register{f.op(), f.subject})
}

func (c *Core) cancelCall(s *socket) {
	if f := s.call; !f.cancelled {
		f.cancelled = true
		c.do(Cancel{f.id})
	}
}

// called takes the end of a handler call. What follows for the same name follows at once, in the place and under the reservation of the call
// that ended, so that nothing comes between (R6, R7).
func (c *Core) called(in Called) {
	f := c.land(in.ID)
	if f == nil {
		return
	}
	s := f.socket
	s.call = nil
	c.touch(s)
	switch f.kind {
	case deregister:
		c.deregistered(s, f, in)
		if next := c.next(s, f.key); next != nil {
			c.waitNoMore(next)
			c.call(next, validate, f.key, f.parked)
			return
		}
	case validate:
		switch {
		case in.Err != nil || s.outdated(f) || c.stopping:
		case c.cfg.Observe:
			c.observedNow(s, f)
		default:
			c.registerNow(s, f)
			return
		}
		if in.Err != nil {
			c.refusedByHandler(s, f, in, "validate")
		}
	case register:
		if in.Err == nil {
			c.registeredNow(s, f)
			if s.outdated(f) && !c.stopping {
				c.call(s, deregister, f.key, f.parked)
				return
			}
		} else {
			s.report = nil
			delete(c.reporting, f.id)
			c.refusedByHandler(s, f, in, "register")
		}
	}
	c.release(f)
}

// next is who is to be registered under a name that was just given up; nil: nobody, now.
func (c *Core) next(s *socket, key name) *socket {
	c.enroll(s)
	if c.exclusive(key.typ) {
		_, s = c.contest(key)
	}
	if s == nil {
		return nil
	}
	if k, wanted := c.wantsCall(s); k == validate && wanted == key {
		return s
	}
	return nil
}

// release gives the place, if it has one, and the name back.
func (c *Core) release(f *flight) {
	if f.parked {
		c.parked--
	} else {
		c.calls.release()
	}
	key := f.key
	delete(c.reserved, key)
	waiting := c.waiting[key]
	delete(c.waiting, key)
	for _, s := range waiting {
		s.waitsFor = name{}
		c.touch(s)
	}
}

func (c *Core) deregistered(s *socket, f *flight, in Called) {
	h := s.registered
	s.registered, s.report = nil, nil
	delete(c.reporting, h.by)
	c.handBack(s, h, f.reason)
	e := s.event(EventDeregistered)
	e.Reason = f.reason
	e.Plugin, e.Error, e.Tries, e.NextTry = f.subject.plugin(), "", 0, time.Time{} // not those of an instance that came after
	if s.gone {
		e.Phase = "" // that was all
	}
	level := Notice
	if in.Err != nil {
		level = Warn
		e.Error = scanner.Clean("deregister: "+in.Err.Error(), maxMessage)
	}
	c.emit(level, e)
}

// handBack makes a candidate of an instance that lost its name to another and still lives (N2), and hangs up on any other.
func (c *Core) handBack(s *socket, h *held, why Reason) {
	if why != ReasonOutranked || s.gone || h.generation != s.generation {
		c.hang(h.said)
		return
	}
	if h.said.conn != 0 && h.checkAt.IsZero() {
		s.answer = h.said
		return
	}
	c.hang(h.said)
	if h.lost.IsZero() && s.nextTry.Before(h.checkAt) {
		s.nextTry = h.checkAt
	}
}

func (c *Core) registeredNow(s *socket, f *flight) {
	h := &held{Registration: f.subject, generation: f.generation, rank: s.rank, by: f.id, said: &answer{generation: f.generation}}
	s.registered = h
	if s.outdated(f) {
		c.emit(Debug, s.event(EventRegistered)) // deregistered follows at once
		return
	}
	c.takeOver(s, h)
	e := s.event(EventRegistered)
	e.Took = c.now.Sub(h.said.asked).Seconds()
	c.emit(Notice, e)
}

// observedNow ends the try of an instance that is only watched (R18).
func (c *Core) observedNow(s *socket, f *flight) {
	s.registered = &held{Registration: f.subject, generation: f.generation, rank: s.rank, observed: true}
	c.takeOver(s, s.registered)
	c.emit(Notice, s.event(EventObserved))
}

// takeOver makes the answer that led to h its witness.
func (c *Core) takeOver(s *socket, h *held) {
	h.said, s.answer = s.answer, nil
	h.said.ack.toldAgain(h.said.ack)
	s.tries, s.err, s.refused, s.spent, s.nextTry = 0, "", accepted, false, c.now
	s.delays.reset()
	s.lines.Recovered()
	c.tried(s)
	if h.said.conn == 0 {
		c.suspect(s) // it ended while the handler was at work
	}
}

// refusedByHandler has the plugin told and plans the next try. Errors of an instance that is no longer there are nobody's.
func (c *Core) refusedByHandler(s *socket, f *flight, in Called, verb string) {
	if s.outdated(f) || c.stopping {
		return
	}
	conn := s.answer.conn
	s.answer, s.spent = nil, true
	cause := verb + ": " + in.Err.Error()
	if in.Failure == Permanent {
		c.refuse(s, permanent, cause, conn)
		return
	}
	c.fail(s, cause, conn)
}
