package state

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// disconnected takes the end of a connection. What lived at its other end may be gone, or may only have closed it: the path is looked at and dialled
// again (L1).
func (c *Core) disconnected(in Disconnected) {
	s := c.links[in.Conn]
	if s == nil {
		return
	}
	c.close(in.Conn)
	c.touch(s)
	if p := s.probe; p != nil && p.conn == in.Conn {
		c.dropProbe(s)
	}
	switch a, h := s.answer, s.registered; {
	case s.telling != nil && s.telling.conn == in.Conn:
		s.telling = nil // whoever hangs up does not want to know (R3)
	case a != nil && a.conn == in.Conn:
		a.conn, a.goAway = 0, in.GoAway // the try goes on: see registeredNow and compete
	case h != nil && h.said.conn == in.Conn:
		h.said.conn, h.said.goAway = 0, in.GoAway
		if s.current() {
			c.suspect(s)
		}
	}
}

// suspect has what is registered looked at and asked again.
func (c *Core) suspect(s *socket) {
	h := s.registered
	h.checkAt = c.now.Add(s.redial(c.now, h.said))
	s.lookAt = h.checkAt
	c.version++
}

// redial is the pause before the connection that a brought is replaced: a server that keeps closing idle connections is no reason to be busy (L2).
func (s *socket) redial(now time.Time, a *answer) time.Duration {
	if now.Sub(a.since) >= redialCap {
		s.redials = 0
	}
	s.redials++
	if s.redials == 1 {
		return 0
	}
	return min(redialCap, redialPause<<min(s.redials-2, 10))
}

// startLook looks at the path, if that is wanted and due.
func (c *Core) startLook(s *socket) {
	if c.stopping || s.gone || s.look != nil || s.lookAt.IsZero() || c.now.Before(s.lookAt) || c.now.Sub(s.lookedEnd) < lookPause {
		return
	}
	s.lookAt = time.Time{}
	s.look = c.fly(s, look)
	c.do(Look{s.look.op()})
}

func (c *Core) dropLook(s *socket) {
	if s.look == nil {
		return
	}
	delete(c.flights, s.look.id)
	c.do(Cancel{s.look.id})
	s.look, s.lookedEnd = nil, c.now
}

// noLook gives a look up that was to come before a dial that has been made since.
func (c *Core) noLook(s *socket) {
	c.dropLook(s)
	s.lookAt = time.Time{}
}

// looked takes the end of a look. It never removes anything: only a scan confirms that something is gone (L1).
func (c *Core) looked(in Looked) {
	f := c.land(in.ID)
	if f == nil {
		return
	}
	s := f.socket
	stale := s.stale
	s.look, s.stale, s.lookedEnd = nil, "", c.now
	c.touch(s)
	// Of a look and a scan the one that started later is right. What a scan only carries over it has not seen.
	late := in.Started.Before(s.root.started) && s.entry.Stale == nil
	switch {
	case errors.Is(in.Err, fs.ErrNotExist):
		c.do(Rescan{s.root.Path})
		if s.vanished && stale != "" {
			c.missed(s, stale) // the scans had their time, and cannot tell
			return
		}
		s.vanished = true
		if later := c.now.Add(goneGrace); s.nextTry.Before(later) {
			s.nextTry = later
		}
		return
	case in.Err == nil && !late && (in.Entry.ID != s.entry.ID || in.Entry.Maybe != s.entry.Maybe):
		s.looked, s.root.behind = in.Started, true
		c.seen++
		c.changed(s, in.Entry)
		return
	case in.Err == nil && !late:
		s.looked = in.Started
	}
	if stale != "" {
		c.missed(s, stale)
	}
}

// missed counts a try that came to nothing.
func (c *Core) missed(s *socket, cause string) {
	if s.current() {
		c.unreachable(s, cause)
		return
	}
	c.fail(s, cause, 0)
}

// checked takes what became of asking a registered plugin again: it is the same, another is in its place, or there is none (L1, I4).
func (c *Core) checked(s *socket, f *flight, in Asked, conn EffectID) {
	h := s.registered
	moved := f.seen != s.entry.ID
	_, known := c.known[in.Info.Type]
	switch {
	case in.Err == nil && known && h.same(in, moved):
		c.recognized(s, in, conn, moved)
	case in.Err == nil || in.Failure == Unsupported || in.Failure == Permanent:
		c.another(s, h.said.peer.process() && in.Peer.process())
		c.judge(s, f, in, conn)
	case in.Failure == Stale:
		c.close(conn)
		c.lookAgain(s, in.Err)
	case in.Failure == Local:
		c.close(conn)
		c.postpone(s, in.Err.Error())
	case moved && c.resetByStamps(s):
		c.close(conn)
	default:
		c.close(conn)
		c.unreachable(s, in.Err.Error())
	}
}

