package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

func inOrder(s *stage) (string, error) {
	s.start(s.Run)
	began := s.play(&actor{name: "a"})
	e, err := s.soon(told, "a")
	if err != nil {
		return "", err
	}
	var order []string
	for _, e := range s.since(0, func(e event) bool { return e.name == "a" }) {
		order = append(order, e.what)
	}
	if want := []string{asked, validated, registered, told}; !slices.Equal(order, want) {
		return "", fmt.Errorf("the order was %s", strings.Join(order, ", "))
	}
	return after(e, began), nil
}

func givenAll(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	versions := []string{"1.1.0", "1.0.0"}
	bare, full := &actor{name: "bare", versions: versions}, &actor{name: "full", endpoint: filepath.Join(s.dir, "csi.sock"), versions: versions}
	for _, a := range []*actor{bare, full} {
		s.play(a)
		if _, err := s.soon(told, a.name); err != nil {
			return "", err
		}
		want := a.path
		if a.endpoint != "" {
			want = a.endpoint
		}
		for _, what := range []string{validated, registered} {
			if e, err := s.soon(what, a.name); err != nil || e.path != want || what == validated && !slices.Equal(e.versions, versions) {
				return "", errors.Join(fmt.Errorf("%s was given the endpoint %s and the versions %q, not %s and %q", what, scanner.Quote(e.path), e.versions, scanner.Quote(want), versions), err)
			}
		}
	}
	return "", nil
}

func fromBefore(s *stage) (string, error) {
	s.play(&actor{name: "early"})
	began := time.Now()
	s.start(s.Run)
	e, err := s.soon(told, "early")
	return after(e, began), err
}

func withoutInotify(s *stage) (string, error) {
	s.play(&actor{name: "early"})
	s.start(s.NoInotify)
	if _, err := s.soon(told, "early"); err != nil {
		return "", err
	}
	began := s.play(&actor{name: "late"})
	e, err := s.soon(told, "late")
	return after(e, began), err
}

func fifo(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	path := s.path("fifo")
	must(makeFIFO(path))
	end := time.Now().Add(s.Quiet)
	for time.Now().Before(end) {
		if opened, err := fifoIsRead(path); opened {
			return "", errors.New("the FIFO was opened for reading")
		} else if err != nil {
			return "", fault{err}
		}
		s.pause(time.Millisecond)
	}
	s.play(&actor{name: "beside"})
	_, err := s.soon(told, "beside")
	return "", err
}

func fromDotName(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	s.playAt(&actor{name: "hidden", file: ".shown"}, ".shown")
	if _, err := s.silent(0, concerns("hidden")); err != nil {
		return "", err
	}
	began := s.rename(".shown", "shown")
	e, err := s.soon(told, "hidden")
	return after(e, began), err
}

func dotDirectories(s *stage) (string, error) {
	must(os.Mkdir(s.path(".early"), 0o755))
	s.play(&actor{name: "early", file: ".early/a"})
	if err := s.run(); err != nil {
		return "", err
	}
	must(os.Mkdir(s.path(".late"), 0o755))
	s.play(&actor{name: "late", file: ".late/a"})
	return s.silent(0, concerns("early", "late"))
}

func linkToSocket(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	s.play(&actor{name: "linked", file: "../linked"})
	if err := os.Symlink(filepath.Join(s.dir, "linked"), s.path("link")); err != nil {
		return "", noLinks(err)
	}
	if _, err := s.soon(told, "linked"); err != nil {
		return "", err
	}
	if n := len(s.since(0, at(registered, s.path("link")))); n != 1 {
		return "", fmt.Errorf("%d Register of the link's path", n)
	}
	must(os.Remove(s.path("link")))
	began := time.Now()
	e, err := s.soon(deregistered, "linked")
	return after(e, began), err
}

func renamedSocket(s *stage) (string, error) {
	if err := s.registered(&actor{name: "a"}); err != nil {
		return "", err
	}
	mark := s.mark()
	return s.moved(mark, s.rename("a", "b"), "a", "b")
}

func renamedDirectory(s *stage) (string, error) {
	must(os.Mkdir(s.path("one"), 0o755))
	if err := s.registered(&actor{name: "a", file: "one/a"}); err != nil {
		return "", err
	}
	mark := s.mark()
	return s.moved(mark, s.rename("one", "two"), "one/a", "two/a")
}

