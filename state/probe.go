package state

import (
	"fmt"
	"strings"

	"github.com/plugpoll/plugpoll/scanner"
)

// wantsProbe says which probe the socket needs now.
func (c *Core) wantsProbe(s *socket) kind {
	switch {
	case c.stopping || s.gone || s.probe != nil:
		return none
	case s.telling != nil:
		return tell
	case s.current():
		if h := s.registered; (h.ack == "" || h.ack == AckNo) && !c.now.Before(h.ackNext) {
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

// startProbe uses a free place, if the socket still has a need for it.
func (c *Core) startProbe(s *socket) {
	k := c.wantsProbe(s)
	if k == none {
		return
	}
	c.probes.take()
	f := c.fly(s, k)
	s.probe, s.urgent = f, false
	switch k {
	case ask:
		c.do(Ask{Op: f.op(), Entry: s.entry})
	case tell:
		f.conn = s.telling.conn
		c.do(Notify{Op: f.op(), Conn: f.conn, Message: s.telling.text})
	case acknowledge:
		f.conn = s.registered.conn
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
	c.probes.release()
	c.do(Cancel{f.id})
}

func (c *Core) endProbe(f *flight) *socket {
	s := f.socket
	s.probe = nil
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
	switch {
	case in.Err == nil && !c.known[in.Info.Type]:
		s.info = &in.Info
		c.refuse(s, unknownType, fmt.Sprintf("no handler for plugin type %s: %s", scanner.Quote(scanner.Clean(in.Info.Type, maxTypeShown)), c.typesText()), conn)
	case in.Err == nil:
		s.info = &in.Info
		s.refused = accepted
		s.answer = &answer{generation: s.generation, conn: conn, info: in.Info}
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
	if conn != 0 {
		s.telling = &message{generation: s.generation, conn: conn, text: s.err}
	}
	c.tried(s)
	level := Debug
	if s.entry.Stale == nil { // else its directory's line says enough
		level = s.lines.level(c.now, s.err)
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
	h := s.registered
	switch {
	case in.Err == nil:
		h.ack, h.ackErr, h.ackTries = AckYes, "", 0
		c.emit(Debug, s.event(EventAcknowledged))
	case in.Failure == Unsupported:
		h.ack, h.ackErr, h.ackTries = AckUnsupported, "", 0
		c.emit(Debug, s.event(EventAcknowledged))
	default:
		h.ack, h.ackErr = AckNo, scanner.Clean(in.Err.Error(), maxMessage)
		h.ackTries++
		h.ackNext = c.now.Add(h.ackDelays.next(c.random))
		c.emit(h.lines.level(c.now, h.ackErr), s.event(EventNotAcknowledged))
	}
}
