package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

// maxTold is how long a text is that a plugin is told (R3).
const maxTold = 1 << 10

// refusal has a plugin come that is to be refused, and returns what it is told.
func (s *stage) refusal(a *actor) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	s.play(a)
	e, err := s.soon(refused, a.name)
	return e.text, err
}

func unknownType(s *stage) (string, error) {
	text, err := s.refusal(&actor{name: "a", kind: otherType})
	if err == nil && !strings.Contains(text, otherType) {
		err = fmt.Errorf("told %q", scanner.Clean(text, maxTold))
	}
	return "", err
}

func knownTypes(s *stage) (string, error) {
	text, err := s.refusal(&actor{name: "a", kind: otherType})
	if err == nil && !strings.Contains(text, pluginType) {
		err = fmt.Errorf("told %q", scanner.Clean(text, maxTold))
	}
	return "", err
}

func toldCause(s *stage) (string, error) {
	s.whenever(validated, "a", times(1, notToday))
	text, err := s.refusal(&actor{name: "a"})
	if err == nil && !strings.Contains(text, errToday.Error()) {
		err = fmt.Errorf("told %q, and the error was %q", scanner.Clean(text, maxTold), errToday.Error())
	}
	return "", err
}

func toldBounded(s *stage) (string, error) {
	long := errors.New("no \xff UTF-8" + strings.Repeat(", and long", 1000))
	s.whenever(validated, "a", times(1, func() error { return long }))
	text, err := s.refusal(&actor{name: "a"})
	if err == nil && (len(text) > maxTold || !utf8.ValidString(text)) {
		err = fmt.Errorf("told %d bytes", len(text))
	}
	return fmt.Sprintf("%d bytes", len(text)), err
}

func deaf(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	s.play(&actor{name: "deaf", deaf: true})
	if _, err := s.soon(told, "deaf"); err != nil {
		return "", err
	}
	s.pause(2 * s.Quiet)
	registers, deregisters := len(s.since(0, is(registered, "deaf"))), len(s.since(0, is(deregistered, "deaf")))
	seen := fmt.Sprintf("%d Register and %d Deregister in %v", registers, deregisters, 2*s.Quiet)
	if registers != 1 || deregisters != 0 {
		return "", errors.New(seen)
	}
	return seen, nil
}

func slow(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	began := s.play(&actor{name: "slow", delay: 1200 * time.Millisecond})
	e, err := s.soon(told, "slow")
	return after(e, began), err
}

func foreign(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	s.play(&actor{name: "foreign", foreign: true})
	if _, err := s.soon(asked, "foreign"); err != nil {
		return "", err
	}
	s.pause(s.Quiet)
	if n := len(s.since(0, is(asked, "foreign"))); n > 1 {
		return "", fmt.Errorf("asked %d times in %v", n, s.Quiet)
	}
	return "", nil
}

var longName = strings.Repeat("n", 300)

// refusedFor has plugins refused for what they say of themselves.
func refusedFor(actors ...*actor) func(*stage) (string, error) {
	return func(s *stage) (string, error) {
		if err := s.run(); err != nil {
			return "", err
		}
		for _, a := range actors {
			same := &actor{name: a.name, file: a.file, endpoint: a.endpoint}
			s.play(same)
			handled := func(e event) bool { return e.name == a.name && (e.what == validated || e.what == registered) }
			ctx, cancel := context.WithTimeout(s.ctx, s.Quiet)
			_, err := s.await(ctx, 0, 1, handled)
			cancel()
			if err == nil {
				return "", fmt.Errorf("%s has reached the handler", describe(a.info()))
			}
			if _, err := s.soon(refused, a.name); err != nil {
				return "", err
			}
		}
		return "", nil
	}
}

// fewConnects is how many tries there may be within a few seconds.
const fewConnects = 8

func hangsUp(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	a := &actor{name: "rude", rude: true}
	s.play(a)
	s.pause(2 * s.Quiet)
	all, _ := a.socket.count()
	seen := fmt.Sprintf("%d connections in %v", all, 2*s.Quiet)
	if all > fewConnects {
		return "", errors.New(seen)
	}
	return seen, nil
}

func failedRegister(s *stage) (string, error) {
	done := make(chan struct{}, 1)
	s.whenever(registered, "a", func(context.Context) error {
		select {
		case done <- struct{}{}:
		default:
		}
		return errToday
	})
	if err := s.run(); err != nil {
		return "", err
	}
	a := &actor{name: "a"}
	s.play(a)
	if err := s.once(done, "Register"); err != nil {
		return "", err
	}
	s.pause(arrival) // it is told, or not
	a.leave()
	return s.silent(0, is(deregistered, "a"))
}

func removedSocket(s *stage) (string, error) {
	a := &actor{name: "a"}
	if err := s.registered(a); err != nil {
		return "", err
	}
	began := a.leave()
	e, err := s.soon(deregistered, "a")
	if err != nil {
		return "", err
	}
	s.pause(s.Quiet)
	if n := len(s.since(0, is(deregistered, "a"))); n != 1 || e.path != a.path {
		return "", fmt.Errorf("%d Deregister, the first of %s", n, scanner.Quote(e.path))
	}
	return after(e, began), nil
}