// moved waits until a new path is registered and an old one is not any more.
func (s *stage) moved(mark int, began time.Time, from, to string) (string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.Patience)
	defer cancel()
	in, inErr := s.await(ctx, mark, 1, at(registered, s.path(to)))
	_, outErr := s.await(ctx, mark, 1, at(deregistered, s.path(from)))
	switch {
	case s.ctx.Err() != nil:
		return "", s.ctx.Err()
	case inErr != nil && outErr != nil:
		if !errors.Is(inErr, context.DeadlineExceeded) {
			return "", inErr
		}
		return "", fmt.Errorf("neither was the old path deregistered nor the new one registered within %v", s.Patience)
	case inErr != nil:
		return "", errors.New("deregistered only")
	case outErr != nil:
		return "", errors.New("registered only: both paths are registered now")
	}
	return after(in[0], began), nil
}

func oddlyNamed(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	files := []string{"a b", "a#b", "a?b", "a%41b", "a\nb"}
	for i, file := range files {
		s.play(&actor{name: fmt.Sprintf("odd%d", i), file: file})
	}
	var missing []string
	deadline := time.Now().Add(s.Patience)
	for i, file := range files {
		if _, err := s.wait(0, 1, told, fmt.Sprintf("odd%d", i), max(time.Until(deadline), 0)); err != nil {
			missing = append(missing, fmt.Sprintf("%q", file))
		}
	}
	if missing != nil {
		return "", errors.New("not registered: " + strings.Join(missing, ", "))
	}
	return "all five", nil
}

func touched(s *stage) (string, error) {
	a := &actor{name: "a"}
	if err := s.registered(a); err != nil {
		return "", err
	}
	mark := s.mark()
	everything := func(event) bool { return true }
	must(os.Chmod(a.path, 0o600))
	if _, err := s.silent(mark, everything); err != nil {
		return "", err
	}
	now := time.Now()
	must(os.Chtimes(a.path, now, now))
	return s.silent(mark, everything)
}

func longPath(s *stage) (string, error) {
	if err := s.run(); err != nil {
		return "", err
	}
	began := s.playAt(&actor{name: "a", file: strings.Repeat("n", 120)}, "../short")
	e, err := s.soon(told, "a")
	return after(e, began), err
}

func subdirectory(s *stage) (string, error) {
	must(os.Mkdir(s.path("early"), 0o755))
	if err := s.registered(&actor{name: "a", file: "early/a"}); err != nil {
		return "", err
	}
	must(os.MkdirAll(s.path("late/deep"), 0o755))
	began := s.play(&actor{name: "b", file: "late/deep/b"})
	e, err := s.soon(told, "b")
	return after(e, began), err
}

func linkedRoot(s *stage) (string, error) {
	must(os.Rename(s.root, s.root+"-away"))
	if err := os.Symlink(s.root+"-away", s.root); err != nil {
		return "", noLinks(err)
	}
	return "", s.registered(&actor{name: "a"})
}

// noLinks is what Windows says to whoever may not make them.
func noLinks(err error) error {
	return lacking(fmt.Sprintf("no symbolic link can be made here (%v)", err))
}

func remadeRoot(s *stage) (string, error) {
	if err := s.registered(&actor{name: "a"}); err != nil {
		return "", err
	}
	must(os.RemoveAll(s.root))
	s.pause(s.Quiet)
	must(os.Mkdir(s.root, 0o755))
	s.pause(s.Quiet / 2)
	return s.comes()
}

// comes has a plugin come, and waits for it.
func (s *stage) comes() (string, error) {
	began := s.play(&actor{name: "b"})
	e, err := s.soon(told, "b")
	return after(e, began), err
}

func mountedOver(s *stage) (string, error) {
	if err := s.registered(&actor{name: "a"}); err != nil {
		return "", err
	}
	unmount, err := mountOver(s.root)
	if err != nil {
		return "", lacking(fmt.Sprintf("nothing can be mounted here (%v)", err))
	}
	s.undo = append(s.undo, unmount)
	return s.comes()
}

func missingRoot(s *stage) (string, error) {
	must(os.Remove(s.root))
	s.start(s.Run)
	s.pause(s.Quiet)
	must(os.MkdirAll(s.root, 0o755))
	return s.comes()
}
