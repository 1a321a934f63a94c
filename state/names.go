package state

import (
	"fmt"
	"slices"

	"github.com/plugpoll/plugpoll/scanner"
)

// standing is what the others of an exclusive name have to know of a socket (N2).
type standing struct {
	answers, holds name
	rank           rank
	leaving, lost  bool
	spent, linked  bool
	calling        bool
	registered     bool // under whatever name: it does not take another before that is gone
}

// exclusive reports whether plugins of a type are given to the handler one at a time for each name. Whoever only observes gives none.
func (c *Core) exclusive(pluginType string) bool { return c.known[pluginType] && !c.cfg.Observe }

// compete finds out what a socket is among those of its exclusive name: the one to be registered, a standby, or one that may not take over.
func (c *Core) compete(s *socket) {
	c.enroll(s)
	was := s.standby
	s.standby, s.holder = false, ""
	a := s.answer
	if a == nil || c.stopping || s.call != nil || s.registered != nil || !c.exclusive(a.info.Type) {
		return
	}
	holder, best := c.contest(a.info.key())
	switch {
	case holder == nil && best == s:
		return
	case holder != nil && best == s && holder.leaving(c):
		return // its place is free in a moment
	case holder != nil && best == s && !s.spent && s.rank.compare(holder.registered.rank) > 0:
		if !permitted(a.peer, holder) {
			s.answer = nil
			c.refuse(s, nameTaken, fmt.Sprintf("the name %s is held by the plugin of another user at %s", scanner.Quote(scanner.Clean(a.info.Name, maxTypeShown)),
				scanner.Quote(scanner.Clean(holder.path, maxMessage/2))), a.conn)
			c.enroll(s)
		}
		return
	}
	if a.conn == 0 {
		// Nobody would notice that it is gone.
		pause := s.redial(c.now, a)
		s.answer = nil
		s.nextTry, s.never = c.now.Add(pause), false
		s.lookAt = s.nextTry
		c.enroll(s)
		return
	}
	c.standBy(s, was, holder, best)
}

func (c *Core) standBy(s *socket, was bool, holder, best *socket) {
	s.standby, s.holder = true, best.path
	if holder != nil {
		s.holder = holder.path
	}
	if was {
		return
	}
	if !s.spent {
		s.tries, s.err = 0, ""
		s.delays.reset()
	}
	c.tried(s)
	level := Debug
	if !s.saidStandby {
		s.saidStandby, level = true, Notice
	}
	e := s.event(EventStandby)
	e.Holder = s.holder
	c.emit(level, e)
}

// rivals are those that have to do with an exclusive name. A thousand sockets may announce one, so who is first is found once for each change.
type rivals struct {
	sockets      []*socket
	judged       bool
	holder, best *socket
}

// contest returns who has an exclusive name and who is the best of those that would take it. Either may be nil.
func (c *Core) contest(key name) (holder, best *socket) {
	r := c.members[key]
	if r == nil {
		return nil, nil
	}
	if !r.judged {
		r.holder, r.best = r.judge(key)
		r.judged = true
	}
	return r.holder, r.best
}

func (r *rivals) judge(key name) (holder, best *socket) {
	for _, s := range r.sockets {
		if s.registered != nil && s.registered.key() == key {
			holder = s
		}
		if a := s.answer; a != nil && !s.gone && a.info.key() == key && (best == nil || best.below(s)) {
			best = s
		}
	}
	return holder, best
}

func (s *socket) below(o *socket) bool {
	if s.spent != o.spent {
		return s.spent
	}
	return s.rank.compare(o.rank) < 0
}

// outranked reports whether what s has registered must make way for an instance of its name that was found later (N2).
func (c *Core) outranked(s *socket) bool {
	h := s.registered
	if h.observed || !c.exclusive(h.Type) {
		return false
	}
	_, best := c.contest(h.key())
	return best != nil && best != s && best.call == nil && best.registered == nil && !best.spent && best.rank.compare(h.rank) > 0 && permitted(best.answer.peer, s)
}

// permitted reports whether a plugin may take over the name that holder has: it belongs to the same user, or to root, or nobody can tell, or holder does not answer.
func permitted(peer *Peer, holder *socket) bool {
	held := holder.registered.said.peer
	return peer == nil || held == nil || peer.UID == 0 || peer.UID == held.UID || !holder.registered.lost.IsZero()
}

// leaving reports whether what s has registered goes anyway.
func (s *socket) leaving(c *Core) bool {
	return s.gone || s.call != nil && s.call.kind == deregister || c.superseded(s)
}

// enroll keeps the lists of those that have to do with an exclusive name, and has the others look again when something changes for one of them.
func (c *Core) enroll(s *socket) {
	var now standing
	wants := name{}
	if a := s.answer; a != nil && !s.gone && c.exclusive(a.info.Type) {
		now.answers = a.info.key()
		wants = now.answers
		now.linked = a.conn != 0
	} else if s.refused == nameTaken && s.info != nil && !s.gone {
		wants = s.info.key()
	}
	if h := s.registered; h != nil && !h.observed && c.exclusive(h.Type) {
		now.holds, now.lost, now.leaving = h.key(), !h.lost.IsZero(), s.gone || !s.current() || c.gaveUp(h)
	}
	names := [2]name{wants, now.holds}
	if names[0] == names[1] {
		names[1] = name{}
	}
	if names == ([2]name{}) && s.enrolled == names {
		return
	}
	now.rank, now.spent, now.calling, now.registered = s.rank, s.spent, s.call != nil, s.registered != nil
	changed := now != s.stood
	s.stood = now
	for _, key := range s.enrolled {
		if key != (name{}) && key != names[0] && key != names[1] {
			c.withdraw(s, key)
		}
	}
	for _, key := range names {
		if key == (name{}) {
			continue
		}
		if key != s.enrolled[0] && key != s.enrolled[1] {
			if c.members[key] == nil {
				c.members[key] = &rivals{}
			}
			c.members[key].sockets = append(c.members[key].sockets, s)
			changed = true
		}
		if changed {
			c.stir(s, key)
		}
	}
	s.enrolled = names
}

func (c *Core) withdraw(s *socket, key name) {
	r := c.members[key]
	r.sockets = slices.DeleteFunc(r.sockets, func(o *socket) bool { return o == s })
	if len(r.sockets) == 0 {
		delete(c.members, key)
		return
	}
	c.stir(s, key)
}

// stir has the others of a name look at what they are now. One that was turned away because the name was taken is asked again when it is not.
func (c *Core) stir(s *socket, key name) {
	c.members[key].judged = false
	holder, _ := c.contest(key)
	for _, o := range c.members[key].sockets {
		if o == s {
			continue
		}
		if o.refused == nameTaken && (holder == nil || holder.leaving(c) || !holder.registered.lost.IsZero()) {
			o.wake(c.now)
		}
		c.touch(o)
	}
}