func oneAtATime(s *stage) (string, error) {
	var inside, overlaps atomic.Int64
	slow := func(ctx context.Context) error {
		defer inside.Add(-1)
		if inside.Add(1) > 1 {
			overlaps.Add(1)
		}
		return pause(ctx, 100*time.Millisecond)
	}
	for _, call := range []string{validated, registered, deregistered} {
		s.whenever(call, "one", slow)
	}
	if err := s.run(); err != nil {
		return "", err
	}
	a, b := &actor{name: "one", file: "a"}, &actor{name: "one", file: "b"}
	s.play(a)
	s.play(b)
	if _, err := s.wait(0, 2, registered, "one", s.Patience); err != nil {
		return "", err
	}
	a.leave()
	b.leave()
	if _, err := s.wait(0, 2, deregistered, "one", s.Patience); err != nil {
		return "", err
	}
	s.pause(200 * time.Millisecond)
	if n := overlaps.Load(); n > 0 {
		return "", fmt.Errorf("%d calls began while another one ran", n)
	}
	return "", nil
}

func failsTwice(s *stage) (string, error) {
	s.whenever(validated, "a", times(2, notToday))
	if err := s.run(); err != nil {
		return "", err
	}
	began := s.play(&actor{name: "a"})
	if _, err := s.wait(0, 2, refused, "a", s.Patience); err != nil {
		return "", err
	}
	e, err := s.soon(told, "a")
	return after(e, began), err
}

func handlerAdded(s *stage) (string, error) {
	added := make(chan map[string]register.KubeletHandler, 1)
	if err := s.runBy(func(ctx context.Context, dir string, handlers map[string]register.KubeletHandler) error {
		return s.Adding(ctx, dir, handlers, added)
	}); err != nil {
		return "", err
	}
	s.play(&actor{name: "a", kind: lateType})
	if _, err := s.soon(refused, "a"); err != nil {
		return "", err
	}
	began := time.Now()
	added <- map[string]register.KubeletHandler{lateType: takes{s}}
	e, err := s.soon(told, "a")
	return after(e, began), err
}

func panics() error { panic("the handler was told to") }

func panicsOnce(s *stage) (string, error) {
	s.whenever(registered, "a", times(1, panics))
	if err := s.run(); err != nil {
		return "", err
	}
	began := s.play(&actor{name: "a"})
	e, err := s.soon(told, "a")
	return after(e, began), err
}

func panicBesides(s *stage) (string, error) {
	done := make(chan struct{})
	s.whenever(registered, "a", times(1, func() error {
		close(done)
		return panics()
	}))
	if err := s.run(); err != nil {
		return "", err
	}
	s.play(&actor{name: "a"})
	if err := s.once(done, "Register"); err != nil {
		return "", err
	}
	s.pause(s.Quiet)
	return s.comes()
}

// once waits for a call of the handler.
func (s *stage) once(done <-chan struct{}, call string) error {
	late := time.NewTimer(s.Patience)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		return fmt.Errorf("no %s within %v", call, s.Patience)
	}
}

func hangsBesides(s *stage) (string, error) {
	done := make(chan struct{})
	s.whenever(registered, "hangs", func(ctx context.Context) error {
		close(done)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.leave: // a registrar may give a context that never ends
			return errToday
		}
	})
	if err := s.run(); err != nil {
		return "", err
	}
	s.play(&actor{name: "hangs"})
	if err := s.once(done, "Register"); err != nil {
		return "", err
	}
	return s.comes()
}

const (
	// fourFailures is how long they may take, with pauses that double.
	fourFailures = 30 * time.Second
	// maxLate is less than the pause after them.
	maxLate = 2 * time.Second
)

func fixed(s *stage) (string, error) {
	s.whenever(validated, "a", times(1000, notToday))
	if err := s.run(); err != nil {
		return "", err
	}
	a := &actor{name: "a"}
	s.play(a)
	if _, err := s.wait(0, 4, refused, "a", fourFailures); err != nil {
		return "", err
	}
	s.whenever(validated, "a", nil)
	began, _ := s.rebind(a)
	s.play(&actor{name: "b"}) // what holds this one up has held up that one too
	e, err := s.soon(told, "a")
	if err != nil {
		return "", err
	}
	beside, err := s.soon(told, "b")
	if late := e.at.Sub(beside.at); err == nil && late > maxLate {
		err = fmt.Errorf("%s, and a new one %s", after(e, began), after(beside, began))
	}
	return after(e, began), err
}

// rebind has another instance of a plugin remove its socket and bind at once, which is then there; the old one ends.
func (s *stage) rebind(old *actor) (time.Time, *actor) {
	next := &actor{name: old.name, file: old.file}
	must(os.Remove(old.path))
	began := s.play(next)
	old.die()
	return began, next
}

// renameOver has another instance rename its socket over that of a plugin.
func (s *stage) renameOver(old *actor) (time.Time, *actor) {
	next := &actor{name: old.name, file: old.file}
	began := s.playAt(next, fmt.Sprintf(".new-%s", old.name))
	old.die()
	return began, next
}
