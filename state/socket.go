package state

import (
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// kind of an effect with a result. ask, tell and acknowledge are probes, the last three handler calls.
type kind int

const (
	none kind = iota
	ask
	tell
	acknowledge
	look
	validate
	register
	deregister
)

// verb is how a handler call is shown.
func (k kind) verb() string {
	return map[kind]string{validate: "validate", register: "register", deregister: "deregister"}[k]
}

// flight is an effect whose result is awaited.
type flight struct {
	id         EffectID
	kind       kind
	socket     *socket
	generation uint64
	began      time.Time
	cancelled  bool
	over       bool             // it holds no place any more
	parked     bool             // a call that gave its place back and still runs
	seen       scanner.Identity // what an ask dialled
	said       *answer          // what an acknowledge is about
	conn       EffectID         // what a probe uses
	key        name             // what a call has reserved
	subject    Registration     // what a call is about
	reason     Reason           // of a deregister
}

// refusal is why a socket is not tried again by itself.
type refusal int

const (
	accepted    refusal = iota
	unknownType         // R8
	permanent           // R13, a handler or an answer that is no good
	unsupported         // R13, it does not speak the protocol
	nameTaken           // N2, its name is held by another user's plugin
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
	unseen     time.Time // when the last scan started that did not show the instance; zero: it was dialled, or not known
	rank       rank      // of the instance
	spent      bool      // the handler has failed it: others of its name go first (N2)

	look                    *flight
	lookAt                  time.Time // when a look is wanted; zero: none
	looked                  time.Time // when the last look that was used started
	lookedEnd               time.Time // when the last look ended
	stale                   string    // why the last dial has to be judged by a look (R15)
	vanished                bool      // a look has found nothing since something was last seen there
	redials                 int       // without a minute's rest (L2)
	probe, call             *flight
	answer                  *answer  // the instance has answered and waits for its handler
	telling                 *message // what it must be told before anything else
	standby                 bool     // answer waits, because another instance has the name (N2)
	saidStandby             bool     // in this generation
	holder                  string   // path of that instance
	stood                   standing
	enrolled                [2]name
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
	evicted     bool // its probe gave way to a first try, so it is queued as a retry
	refusedOnce bool // and that was let pass
	delays      delays
	lastReset   time.Time // by stamps alone
	lines       Lines
	ackLines    Lines
	untried     bool // Synced waits for it

	phase Phase
	since time.Time
}

// answer is what an instance said, with the connection it said it on, which then is the witness that it lives (L1).
type answer struct {
	generation uint64
	info       Info
	peer       *Peer
	conn       EffectID  // 0: it has ended
	goAway     bool      // how
	asked      time.Time // when it was dialled
	since      time.Time // when it answered
	ack        acknowledgment
}

// acknowledgment is whether the plugin was told that it is registered (R4).
type acknowledgment struct {
	was    Acknowledged
	tries  int
	err    string
	next   time.Time
	delays delays
}

// wanted reports whether the plugin is to be told, now or later.
func (a *acknowledgment) wanted() bool { return a.was == "" || a.was == AckNo }

// toldAgain has the plugin told anew, unless it is known not to listen (R4).
func (a *acknowledgment) toldAgain(before acknowledgment) {
	*a = acknowledgment{}
	if before.was == AckUnsupported {
		a.was = AckUnsupported
	}
}

// message is a refusal on its way to the plugin (R3).
type message struct {
	generation uint64
	conn       EffectID
	text       string
}

// held is what the handler has (R2), or, in observe mode, what it would have. It is dropped by Deregister alone (R5).
type held struct {
	Registration
	generation uint64
	rank       rank
	by         EffectID // the effect that registered it
	said       *answer
	observed   bool      // there was no Register, so there is no Deregister (R18)
	makeWay    time.Time // R6: no longer than this for another instance's answer; zero: there is no other
	checkAt    time.Time // when it is asked again whether it is still the same (L1); zero: not
	doubt      bool      // its file changed in a way that may be another instance (I4)
	lost       time.Time // since when it is unreachable; zero: it is not
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

// waitsFrom is since when the instance, which has answered, waits for its handler, or for the call that runs.
func (s *socket) waitsFrom() time.Time {
	if s.call != nil {
		return s.call.began
	}
	return s.answer.since
}

// wake has the socket tried at once, by whatever its next step is.
func (s *socket) wake(now time.Time) {
	s.nextTry, s.never, s.urgent = now, false, true
	if h := s.registered; h != nil {
		h.said.ack.next = now
		if !h.checkAt.IsZero() {
			h.checkAt = now
		}
	}
	if !s.lookAt.IsZero() {
		s.lookAt = now
	}
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
	c.letGo(s)
	c.compete(s)
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
	if s.untried && s.answer != nil && c.now.Sub(s.waitsFrom()) >= parkAge {
		c.tried(s) // O3: it has answered, and the rest is up to others
	}
	c.startLook(s)
	if k := c.wantsProbe(s); k != none {
		retry := s.evicted || k == ask && s.tries > 0 || k == tell && s.tries > 1 || k == acknowledge && s.link().ack.tries > 0
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
	if s.gone || c.stopping {
		return at
	}
	if !s.lookAt.IsZero() {
		earlier(s.lookAt)
		earlier(s.lookedEnd.Add(lookPause))
	}
	if !s.never {
		earlier(s.nextTry)
	}
	if a := s.link(); a != nil && a.ack.was == AckNo {
		earlier(a.ack.next)
	}
	if s.untried && s.answer != nil {
		earlier(s.waitsFrom().Add(parkAge))
	}
	if h := s.registered; h != nil {
		earlier(h.makeWay)
		earlier(h.checkAt)
		if !h.lost.IsZero() && c.cfg.LivenessGrace > 0 {
			earlier(h.lost.Add(c.cfg.LivenessGrace))
		}
	}
	return at
}

func (c *Core) dropOutdated(s *socket) {
	if a := s.answer; a != nil && (s.gone || a.generation != s.generation) {
		c.hang(a)
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
	case s.current() && s.registered.observed && s.registered.lost.IsZero():
		return Observed
	case s.current() && !s.registered.lost.IsZero():
		return Unreachable
	case s.current():
		return Registered
	case s.answer != nil && s.standby:
		return Standby
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
		v.Plugin, v.Acknowledged = h.plugin(), h.said.ack.was
	case s.info != nil:
		v.Plugin = s.info.plugin()
	}
	if f := s.call; f != nil {
		v.Call = &CallView{Verb: f.kind.verb(), Since: f.began, Parked: f.parked}
	}
	switch s.phaseNow() {
	case Standby:
		v.Holder, v.HolderBase64 = s.holder, scanner.Base64(s.holder)
		v.Acknowledged = s.answer.ack.was
	case Registered:
		switch a := h.said.ack; {
		case s.tries > 0:
			v.NextTry = s.nextTry
		case a.was == AckNo:
			v.Tries, v.LastError, v.NextTry = a.tries, a.err, a.next
		}
	case Backoff, Rejected, NotPlugin, Unreachable:
		if !s.never {
			v.NextTry = s.nextTry
		}
	}
	return v
}
