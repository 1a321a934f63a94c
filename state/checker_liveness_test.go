package state

import (
	"slices"
	"time"
)

// connModel is a connection that an Asked brought.
type connModel struct {
	id     EffectID
	path   string
	opened time.Time
	ended  bool // by itself
	goAway bool // and the other side had said so
}

func (c *connModel) live() bool { return c != nil && !c.ended }

// connected notes the connection that an Asked brings, whoever waits for it.
func (k *checker) connected(in Asked) *connModel {
	f := k.flights[in.ID]
	if f == nil {
		f = k.dropped[in.ID]
		delete(k.dropped, in.ID)
	}
	if f == nil || !in.Connected {
		return nil
	}
	c := &connModel{id: in.ID, path: f.path.path, opened: k.now}
	k.conns[in.ID] = c
	return c
}

// owned checks that every connection is somebody's or closed: nothing leaks, and nothing that is needed is closed.
func (k *checker) owned() {
	owned := map[EffectID]bool{}
	needs := func(c *connModel, path string) {
		if c == nil {
			return
		}
		owned[c.id] = true
		if !c.ended && k.conns[c.id] == nil {
			k.failf("connection %d of %q is needed and closed", c.id, path)
		}
	}
	for path, p := range k.paths {
		needs(p.tell, path)
		if p.linger != nil {
			owned[p.linger.id] = true
		}
		if p.answer != nil && !p.answer.open {
			needs(p.answer.conn, path)
		} else if p.answer != nil && p.answer.conn != nil {
			owned[p.answer.conn.id] = true
		}
		switch h := p.held; {
		case h == nil:
		case h.since.IsZero():
			needs(h.conn, path)
		case h.conn != nil: // unreachable: what it is still good for is the Core's affair
			owned[h.conn.id] = true
		}
	}
	for id, c := range k.conns {
		if !owned[id] {
			k.failf("connection %d of %q is nobody's and not closed", id, c.path)
		}
	}
}

func (k *checker) disconnected(in Disconnected) {
	c := k.conns[in.Conn]
	if c == nil || c.ended {
		k.counts["disconnected strangers"]++
		return
	}
	c.ended, c.goAway = true, in.GoAway
	k.counts["disconnected"]++
	p := k.paths[c.path]
	if p == nil {
		return
	}
	if p.probe != nil && p.probe.conn == c {
		p.probe.moot = true
	}
	switch {
	case p.tell == c:
		p.tell = nil
	case p.answer != nil && p.answer.conn == c:
		switch k.standing(p) {
		case yes:
			k.counts["standbys disconnected"]++
			p.answer = nil
			k.lost(p, c)
		case maybe:
			k.perhapsLost(p, c)
		}
	case p.current() && p.held.conn == c:
		k.watch(p)
	}
}

// watch is L1: what is held has lost its connection and is to be looked at and asked.
func (k *checker) watch(p *pathModel) {
	c := p.held.conn
	if c == nil || !c.ended || k.stopping {
		return
	}
	switch {
	case p.wait != nil && p.wait.what == looking: // that says it
	case p.probe != nil && p.probe.kind == ask, p.leaving(): // so does that; or what comes then is for an instance that nobody has
		k.lost(p, c)
		p.wait.from, p.wait.by, p.wait.what = k.now, time.Time{}, waitEither
	default:
		k.lost(p, c)
	}
}

// perhapsLost is a standby, or perhaps none, whose connection has ended: the next effect tells.
func (k *checker) perhapsLost(p *pathModel, c *connModel) {
	p.answer.open = true
	k.lost(p, c)
	p.spacing1--
	p.wait.from, p.wait.by, p.wait.what = k.now, time.Time{}, waitEither
}

// watchAtOnce is watch for a connection that has ended during the handler's calls.
func (k *checker) watchAtOnce(p *pathModel) {
	if k.watch(p); p.wait != nil {
		p.wait.from = k.now
	}
}

