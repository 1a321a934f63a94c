package state

import (
	"fmt"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// simFS is what a filesystem can tell of a socket.
type simFS int

const (
	simFine    simFS = iota // inodes and nanoseconds
	simCoarse               // it gives inodes anew and stamps whole seconds: a socket that is bound anew may look the same (I3)
	simNoInode              // no inode, and no change time
)

type simRoot struct {
	kind    simFS
	last    *scanner.Snapshot
	changed time.Time // when something in it last did
	dirty   bool
	stale   bool // the last scan has not seen everything
	running bool
	plan    int
}

// simPlugin is a process and its socket.
type simPlugin struct {
	path      string
	id        scanner.Identity
	listens   bool
	ended     bool   // its process is gone
	pin       string // another name of its socket, which keeps the inode: of a simulation on files
	kind      simKind
	failures  int // of GetInfo, still to come
	typ, name string
	refuses   bool // its handler says no
	peer      *Peer
	version   string
	goAway    time.Duration // it closes connections that are older. 0: it does not
}

type simKind int

const (
	simGood simKind = iota
	simSlow
	simHangs
	simNoPlugin
	simBadAnswer
	simNoNotify
	simDeafNotify
	simKinds
)

func (p *simPlugin) says() Info {
	return Info{Type: p.typ, Name: p.name, Endpoint: p.path, Versions: []string{p.version}}
}

// heal ends whatever is wrong with a plugin and not its nature.
func (p *simPlugin) heal() {
	p.failures, p.refuses, p.goAway = 0, false, 0
	if p.kind != simNoPlugin && p.kind != simBadAnswer && p.kind != simNoNotify {
		p.kind = simGood
	}
}

// live is the world: something happens, and again a little later, with minutes of quiet between.
func (s *simulation) live() {
	if s.quiet {
		return
	}
	for range 1 + s.random.IntN(6) {
		s.change(s.paths[s.random.IntN(len(s.paths))])
	}
	switch n := s.random.IntN(2000); {
	case n == 0:
		s.now = s.now.Add(s.upTo(12 * time.Minute)) // the machine is suspended
		s.after(0, s.live)
	case n == 1:
		s.after(s.upTo(3*time.Minute), s.live)
	case n < 40:
		s.after(s.upTo(5*time.Second), s.live)
	default:
		s.after(s.upTo(10*time.Millisecond), s.live)
	}
	switch s.random.IntN(100) {
	case 0:
		s.step(RetryAsked{})
	case 1, 2:
		s.step(RetryAsked{s.paths[s.random.IntN(len(s.paths))]})
	case 3:
		s.step(Reported{EffectID(1 + s.random.Uint64N(uint64(s.check.lastID)+1)), Report{Health: HealthDown}})
	case 4:
		s.step(Disconnected{Conn: EffectID(1 + s.random.Uint64N(uint64(s.check.lastID)+1<<20)), GoAway: true})
	}
}

func (s *simulation) change(path string) {
	p := s.plugins[path]
	if p == nil {
		s.dirty(path)
		s.plugins[path] = s.starts(path)
		return
	}
	switch s.random.IntN(20) {
	case 0: // it stops: the socket goes first
		s.dirty(path)
		delete(s.plugins, path)
		s.ends(p, s.oneIn(2), s.upTo(50*time.Millisecond))
	case 1: // it crashes: the socket stays
		s.ends(p, false, 0)
	case 2, 3, 4: // it is replaced, or starts again at once
		s.dirty(path)
		if s.oneIn(4) { // the old one lives on for a while, and holds its inode
			s.after(s.upTo(20*time.Second), func() { s.ends(p, s.oneIn(2), 0) })
		} else {
			s.ends(p, s.oneIn(3), s.upTo(3*time.Millisecond))
		}
		s.plugins[path] = s.starts(path)
	case 5: // it starts again on a filesystem that gives the inode anew
		s.dirty(path)
		s.ends(p, false, 0)
		q := s.starts(path)
		q.id.Device, q.id.Inode = p.id.Device, p.id.Inode
		s.plugins[path] = q
	case 6: // it is renamed
		to := s.paths[s.random.IntN(len(s.paths))]
		if s.roots[to[:2]].kind != s.roots[path[:2]].kind || to == path {
			return
		}
		s.dirty(path)
		s.dirty(to)
		if over := s.plugins[to]; over != nil {
			s.ends(over, false, s.upTo(time.Second))
		}
		delete(s.plugins, path)
		s.plugins[to] = p
		p.path = to
		s.touch(p, false)
	case 7: // another one starts with the same socket, as one that a service manager opened
		s.ends(p, s.oneIn(2), 0)
		q := s.starts(path)
		q.id = p.id
		s.plugins[path] = q
	case 8: // it announces something else from now on
		p.version = fmt.Sprint(s.random.IntN(3))
		if s.oneIn(2) {
			p.name = fmt.Sprint("n", s.random.IntN(12))
		}
		s.hangUp(p, true, 0)
	case 9, 10: // somebody changes its mode, or its times
		s.dirty(path)
		s.touch(p, s.oneIn(2))
	case 11: // somebody goes on touching it
		for n := range 5 + s.random.IntN(60) {
			s.after(time.Duration(n)*47*time.Millisecond, func() {
				if s.plugins[path] == p {
					s.dirty(path)
					s.touch(p, true)
				}
			})
		}
	case 12, 13: // it closes its connections and goes on
		s.hangUp(p, true, 0)
	case 14: // it closes them and is replaced
		s.hangUp(p, true, 0)
		s.after(s.upTo(30*time.Millisecond), func() {
			if s.plugins[path] == p {
				s.dirty(path)
				s.ends(p, true, 0)
				s.plugins[path] = s.starts(path)
			}
		})
	case 15: // it goes on closing them
		p.goAway = time.Millisecond + s.upTo(time.Duration(1+s.random.IntN(90))*time.Second)
		s.hangUp(p, true, 0)
	case 16: // it loses its connections, and they say nothing
		s.hangUp(p, false, 0)
	default: // it recovers
		if !p.listens && s.oneIn(2) { // under a new process
			s.pid++
			p.peer = s.peer(p.name)
		}
		p.heal()
		p.listens = true
	}
}

// ends is the end of a process. Its connections are seen to end after a while.
func (s *simulation) ends(p *simPlugin, goAway bool, after time.Duration) {
	p.listens = false
	s.hangUp(p, goAway, after)
}

// hangUp ends the connections of a process.
func (s *simulation) hangUp(p *simPlugin, goAway bool, after time.Duration) {
	s.after(after+s.upTo(2*time.Millisecond), func() {
		var ended []EffectID
		for id, q := range s.conns {
			if q == p {
				ended = append(ended, id)
			}
		}
		for _, id := range sorted(ended) {
			s.end(id, goAway)
		}
	})
}

// end is the end of one connection.
func (s *simulation) end(id EffectID, goAway bool) {
	if s.conns[id] != nil {
		delete(s.conns, id)
		s.step(Disconnected{Conn: id, GoAway: goAway})
	}
}

// touch changes the stamps of a socket as far as the filesystem shows it.
func (s *simulation) touch(p *simPlugin, mtime bool) {
	kind := s.roots[p.path[:2]].kind
	at := s.stamp(kind)
	if mtime {
		p.id.ModTime = at
	}
	if kind != simNoInode {
		p.id.ChangeTime = at
	}
}

// stamp is the time as a filesystem tells it.
func (s *simulation) stamp(kind simFS) int64 {
	if kind == simCoarse {
		return s.now.Truncate(time.Second).UnixNano()
	}
	s.inode++
	return s.now.UnixNano() + int64(s.inode)%1000
}

func (s *simulation) dirty(path string) {
	r := s.roots[path[:2]]
	r.dirty, r.changed = true, s.now
}

// starts is a new plugin, more often a good one than not. Some names are announced by several.
func (s *simulation) starts(path string) *simPlugin {
	kind := s.roots[path[:2]].kind
	s.inode++
	p := &simPlugin{path: path, id: at(path, s.inode, s.stamp(kind)).ID}
	switch old := s.plugins[path]; {
	case kind == simNoInode:
		p.id.Device, p.id.Inode, p.id.ChangeTime = 0, 0, 0
	case kind == simCoarse && old != nil && !old.listens:
		p.id.Inode = old.id.Inode
	}
	s.process(p)
	return p
}

// process makes up who p is and how it behaves.
func (s *simulation) process(p *simPlugin) {
	p.listens, p.version = true, "1"
	p.typ = []string{csi, csi, dra}[s.random.IntN(3)]
	p.name = fmt.Sprint("n", s.random.IntN(12))
	s.pid++
	p.peer = s.peer(p.name)
	if s.oneIn(2) {
		p.kind = simKind(s.random.IntN(int(simKinds)))
		p.refuses = s.oneIn(4)
	}
	if s.oneIn(2) {
		p.failures = 1 + s.random.IntN(10)
	}
	if s.oneIn(12) {
		p.typ = "Unknown"
	}
	if s.oneIn(20) {
		p.goAway = time.Millisecond + s.upTo(3*time.Second)
	}
}

// peer is a new process. Numbers of processes come again, their starts do not.
func (s *simulation) peer(name string) *Peer {
	p := &Peer{UID: 1000 + int(name[len(name)-1])%2, PID: 1 + s.pid%50, Start: uint64(s.pid)}
	switch s.random.IntN(12) {
	case 0:
		return nil
	case 1, 2:
		p.PID, p.Start = 0, 0
	case 3:
		p.UID = 0
	case 4, 5:
		p.UID = 1002
	}
	return p
}
