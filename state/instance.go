package state

import (
	"cmp"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// rank orders the instances of an exclusive name: what was found later goes first, then what was modified later, then the later path (N2). It is fixed when an
// instance is first seen, so neither the order of answers nor a chmod decides.
type rank struct {
	seen  uint64
	mtime int64
	path  string
}

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.seen, o.seen), cmp.Compare(r.mtime, o.mtime), strings.Compare(r.path, o.path))
}

func (c *Core) added(r *root, e scanner.Entry, first bool) {
	s := c.sockets[e.Path]
	if s == nil {
		s = &socket{path: e.Path, root: r}
		c.sockets[e.Path] = s
		if first {
			s.untried = true
			c.untried++
		}
	}
	c.instance(s, e)
	s.unseen = r.started
	s.startAfresh(c.now)
	c.makeWay(s)
	c.emit(Debug, s.event(EventFound))
}

// changed takes over that a scan or a look shows another identity, and decides whether it is another instance (I4, I6).
func (c *Core) changed(s *socket, e scanner.Entry) {
	old := s.entry.ID
	same := old.Inode != 0 && old.Inode == e.ID.Inode && old.Device == e.ID.Device
	a := s.link()
	s.stale = "" // that explains why the last dial missed
	switch {
	case same && a != nil && a.conn != 0:
		// The one who listens pins the inode, so it cannot have been given to another file.
		c.adopt(s, e)
	case same && s.probe != nil && s.probe.kind == ask:
		s.entry = e // judged when the try ends: see asked and checked
	case old.Inode == 0 && e.ID.Inode == 0 && s.current() && a.conn != 0:
		s.entry = e
		c.doubt(s)
		c.touch(s)
	default:
		c.replaced(s, e)
	}
}

// link is the answer of the instance that is there; nil: it has not answered.
func (s *socket) link() *answer {
	switch {
	case s.current():
		return s.registered.said
	case s.answer != nil && s.answer.generation == s.generation:
		return s.answer
	}
	return nil
}

// adopt takes e as another look of the instance that is known.
func (c *Core) adopt(s *socket, e scanner.Entry) {
	s.entry = e
	c.version++
	c.emit(Debug, s.event(EventAdopted))
}

// replaced makes e another instance, and decides when it is tried (R12).
func (c *Core) replaced(s *socket, e scanner.Entry) {
	old, underWay := s.entry.ID, s.phaseNow() == Registering
	// Whose connection has just ended did not only change its stamps.
	ended := s.current() && s.registered.said.conn == 0 && s.registered.lost.IsZero()
	c.instance(s, e)
	s.unseen = s.root.started
	newInode := old.Inode != 0 && e.ID.Inode != 0 && (old.Inode != e.ID.Inode || old.Device != e.ID.Device)
	if newInode || ended {
		s.startAfresh(c.now)
	} else {
		c.byStampsAlone(s, underWay)
	}
	if underWay {
		c.tried(s) // however it is tried next, its first try has ended (O3)
	}
	c.makeWay(s)
	c.emit(Debug, s.event(EventReplaced))
}

// byStampsAlone decides when an instance is tried that differs by its stamps and nothing more: at once, but not again for 5 s (R12).
func (c *Core) byStampsAlone(s *socket, underWay bool) {
	again := s.lastReset.Add(stampReset)
	waits := s.nextTry.After(c.now)
	switch {
	case !c.now.Before(again):
		s.lastReset = c.now
		s.startAfresh(c.now)
	case underWay:
		// A try that is dropped for this counts as failed: being touched in a loop does not defeat the backoff.
		s.tries++
		s.err = "the socket changed again while it was being tried"
		s.refused, s.nextTry, s.never = accepted, c.now.Add(s.delays.next(c.random)), false
	case s.refused != accepted, s.tries == 0 && s.registered != nil && !waits, s.tries == 0 && s.nextTry.After(again):
		s.nextTry, s.never = again, false
	}
}

// instance makes e the one that should be registered.
func (c *Core) instance(s *socket, e scanner.Entry) {
	c.generation++
	s.generation, s.entry, s.gone, s.found, s.info = c.generation, e, false, c.now, nil
	s.rank = rank{c.seen, e.ID.ModTime, s.path}
	s.spent, s.saidStandby, s.evicted, s.redials = false, false, false, 0
	s.stale, s.lookAt, s.vanished = "", time.Time{}, false
	c.dropLook(s)
	c.dropOutdated(s)
	c.touch(s)
}

// makeWay sets how long what is registered may stand while another instance is at its path and has not answered (R6).
func (c *Core) makeWay(s *socket) {
	h := s.registered
	if h == nil || !h.makeWay.IsZero() {
		return
	}
	from := c.now
	if s.nextTry.After(from) {
		from = s.nextTry
	}
	h.makeWay = from.Add(replaceGrace)
}

// startAfresh forgets the failures of an earlier instance.
func (s *socket) startAfresh(now time.Time) {
	s.tries, s.err, s.refused, s.nextTry, s.never = 0, "", accepted, now, false
	s.refusedOnce = false
	s.delays.reset()
}

func (c *Core) gone(path string) {
	s := c.sockets[path]
	c.generation++
	s.generation, s.gone = c.generation, true
	c.dropLook(s)
	c.tried(s)
	e := s.event(EventGone)
	e.Error, e.Tries, e.NextTry = "", 0, time.Time{}
	if (s.registered == nil || s.registered.observed) && s.call == nil {
		e.Phase = "" // there is nothing left to do for it
	}
	c.emit(Debug, e)
	c.touch(s)
}
