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
		if h != nil && c.cfg.DeregisterOnStop {
			return deregister, h.key()
		}
		return none, name{}
	case h != nil && (s.gone || s.superseded(c)):
		return deregister, h.key()
	case s.answer != nil && !s.gone && h == nil:
		return validate, s.registration(s.answer).key()
	}
	return none, name{}
}

// superseded reports whether what is registered must make way for another instance: that one has answered, in whatever way, or had its time (R6).
func (s *socket) superseded(c *Core) bool {
	if s.current() {
		return false
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
	c.call(s, k, key)
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

// call starts a handler call in a place and under a name that the socket holds.
func (c *Core) call(s *socket, k kind, key name) {
	f := c.fly(s, k)
	f.key = key
	s.call = f
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
	switch {
	case c.stopping:
		return ReasonStopping
	case s.gone:
		return ReasonGone
	case s.answer == nil && s.refused == accepted && !s.registered.makeWay.IsZero() && !c.now.Before(s.registered.makeWay):
		return ReasonSilent
	}
	return ReasonReplaced
}

// registerNow follows a Validate that passed.
func (c *Core) registerNow(s *socket, validated *flight) {
	f := c.fly(s, register)
	f.key, f.subject = validated.key, validated.subject
	s.call = f
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
		if k, key := c.wantsCall(s); k == validate && key == f.key {
			c.call(s, validate, f.key)
			return
		}
	case validate:
		if in.Err == nil && !s.outdated(f) && !c.stopping {
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
				c.call(s, deregister, f.key)
				return
			}
		} else {
			s.report = nil
			delete(c.reporting, f.id)
			c.refusedByHandler(s, f, in, "register")
		}
	}
	c.release(f.key)
}

// release gives the place and the name back.
func (c *Core) release(key name) {
	c.calls.release()
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
	c.close(h.conn)
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

func (c *Core) registeredNow(s *socket, f *flight) {
	h := &held{Registration: f.subject, generation: f.generation, by: f.id}
	s.registered = h
	if s.outdated(f) {
		c.emit(Debug, s.event(EventRegistered)) // deregistered follows at once
		return
	}
	h.conn, s.answer = s.answer.conn, nil
	s.tries, s.err, s.refused = 0, "", accepted
	s.delays.reset()
	s.lines.recovered()
	c.tried(s)
	c.emit(Notice, s.event(EventRegistered))
}

// refusedByHandler has the plugin told and plans the next try. Errors of an instance that is no longer there are nobody's.
func (c *Core) refusedByHandler(s *socket, f *flight, in Called, verb string) {
	if s.outdated(f) || c.stopping {
		return
	}
	conn := s.answer.conn
	s.answer = nil
	cause := verb + ": " + in.Err.Error()
	if in.Failure == Permanent {
		c.refuse(s, permanent, cause, conn)
		return
	}
	c.fail(s, cause, conn)
}