// same reports whether the answer to a check comes from the instance that is registered. moved: its file was changed meanwhile.
func (h *held) same(in Asked, moved bool) bool {
	was := h.said
	if in.Info.Type != was.info.Type || in.Info.Name != was.info.Name || in.Info.Endpoint != was.info.Endpoint || !slices.Equal(in.Info.Versions, was.info.Versions) {
		return false
	}
	if was.peer.process() && in.Peer.process() {
		return was.peer.PID == in.Peer.PID && was.peer.Start == in.Peer.Start
	}
	return was.goAway && !h.doubt && !moved
}

// recognized takes over the new connection of the instance that is registered. The handler sees nothing; the plugin is told again.
func (c *Core) recognized(s *socket, in Asked, conn EffectID, moved bool) {
	h := s.registered
	kind, level := EventAdopted, Debug
	if !h.lost.IsZero() {
		kind, level = EventReachable, s.lines.Recovered()
	}
	c.hang(h.said)
	said := &answer{generation: s.generation, info: in.Info, peer: in.Peer, conn: conn, asked: h.said.asked, since: c.now}
	said.ack.toldAgain(h.said.ack)
	h.said = said
	h.lost = time.Time{}
	if moved && s.entry.ID.Inode == 0 {
		c.doubt(s) // the answer may be older than the last change
	} else {
		h.checkAt, h.doubt = time.Time{}, false
	}
	s.tries, s.err, s.nextTry, s.info = 0, "", c.now, &in.Info
	s.delays.reset()
	c.noLook(s)
	c.emit(level, s.event(kind))
}

// doubt has a registered plugin asked over another connection, because its file changed in a way that may be another instance (I4). That is done no more
// often than a fresh start by stamps alone (R12).
func (c *Core) doubt(s *socket) {
	h := s.registered
	h.doubt = true
	if h.checkAt.After(c.now) || !h.lost.IsZero() {
		return // it is asked in any case
	}
	h.checkAt = c.now
	if earliest := s.lastReset.Add(stampReset); h.checkAt.Before(earliest) {
		h.checkAt = earliest
	}
}

// another has the instance that answers be another one than the one that is registered. Where that is no more than a guess, it may be one that drops its
// connections, and goes on to be dialled at the pace of those (L2).
func (c *Core) another(s *socket, certain bool) {
	c.seen++
	redials := s.redials
	c.instance(s, s.entry)
	if !certain {
		s.redials = redials
	}
	s.startAfresh(c.now)
	c.makeWay(s)
	c.emit(Debug, s.event(EventReplaced))
}

// unreachable notes that what is registered does not answer. It stays registered for LivenessGrace (L2).
func (c *Core) unreachable(s *socket, cause string) {
	h := s.registered
	if h.lost.IsZero() {
		h.lost = c.now
	}
	s.nextTry, s.never = c.now.Add(s.delays.next(c.random)), false
	h.checkAt = c.now
	c.noLook(s)
	c.failed(s, cause, 0, EventUnreachable, Warn)
}

// postpone plans the next check after one that could not be made. What is registered is not to blame.
func (c *Core) postpone(s *socket, cause string) {
	s.nextTry, s.never = c.now.Add(s.delays.next(c.random)), false
	c.failed(s, cause, 0, EventFailing, Warn)
}

// lookAgain has a dial that found another file than the scanned one judged by a look (R15).
func (c *Core) lookAgain(s *socket, err error) {
	s.stale, s.lookAt = scanner.Clean(err.Error(), maxMessage), c.now
}

// resetByStamps has a socket that failed while its stamps changed be tried again as another instance, which the file may be now (I6). It reports false if that
// was granted less than 5 s ago (R12).
func (c *Core) resetByStamps(s *socket) bool {
	if c.now.Sub(s.lastReset) < stampReset {
		return false
	}
	c.replaced(s, s.entry)
	return true
}

// gaveUp reports whether what is registered has been unreachable for too long.
func (c *Core) gaveUp(h *held) bool {
	return !h.lost.IsZero() && !h.observed && c.cfg.LivenessGrace > 0 && c.now.Sub(h.lost) >= c.cfg.LivenessGrace
}

// letGo drops what was only observed and is no more: no handler knows of it (R18).
func (c *Core) letGo(s *socket) {
	if h := s.registered; h != nil && h.observed && (s.gone || c.superseded(s)) {
		c.hang(h.said)
		s.registered = nil
	}
}
