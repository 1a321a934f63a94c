package state

import (
	"fmt"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// wantsProbe says which probe the socket needs now.
func (c *Core) wantsProbe(s *socket) kind {
	switch {
	case c.stopping || s.gone || s.probe != nil:
		return none
	case s.telling != nil:
		return tell
	case s.look != nil || !s.lookAt.IsZero() && !c.now.Before(s.lookAt):
		return none // the dial waits for what the look shows
	case s.current():
		return c.wantsOfHeld(s)
	case s.standby:
		if !s.spent && s.answer.conn != 0 && s.answer.ack.wanted() && !c.now.Before(s.answer.ack.next) {
			return acknowledge
		}
		return none
	case s.answer != nil || s.call != nil && s.call.kind != deregister && !s.outdated(s.call):
		return none
	case s.never || c.now.Before(s.nextTry):
		return none
	}
	return ask
}

// wantsOfHeld says which probe what is registered needs now: to be asked again, else to be told.
func (c *Core) wantsOfHeld(s *socket) kind {
	h := s.registered
	switch {
	case s.call != nil:
		return none
	case !h.checkAt.IsZero() && !c.now.Before(h.checkAt) && !c.now.Before(s.nextTry):
		return ask
	case !h.observed && h.lost.IsZero() && h.said.conn != 0 && h.said.ack.wanted() && !c.now.Before(h.said.ack.next):
		return acknowledge
	}
	return none
}

// startProbe uses a free place, if the socket still has a need for it.
func (c *Core) startProbe(s *socket) {
	k := c.wantsProbe(s)
	if k == none {
		return
	}
	c.probes.take()
	f := c.fly(s, k)
	c.probing.add(f)
	s.probe, s.urgent = f, false
	switch k {
	case ask:
		f.seen = s.entry.ID
		if s.current() && s.registered.doubt {
			s.lastReset = c.now
		}
		c.do(Ask{Op: f.op(), Entry: s.entry, Tries: s.tries, Unseen: s.unseen})
		s.unseen = time.Time{}
	case tell:
		f.conn = s.telling.conn
		c.do(Notify{Op: f.op(), Conn: f.conn, Message: s.telling.text})
	case acknowledge:
		f.said = s.link()
		f.conn = f.said.conn
		c.do(Notify{Op: f.op(), Conn: f.conn, Registered: true})
	}
	c.phased(s)
}

// dropProbe gives a probe up at once: a result that still comes is dropped, and its connection closed.
func (c *Core) dropProbe(s *socket) {
	f := s.probe
	if f == nil {
		return
	}
	s.probe = nil
	delete(c.flights, f.id)
	f.over = true
	c.probes.release()
	c.do(Cancel{f.id})
}

func (c *Core) endProbe(f *flight) *socket {
	s := f.socket
	s.probe, s.evicted, c.stall = nil, false, stall{since: c.now}
	c.probes.release()
	c.touch(s)
	return s
}

func (c *Core) asked(in Asked) {
	var conn EffectID
	if in.Connected {
		conn = in.ID
	}
	f := c.land(in.ID)
	if f == nil {
		c.close(conn)
		return
	}
	s := c.endProbe(f)
	if conn != 0 {
		c.links[conn] = s
	}
	if in.Failure != Stale {
		s.vanished = false
	}
	switch moved := f.seen != s.entry.ID; {
	case s.current():
		c.checked(s, f, in, conn)
	case in.Err != nil && in.Failure == Stale:
		c.close(conn)
		c.lookAgain(s, in.Err)
	case in.Err != nil && moved && c.resetByStamps(s):
		c.close(conn)
	default:
		c.judge(s, f, in, conn)
	}
}

// judge takes what the instance that is there has answered, or that it has not.
func (c *Core) judge(s *socket, f *flight, in Asked, conn EffectID) {
	_, known := c.known[in.Info.Type]
	switch {
	case in.Err == nil && !known:
		s.info = &in.Info
		c.refuse(s, unknownType, fmt.Sprintf("no handler for plugin type %s: %s", scanner.Quote(scanner.Clean(in.Info.Type, maxTypeShown)), c.typesText()), conn)
	case in.Err == nil:
		s.info = &in.Info
		s.refused = accepted
		c.noLook(s)
		s.answer = &answer{generation: s.generation, info: in.Info, peer: in.Peer, conn: conn, asked: f.began, since: c.now}
		if f.seen != s.entry.ID {
			c.emit(Debug, s.event(EventAdopted)) // I6
		}
	case in.Failure == Unsupported:
		c.close(conn)
		c.refuse(s, unsupported, in.Err.Error(), 0)
	case in.Failure == Permanent:
		c.refuse(s, permanent, in.Err.Error(), conn)
	case in.Failure == Refused && s.tries == 0 && !s.refusedOnce:
		s.refusedOnce, s.nextTry = true, c.now.Add(listenGrace)
	default:
		c.fail(s, in.Err.Error(), conn)
	}
}

func (c *Core) typesText() string {
	if types := c.types(); len(types) > 0 {
		return "the known types are " + strings.Join(types, ", ")
	}
	return "no type is known yet"
}

// fail plans the next try by the backoff. conn, if any, is used to tell the plugin, and then closed.
func (c *Core) fail(s *socket, cause string, conn EffectID) {
	s.refused = accepted
	s.nextTry, s.never = c.now.Add(s.delays.next(c.random)), false
	c.failed(s, cause, conn, EventFailing, Warn)
}

// refuse parks the socket: unknownType until a handler comes, the others for ten minutes.
func (c *Core) refuse(s *socket, why refusal, cause string, conn EffectID) {
	s.refused = why
	s.nextTry, s.never = c.now.Add(askAgain), why == unknownType
	if why == unsupported {
		c.failed(s, cause, conn, EventIgnored, Notice)
		return
	}
	c.failed(s, cause, conn, EventRejected, Warn)
}

func (c *Core) failed(s *socket, cause string, conn EffectID, k EventKind, loud Level) {
	s.tries++
	s.err = scanner.Clean(cause, maxMessage)
	switch {
	case c.cfg.Observe:
		c.close(conn)
	case conn != 0:
		s.telling = &message{generation: s.generation, conn: conn, text: s.err}
	}
	c.tried(s)
	level := Debug
	if s.entry.Stale == nil { // else its directory's line says enough
		level = s.lines.Level(c.now, s.err)
	}
	c.emit(min(level, loud), s.event(k))
}

// notified takes the end of a tell or an acknowledge. That a refusal could not be delivered is no failure of ours (R3).
func (c *Core) notified(in Notified) {
	f := c.land(in.ID)
	if f == nil {
		return
	}
	s := c.endProbe(f)
	if f.kind == tell {
		c.close(f.conn)
		s.telling = nil
		return
	}
	if f.said != s.link() {
		return // it has come to something else meanwhile
	}
	a := &f.said.ack
	switch {
	case in.Err == nil:
		a.was, a.err, a.tries = AckYes, "", 0
		s.ackLines.Recovered()
		c.emit(Debug, s.event(EventAcknowledged))
	case in.Failure == Unsupported:
		a.was, a.err, a.tries = AckUnsupported, "", 0
		c.emit(Debug, s.event(EventAcknowledged))
	default:
		a.was, a.err = AckNo, scanner.Clean(in.Err.Error(), maxMessage)
		a.tries++
		a.next = c.now.Add(a.delays.next(c.random))
		c.emit(s.ackLines.Level(c.now, a.err), s.event(EventNotAcknowledged))
	}
}
