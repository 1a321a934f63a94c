package conformance

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// crowd is how many plugins are in the way of one.
const crowd = 100

func besideHung(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	for i := range crowd {
		l, err := listen(s.path(fmt.Sprintf("hung%d", i)))
		must(err)
		s.undo = append(s.undo, func() { _ = l.Close() }) // it takes connections as long as its backlog is not full, and reads none
	}
	s.pause(s.Quiet)
	return s.comes()
}

func besideDead(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	for i := range crowd {
		l, err := listen(s.path(fmt.Sprintf("dead%d", i)))
		must(err)
		must(l.Close())
	}
	s.pause(s.Quiet)
	return s.comes()
}

func twoOfAName(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	a := &actor{name: "twin", file: "a"}
	s.play(a)
	s.play(&actor{name: "twin", file: "b"})
	if _, err := s.wait(0, 2, told, "twin", s.Patience); err != nil {
		return "", err
	}
	a.leave()
	if _, err := s.soon(deregistered, "twin"); err != nil {
		return "", err
	}
	s.pause(s.Quiet)
	for _, e := range s.since(0, is(deregistered, "twin")) {
		if e.path != a.path {
			return "", fmt.Errorf("let go of %s when %s has left", scanner.Quote(e.path), scanner.Quote(a.path))
		}
	}
	return "it does", nil
}

const (
	maxGap = 100 * time.Millisecond
	// gapTries is how often a gap is measured, or more often within Patience; the shortest counts, because a machine that is busy makes it no shorter.
	gapTries = 3
)

func replacedBy(name string, replace func(*stage, *actor) (time.Time, *actor)) func(*stage) (string, error) {
	return func(s *stage) (string, error) {
		a := &actor{name: name}
		if err := s.registered(a); err != nil {
			return "", err
		}
		var shortest time.Duration
		end := time.Now().Add(s.Patience)
		try := 0
		for ; try < gapTries || time.Now().Before(end); try++ {
			gap, next, err := s.gap(a, replace)
			if err != nil {
				return "", err
			}
			if try == 0 || gap < shortest {
				shortest = gap
			}
			if shortest <= maxGap {
				return fmt.Sprintf("%.1f ms", shortest.Seconds()*1000), nil
			}
			a = next
		}
		return "", fmt.Errorf("%.2f s, the shortest of %d", shortest.Seconds(), try)
	}
}

// gap replaces a plugin, and returns how long the handler was without it.
func (s *stage) gap(a *actor, replace func(*stage, *actor) (time.Time, *actor)) (time.Duration, *actor, error) {
	mark := s.mark()
	_, next := replace(s, a)
	with, err := s.wait(mark, 1, registered, a.name, s.Patience)
	if err != nil {
		return 0, nil, err
	}
	without, err := s.wait(mark, 1, deregistered, a.name, s.Quiet)
	if err != nil {
		return 0, nil, err
	}
	_, err = s.wait(mark, 1, told, a.name, s.Patience)
	return with.at.Sub(without.at), next, err
}

func startedAnew(s *stage) (string, error) {
	a := &actor{name: "anew"}
	if err := s.registered(a); err != nil {
		return "", err
	}
	mark := s.mark()
	a.die()
	s.pause(time.Second / 4)
	must(os.Remove(a.path))
	// Nothing but the version tells it from the old one with the same connection closed: both are of this process.
	began := s.play(&actor{name: a.name, versions: []string{"1.0.1"}})
	e, err := s.wait(mark, 1, told, a.name, s.Patience)
	if err != nil {
		return "", err
	}
	if _, err := s.wait(mark, 1, deregistered, a.name, s.Quiet); err != nil {
		return "", err
	}
	return after(e, began), nil
}

func died(s *stage) (string, error) {
	a := &actor{name: "dead"}
	if err := s.registered(a); err != nil {
		return "", err
	}
	began := time.Now()
	a.die()
	e, err := s.wait(0, 1, deregistered, a.name, s.Grace+s.Patience)
	if err == nil && e.at.Sub(began) < s.Grace*9/10 {
		err = errors.New(after(e, began))
	}
	return after(e, began), err
}

func idle(s *stage) (string, error) {
	a := &actor{name: "idle"}
	if err := s.registered(a); err != nil {
		return "", err
	}
	s.pause(s.Quiet / 2)
	mark := s.mark()
	before, _ := a.socket.count()
	if _, err := s.silent(mark, func(e event) bool { return e.name == a.name }); err != nil {
		return "", err
	}
	if all, _ := a.socket.count(); all > before {
		return "", fmt.Errorf("%d connections within %v", all-before, s.Quiet)
	}
	return fmt.Sprintf("no call in %v", s.Quiet), nil
}

func endsItself(s *stage) (string, error) {
	a := &actor{name: "last"}
	if err := s.registered(a); err != nil {
		return "", err
	}
	took, err := s.end()
	if err != nil {
		return "", err
	}
	mark := s.mark()
	a.leave()
	s.play(&actor{name: "later"})
	if _, err := s.silent(mark, func(event) bool { return true }); err != nil {
		return "", err
	}
	return fmt.Sprintf("%.2f s", took.Seconds()), nil
}

func keepsAll(s *stage) (string, error) {
	a := &actor{name: "kept"}
	if err := s.registered(a); err != nil {
		return "", err
	}
	mark := s.mark()
	if _, err := s.end(); err != nil {
		return "", err
	}
	return s.silent(mark, func(e event) bool { return e.what == deregistered })
}

func closesAll(s *stage) (string, error) {
	a := &actor{name: "open"}
	if err := s.registered(a); err != nil {
		return "", err
	}
	if _, err := s.end(); err != nil {
		return "", err
	}
	deadline := time.Now().Add(s.Patience)
	for {
		_, open := a.socket.count()
		if open == 0 {
			return "", nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("%d connections to %q are open %v later", open, a.name, s.Patience)
		}
		s.pause(time.Millisecond)
	}
}