// lost plans the look: the first at once, those after connections that lived less than a minute 1, 2, 4 … 60 s apart.
func (k *checker) lost(p *pathModel, c *connModel) {
	if k.now.Sub(c.opened) >= time.Minute {
		p.spacing, p.spacing1 = 0, 0
	}
	pause := func(n int) time.Duration {
		if n == 0 {
			return 0
		}
		return min(time.Minute, time.Second<<min(n-1, 6))
	}
	if p.spacing1 > 0 {
		k.counts["spaced checks"]++
	}
	// Whether another instance goes on with the spacing is open, and whether the pauses are counted from one check or from the end of its connection.
	by := latest(k.now.Add(pause(p.spacing)), latest(p.lastLook, p.lookEnd).Add(lookGap))
	from := p.lastCheck.Add(pause(p.spacing1))
	p.spacing++
	p.spacing1++
	from = latest(from, latest(k.now, p.lastLook.Add(lookGap)))
	if from.After(by) {
		from = by
	}
	p.wait = &waitModel{why: lost, what: waitLook, from: from, by: by}
}

type verdict int

const (
	same verdict = iota
	another
	either
)

func sameInfo(a, b Info) bool {
	return a.Type == b.Type && a.Name == b.Name && a.Endpoint == b.Endpoint && slices.Equal(a.Versions, b.Versions)
}

func knownProcess(p *Peer) bool { return p != nil && p.PID != 0 && p.Start != 0 }

// compare says whether what has answered is what is held.
func (h *heldModel) compare(in Asked, f *flightModel) verdict {
	switch {
	case !sameInfo(h.info, in.Info):
		return another
	case knownProcess(h.peer) && knownProcess(in.Peer):
		if h.peer.PID == in.Peer.PID && h.peer.Start == in.Peer.Start {
			return same
		}
		return another
	case h.conn.live(), h.conn == nil, !h.conn.goAway: // doubt; or it just ended
		return another
	case f.stamped, f.doubt:
		return either
	}
	return same
}

// checked is the result of an Ask that was to say whether what is held is still there.
func (k *checker) checked(p *pathModel, f *flightModel, in Asked, conn *connModel) {
	known := in.Err == nil && k.types[in.Info.Type]
	switch {
	case in.Err != nil && in.Failure != Unsupported && in.Failure != Permanent:
		if (f.stamped || f.again) && k.chose(p.path, EventReplaced) {
			k.judgedByStamps(p, in, conn)
			return
		}
		k.unreachable(p)
		p.early = p.early || f.again
		p.doubted = p.doubted || f.doubt // the next one has it to settle
		return
	case known:
		v := p.held.compare(in, f)
		if v == either {
			v = same
			if k.chose(p.path, EventReplaced) {
				v = another
			}
		}
		if v == same {
			k.reached(p, f, in, conn)
			return
		}
	case f.stamped && in.Err != nil && !k.chose(p.path, EventIgnored, EventRejected):
		k.judgedByStamps(p, in, conn)
		return
	}
	k.counts["another process answered"]++
	k.discoveries++
	k.newInstance(p)
	p.lastReset = k.now // which may count as a reset by stamps
	p.afresh(k.now)
	p.want(EventReplaced)
	p.makeWay(k.now)
	k.dropObserved(p)
	k.tried(p, in, conn)
}

// reached: the same instance has answered over a new connection.
func (k *checker) reached(p *pathModel, f *flightModel, in Asked, conn *connModel) {
	h := p.held
	event := EventAdopted
	if !h.since.IsZero() {
		event = EventReachable
		k.counts["reached again"]++
	}
	p.want(event)
	k.counts["same instance over a new connection"]++
	h.conn, h.peer, h.since = conn, in.Peer, time.Time{}
	if h.told, h.fails, h.next = false, 0, (time.Time{}); h.ack != AckUnsupported {
		h.ack = ""
	}
	p.tries, p.transient, p.refused = 0, 0, accepted
	p.next = k.now
	p.wait = nil
	if f.again {
		p.wait = k.doubts(p)
	}
}

// unreachable is a check that has failed.
func (k *checker) unreachable(p *pathModel) {
	k.counts["unreachable"]++
	if p.held.since.IsZero() {
		p.held.since = k.now
	}
	p.tries++
	p.transient++
	p.refused, p.never, p.awaited = accepted, false, false
	p.want(EventUnreachable)
	p.wait = nil
}

// expired reports whether what is held was unreachable for too long (L2).
func (k *checker) expired(h *heldModel) bool {
	return !k.cfg.Observe && k.grace > 0 && !h.since.IsZero() && k.now.Sub(h.since) >= k.grace
}
