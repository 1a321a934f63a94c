package state

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

func sorted(ids []EffectID) []EffectID {
	slices.Sort(ids)
	return ids
}

// do carries an effect out.
func (s *simulation) do(e Effect) {
	switch e := e.(type) {
	case Ask:
		d, in := s.ask(e)
		s.result(e.ID, d, in)
	case Look:
		s.look(e)
	case Notify:
		d, in := s.notify(e)
		s.result(e.ID, d, in)
	case Validate:
		s.call(e.Op, e.Registration, validate)
	case Register:
		s.call(e.Op, e.Registration, register)
	case Deregister:
		s.call(e.Op, e.Registration, deregister)
	case Close:
		delete(s.conns, e.Conn)
	case Rescan:
		s.world.rescan(e.Root)
	case Cancel:
		// What is cancelled ends soon, in its own way or with an error. Some do not listen.
		if end := s.late[e.ID]; end != nil && s.random.IntN(5) > 0 {
			s.after(s.upTo(50*time.Millisecond), end)
		}
	}
}

// result has an effect end after d with what in says then, or sooner if it is cancelled.
func (s *simulation) result(id EffectID, d time.Duration, in func() Input) {
	end := func() {
		if s.late[id] != nil {
			delete(s.late, id)
			s.step(in())
		}
	}
	s.late[id] = end
	s.after(d, end)
}

// look is one Lstat. It sees what is there when it starts or when it ends, and scans may overtake it.
func (s *simulation) look(e Look) {
	d := s.upTo(2 * time.Millisecond)
	if s.oneIn(10) {
		d = s.upTo(100 * time.Millisecond)
	}
	in := Looked{ID: e.ID, Started: s.now}
	see := func() {
		if s.oneIn(30) && !s.quiet {
			in.Err = errTest
			return
		}
		in.Entry, in.Err = s.world.lstat(e.Path)
	}
	early := s.oneIn(2)
	if early {
		see()
	}
	s.result(e.ID, d, func() Input {
		if !early {
			see()
		}
		return in
	})
}

func (s *simulation) lstat(path string) (scanner.Entry, error) {
	if p := s.plugins[path]; p != nil {
		return scanner.Entry{Path: path, ID: p.id}, nil
	}
	return scanner.Entry{}, fmt.Errorf("lstat %s: %w", path, fs.ErrNotExist)
}

func (s *simulation) rescan(root string) {
	if r := s.roots[root]; !r.running {
		s.scanIn(root, 20*time.Millisecond)
	}
}

func (s *simulation) behind(path string) *simPlugin { return s.plugins[path] }

// reach is the plugin that a dial finds, if it is the one that was scanned (R15) and listens.
func (s *simulation) reach(e scanner.Entry) (*simPlugin, Failure, error) {
	p := s.plugins[e.Path]
	switch {
	case p == nil && s.oneIn(2):
		return nil, Transient, errors.New("no such file")
	case p == nil || p.id.Device != e.ID.Device || p.id.Inode != e.ID.Inode || s.oneIn(200) && !s.quiet:
		return nil, Stale, errors.New("stale")
	case !p.listens:
		return nil, Refused, errors.New("connection refused")
	}
	return p, Transient, nil
}

func (s *simulation) ask(e Ask) (time.Duration, func() Input) {
	d := time.Millisecond + s.upTo(20*time.Millisecond)
	p, failure, err := s.world.reach(e.Entry)
	fail := func(err error, failure Failure, connected bool) (time.Duration, func() Input) {
		return d, func() Input {
			connected = connected && p.listens
			if connected {
				s.connects(e.ID, p)
			}
			return Asked{ID: e.ID, Err: err, Failure: failure, Connected: connected}
		}
	}
	if err != nil {
		return fail(err, failure, false)
	}
	if p.failures > 0 && !s.quiet {
		p.failures--
		return fail(errTest, Transient, s.oneIn(2))
	}
	switch p.kind {
	case simSlow:
		d = s.upTo(3 * time.Second)
	case simHangs:
		if !s.quiet {
			d = 10 * time.Second
			return fail(errors.New("deadline exceeded"), Transient, s.oneIn(2))
		}
	case simNoPlugin:
		return fail(errTest, Unsupported, s.oneIn(2))
	case simBadAnswer:
		return fail(errTest, Permanent, true)
	}
	return d, func() Input {
		if !p.listens { // it has ended meanwhile
			return Asked{ID: e.ID, Err: errors.New("EOF")}
		}
		s.connects(e.ID, p)
		return Asked{ID: e.ID, Info: p.says(), Peer: p.peer, Connected: true}
	}
}

// connects notes an open connection, which its process may end at any time.
func (s *simulation) connects(id EffectID, p *simPlugin) {
	s.conns[id] = p
	if p.goAway > 0 && !s.quiet {
		s.after(p.goAway, func() {
			if p.goAway > 0 {
				s.end(id, true)
			}
		})
	}
}

func (s *simulation) notify(e Notify) (time.Duration, func() Input) {
	d := time.Millisecond + s.upTo(10*time.Millisecond)
	p := s.conns[e.Conn]
	in := Notified{ID: e.ID}
	switch {
	case p == nil:
		in.Err = errors.New("the connection is closed")
	case p.kind == simNoNotify:
		in.Err, in.Failure = errTest, Unsupported
	case p.kind == simDeafNotify && !s.quiet:
		in.Err = errors.New("deadline exceeded")
		d = 5 * time.Second
	}
	return d, func() Input {
		if s.conns[e.Conn] == nil && in.Err == nil {
			in.Err = errors.New("the connection was closed")
		}
		return in
	}
}

// call is a handler at work. Some calls take long, some much longer than anybody waits, and then succeed.
func (s *simulation) call(op Op, r Registration, what kind) {
	d := s.upTo(30 * time.Millisecond)
	switch n := s.random.IntN(100); {
	case s.quiet:
	case n == 0:
		d = s.upTo(time.Minute)
	case n < 6:
		d = s.upTo(4 * time.Second)
	}
	in := Called{ID: op.ID}
	bad := map[kind]int{validate: 40, register: 30}[what]
	if p := s.world.behind(op.Path); bad > 0 && p != nil && p.refuses && !s.quiet && s.random.IntN(100) < bad {
		in.Err = errTest
		if s.oneIn(8) {
			in.Failure = Permanent
		}
	} else if what == deregister && s.oneIn(20) {
		in.Err = errors.New("panic: it broke")
	}
	s.result(op.ID, d, func() Input {
		key := r.Type + " " + r.Name + " " + r.Entry.Path
		switch {
		case what == register && in.Err == nil:
			s.handed[key]++
		case what == deregister:
			s.handed[key]--
		}
		return in
	})
}
