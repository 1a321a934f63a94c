package state

import (
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// kind of an effect with a result. ask, tell and acknowledge are probes, the others handler calls.
type kind int

const (
	none kind = iota
	ask
	tell
	acknowledge
	validate
	register
	deregister
)

// flight is an effect whose result is awaited.
type flight struct {
	id         EffectID
	kind       kind
	socket     *socket
	generation uint64
	cancelled  bool
	conn       EffectID     // what a probe uses
	key        name         // what a call has reserved
	subject    Registration // what a call is about
	reason     Reason       // of a deregister
}

// refusal is why a socket is not tried again by itself.
type refusal int

const (
	accepted    refusal = iota
	unknownType         // R8
	permanent           // R13, a handler or an answer that is no good
	unsupported         // R13, it does not speak the protocol
)

// socket is all there is to know of one path: the instance that should be registered and the one that is.
type socket struct {
	path       string
	root       *root
	entry      scanner.Entry
	generation uint64
	gone       bool // not there any more: what is registered must go, then the socket is forgotten
	deleted    bool
	dirty      bool
	found      time.Time

	probe, call             *flight
	answer                  *answer  // the instance has answered and waits for its handler
	telling                 *message // what it must be told before anything else
	registered              *held
	probeTicket, callTicket ticket
	waitsFor                name // the reserved name it waits for
	alarm                   alarm

	info        *Info // what it last said
	report      *ReportView
	refused     refusal
	tries       int
	err         string
	nextTry     time.Time
	never       bool // nextTry is not planned
	urgent      bool // somebody asked: before the retries
	refusedOnce bool // and that was let pass
	delays      delays
	lastReset   time.Time // by stamps alone
	lines       lines
	untried     bool // Synced waits for it

	phase Phase
	since time.Time
}

// answer is what an instance said, with the connection it said it on.
type answer struct {
	generation uint64
	conn       EffectID
	info       Info
}

// message is a refusal on its way to the plugin (R3).
type message struct {
	generation uint64
	conn       EffectID
	text       string
}

// held is what the handler has (R2). It is dropped by Deregister alone (R5).
type held struct {
	Registration
	generation uint64
	by         EffectID // the effect that registered it
	conn       EffectID
	ack        Acknowledged
	ackTries   int
	ackErr     string
	ackNext    time.Time
	ackDelays  delays
	lines      lines
	makeWay    time.Time // R6: no longer than this for another instance's answer; zero: there is no other
}

// current reports whether the instance that is there is the one that is registered.
func (s *socket) current() bool {
	return s.registered != nil && s.registered.generation == s.generation && !s.gone
}

// outdated reports whether f was started for an instance that is no longer there.
func (s *socket) outdated(f *flight) bool { return s.gone || f.generation != s.generation }

func (s *socket) registration(a *answer) Registration {
	return Registration{Entry: s.entry, Type: a.info.Type, Name: a.info.Name, Endpoint: a.info.Endpoint, Versions: a.info.Versions}
}

// wake has the socket tried at once, by whatever its next step is.
func (s *socket) wake(now time.Time) {
	s.nextTry, s.never, s.urgent = now, false, true
	if s.registered != nil && s.registered.ack == AckNo {
		s.registered.ackNext = now
	}
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
	s.startAfresh(c.now)
	c.makeWay(s)
	c.emit(Debug, s.event(EventFound))
}

func (c *Core) replaced(e scanner.Entry) {
	s := c.sockets[e.Path]
	old, underWay := s.entry.ID, s.phaseNow() == Registering
	c.instance(s, e)
	newInode := old.Inode != 0 && e.ID.Inode != 0 && (old.Inode != e.ID.Inode || old.Device != e.ID.Device)
	switch {
	case newInode:
		s.startAfresh(c.now)
	case c.now.Sub(s.lastReset) >= stampReset:
		s.lastReset = c.now
		s.startAfresh(c.now)
	case underWay:
		// A try that is dropped for this counts as failed: being touched in a loop does not defeat the backoff (R12).
		s.tries++
		s.err = "the socket changed again while it was being tried"
		s.refused, s.nextTry, s.never = accepted, c.now.Add(s.delays.next(c.random)), false
	case s.refused != accepted, s.registered != nil && s.tries == 0:
		s.nextTry, s.never = s.lastReset.Add(stampReset), false
	}
	if underWay {
		c.tried(s) // however it is tried next, its first try has ended (O3)
	}
	c.makeWay(s)
	c.emit(Debug, s.event(EventReplaced))
}

// instance makes e the one that should be registered.
func (c *Core) instance(s *socket, e scanner.Entry) {
	c.generation++
	s.generation, s.entry, s.gone, s.found, s.info = c.generation, e, false, c.now, nil
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
	c.tried(s)
	e := s.event(EventGone)
	e.Error, e.Tries, e.NextTry = "", 0, time.Time{}
	if s.registered == nil && s.call == nil {
		e.Phase = "" // there is nothing left to do for it
	}
	c.emit(Debug, e)
	c.touch(s)
}

func (c *Core) tried(s *socket) {
	if s.untried {
		s.untried = false
		c.untried--
	}
}

// advance drops what is of no use any more and queues the socket for what it needs next.
func (c *Core) advance(s *socket) {
	if s.deleted {
		return
	}
	c.dropOutdated(s)
	if s.gone && s.registered == nil && s.call == nil && s.probe == nil {
		s.deleted = true
		c.probes.drop(s)
		c.calls.drop(s)
		c.waitNoMore(s)
		c.alarms.set(s, time.Time{})
		delete(c.sockets, s.path)
		c.version++
		return
	}
	if k := c.wantsProbe(s); k != none {
		retry := k == ask && s.tries > 0 || k == tell && s.tries > 1 || k == acknowledge && s.registered.ackTries > 0
		c.probes.push(s, retry && !s.urgent)
	} else {
		c.probes.drop(s)
		s.urgent = false
	}
	if k, key := c.wantsCall(s); k == none {
		c.calls.drop(s)
		c.waitNoMore(s)
	} else if s.waitsFor != key || !c.reserved[key] {
		c.calls.push(s, k == validate && s.tries > 0)
	}
	c.alarms.set(s, c.nextLook(s))
	c.phased(s)
}

// nextLook is when the socket needs something that it does not need now. Zero: only an input can change that.
func (c *Core) nextLook(s *socket) (at time.Time) {
	earlier := func(t time.Time) {
		if t.After(c.now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	h := s.registered
	switch {
	case s.gone || c.stopping:
	case s.current():
		if h.ack == AckNo {
			earlier(h.ackNext)
		}
	default:
		if !s.never {
			earlier(s.nextTry)
		}
		if h != nil {
			earlier(h.makeWay)
		}
	}
	return at
}

func (c *Core) dropOutdated(s *socket) {
	if a := s.answer; a != nil && (s.gone || a.generation != s.generation) {
		c.close(a.conn)
		s.answer = nil
	}
	if s.probe != nil && s.outdated(s.probe) {
		c.dropProbe(s)
	}
	if m := s.telling; m != nil && (s.gone || m.generation != s.generation) {
		c.close(m.conn)
		s.telling = nil
	}
	if s.call != nil && s.call.kind != deregister && s.outdated(s.call) {
		c.cancelCall(s)
	}
}

// phased notes the phase, and when it began.
func (c *Core) phased(s *socket) {
	if p := s.phaseNow(); p != s.phase {
		s.phase, s.since = p, c.now
	}
	c.version++
}

func (s *socket) phaseNow() Phase {
	switch {
	case s.gone || s.call != nil && s.call.kind == deregister && s.registered.generation == s.generation:
		return Deregistering
	case s.current():
		return Registered
	case s.probe != nil && s.probe.kind == ask, s.answer != nil, s.call != nil && s.call.kind != deregister && !s.outdated(s.call):
		return Registering
	case s.refused == unsupported:
		return NotPlugin
	case s.refused != accepted:
		return Rejected
	case s.tries > 0:
		return Backoff
	}
	return Pending
}

func (s *socket) view() SocketView {
	v := SocketView{
		Path: s.path, PathBase64: scanner.Base64(s.path), Root: s.root.Path, RootBase64: scanner.Base64(s.root.Path), Phase: s.phase, Identity: s.entry.ID, Maybe: s.entry.Maybe,
		Found: s.found, Since: s.since, Tries: s.tries, LastError: s.err, Report: s.report,
	}
	if stale := s.entry.Stale; stale != nil {
		v.Stale = &StaleView{Since: stale.Since, Error: scanner.Clean(stale.Err.Error(), maxMessage)}
	}
	h := s.registered
	switch {
	case h != nil:
		v.Plugin, v.Acknowledged = h.plugin(), h.ack
	case s.info != nil:
		v.Plugin = s.info.plugin()
	}
	switch s.phaseNow() {
	case Registered:
		if h.ack == AckNo {
			v.Tries, v.LastError, v.NextTry = h.ackTries, h.ackErr, h.ackNext
		}
	case Backoff, Rejected, NotPlugin:
		if !s.never {
			v.NextTry = s.nextTry
		}
	}
	return v
}
