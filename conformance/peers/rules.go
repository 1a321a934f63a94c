package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var rules = []rule{
	{id: "D1", sentence: "a socket from before the start is found", check: func(s *scene) (string, error) {
		s.start("a.sock", "a")
		began := clock()
		s.run()
		n, err := s.told("a", 5*time.Second)
		return after(n, began), err
	}},
	{id: "D1", sentence: "it is found without an inotify instance, also one that comes later", noInotify: true, check: func(s *scene) (string, error) {
		s.start("a.sock", "a")
		s.run()
		if _, err := s.told("a", 5*time.Second); err != nil {
			return "", err
		}
		began := s.start("b.sock", "b")
		n, err := s.told("b", 5*time.Second)
		return after(n, began), err
	}},
	{id: "D3", sentence: "a directory whose name begins with a dot is skipped, at start as later", check: func(s *scene) (string, error) {
		must(os.Mkdir(s.path(".early"), 0o755))
		s.start(".early/a.sock", "early")
		s.run()
		must(os.Mkdir(s.path(".late"), 0o755))
		s.start(".late/a.sock", "late")
		return s.none(3*time.Second, "early", "late")
	}},
	{id: "D3", sentence: "a socket renamed from a dot name to a visible one is found, and not before", check: func(s *scene) (string, error) {
		s.run()
		s.start(".a.sock", "a")
		if seen, err := s.none(2*time.Second, "a"); err != nil {
			return seen, err
		}
		began := s.tell(order{Do: "rename", Path: s.path(".a.sock"), To: s.path("a.sock")})
		n, err := s.told("a", 5*time.Second)
		return after(n, began), err
	}},
	{id: "D6", sentence: "a socket is renamed: the old path is deregistered, the new one registered", check: renamedSocket},
	{id: "D7", sentence: "a subdirectory is renamed: the old path is deregistered, the new one registered", check: renamedDirectory},
	{id: "D7", sentence: "the root is removed and made again: a plugin in it is registered", check: remadeRoot},
	{id: "D10", sentence: "names with a blank, #, ?, %41 and a newline are registered", check: func(s *scene) (string, error) {
		s.run()
		files := []string{"a b", "a#b", "a?b", "a%41b", "a\nb"}
		for i, file := range files {
			s.start(file, strconv.Itoa(i))
		}
		var missing []string
		deadline := clock() + 6*time.Second
		for i, file := range files {
			if _, err := s.told(strconv.Itoa(i), max(deadline-clock(), 0)); err != nil {
				missing = append(missing, fmt.Sprintf("%q", file))
			}
		}
		if missing != nil {
			return "", errors.New("not registered: " + strings.Join(missing, ", "))
		}
		return "all five", nil
	}},
	{id: "I4", sentence: "chmod and touch of a socket cause no call", check: func(s *scene) (string, error) {
		s.registered("a.sock", "a")
		handler, plugin := s.peer.mark(), s.farm.mark()
		must(os.Chmod(s.path("a.sock"), 0o600))
		s.pause(time.Second)
		must(os.Chtimes(s.path("a.sock"), time.Now(), time.Now()))
		s.pause(3 * time.Second)
		everything := func(n note) bool { return n.ID == 0 }
		if calls := len(s.peer.since(handler, everything)) + len(s.farm.since(plugin, everything)); calls > 0 {
			return "", fmt.Errorf("%d calls", calls)
		}
		return "none in 4 s", nil
	}},
	{id: "R3", sentence: "a plugin of unknown type is told so", check: func(s *scene) (string, error) {
		n, err := s.refused()
		if err == nil && !strings.Contains(n.Error, "OtherPlugin") {
			err = fmt.Errorf("told %q", n.Error)
		}
		return "with the type", err
	}},
	{id: "R3", sentence: "… and which types are known", check: func(s *scene) (string, error) {
		n, err := s.refused()
		if err == nil && !strings.Contains(n.Error, testType) {
			err = errors.New("not told")
		}
		return "told", err
	}},
	{id: "R4", sentence: "a plugin that cannot be told stays registered", check: func(s *scene) (string, error) {
		s.run()
		s.tell(order{Do: "start", Path: s.path("a.sock"), Name: "a", Mute: true})
		if _, err := within(s, s.peer, 0, 1, "register", "a", 5*time.Second); err != nil {
			return "", err
		}
		s.pause(15 * time.Second)
		registers, deregisters := len(s.peer.since(0, what("register", "a"))), len(s.peer.since(0, what("deregister", "a")))
		seen := fmt.Sprintf("%d Register and %d Deregister in 15 s", registers, deregisters)
		if registers != 1 || deregisters != 0 {
			return "", errors.New(seen)
		}
		return seen, nil
	}},
	{id: "R5", sentence: "a socket is removed: one Deregister, with the name and endpoint of the Register", check: func(s *scene) (string, error) {
		s.registered("a.sock", "a")
		began := s.tell(order{Do: "stop", Path: s.path("a.sock")})
		n, err := within(s, s.peer, 0, 1, "deregister", "a", 5*time.Second)
		if err != nil {
			return "", err
		}
		s.pause(2 * time.Second)
		if all := s.peer.since(0, what("deregister", "a")); len(all) != 1 || n.Path != s.path("a.sock") {
			return "", fmt.Errorf("%d, of %q", len(all), n.Path)
		}
		return after(n, began), nil
	}},
	{id: "R6", sentence: "a socket is replaced by a rename: the handler is without the plugin for 100 ms at most", check: replacedBy("replace")},
	{id: "R6", sentence: "… or removed and bound again at once", check: replacedBy("rebind")},
	{id: "R8", sentence: "Validate fails twice, then not: told each time, then registered", check: func(s *scene) (string, error) {
		s.order(s.peer, order{Do: "fail", Call: "validate", Name: "a", Times: 2})
		s.run()
		began := s.start("a.sock", "a")
		if _, err := within(s, s.farm, 0, 2, "refused", "a", 10*time.Second); err != nil {
			return "", err
		}
		n, err := s.told("a", 10*time.Second)
		return after(n, began), err
	}},
	{id: "R9", sentence: "Register panics once: tried again, the plugin registered", check: func(s *scene) (string, error) {
		s.order(s.peer, order{Do: "fail", Call: "panic", Name: "a", Times: 1})
		s.run()
		began := s.start("a.sock", "a")
		n, err := s.told("a", 20*time.Second)
		return after(n, began), err
	}},
	{id: "R9", sentence: "… and other plugins are registered", check: func(s *scene) (string, error) {
		s.order(s.peer, order{Do: "fail", Call: "panic", Name: "a", Times: 1})
		s.run()
		s.start("a.sock", "a")
		s.pause(3 * time.Second)
		began := s.start("b.sock", "b")
		n, err := s.told("b", 10*time.Second)
		return after(n, began), err
	}},
	{id: "R10", sentence: "a plugin whose GetInfo takes 1.2 s is registered", check: func(s *scene) (string, error) {
		s.run()
		began := s.tell(order{Do: "start", Path: s.path("a.sock"), Name: "a", Delay: 1200 * time.Millisecond})
		n, err := s.told("a", 15*time.Second)
		return after(n, began), err
	}},
	{id: "R12", sentence: "a plugin that failed 5 times is fixed and makes its socket anew: registered within 2 s", check: func(s *scene) (string, error) {
		s.order(s.peer, order{Do: "fail", Call: "validate", Name: "a", Times: 1000})
		s.run()
		s.start("a.sock", "a")
		if _, err := within(s, s.farm, 0, 5, "refused", "a", time.Minute); err != nil {
			return "", err
		}
		s.order(s.peer, order{Do: "fail", Call: "validate", Name: "a"})
		began := s.tell(order{Do: "rebind", Path: s.path("a.sock"), Name: "a"})
		n, err := s.told("a", time.Minute)
		if err == nil && n.At-began > 2*time.Second {
			err = errors.New(after(n, began))
		}
		return after(n, began), err
	}},
	{id: "R15", sentence: "a socket whose path has more than 107 bytes is registered", check: func(s *scene) (string, error) {
		s.run()
		long := filepath.Join(strings.Repeat("n", 60), strings.Repeat("m", 60))
		must(os.MkdirAll(s.path(long), 0o755))
		s.pause(1500 * time.Millisecond)
		began := s.start(filepath.Join(long, "a.sock"), "a")
		n, err := s.told("a", 8*time.Second)
		return after(n, began), err
	}},
	{id: "N1", sentence: "two sockets announce one name: both registered, and Deregister names the one that left", check: twoOfAName},
	{id: "L1", sentence: "a plugin is killed and started again: deregistered and registered", check: func(s *scene) (string, error) {
		s.registeredByAnother("a.sock", "a").kill()
		s.pause(time.Second)
		mark := s.peer.mark()
		began := s.start("a.sock", "a")
		n, err := within(s, s.farm, 0, 1, "told", "a", 5*time.Second)
		if err != nil {
			return "", err
		}
		if _, err := within(s, s.peer, mark, 1, "deregister", "a", time.Second); err != nil {
			return "", err
		}
		return after(n, began), nil
	}},
	{id: "L2", sentence: "a plugin is killed and its socket stays: deregistered after 30 s", check: func(s *scene) (string, error) {
		killed := s.registeredByAnother("a.sock", "a")
		began := clock()
		killed.kill()
		n, err := within(s, s.peer, 0, 1, "deregister", "a", 40*time.Second)
		return after(n, began), err
	}},
}

// none looks for some time whether one of the plugins is told anything.
func (s *scene) none(wait time.Duration, names ...string) (string, error) {
	s.pause(wait)
	for _, name := range names {
		if len(s.farm.since(0, func(n note) bool { return n.Name == name && (n.What == "told" || n.What == "refused") })) > 0 {
			return "", fmt.Errorf("%q was registered", name)
		}
	}
	return "none was", nil
}

// registered runs the registrar and has a plugin registered, which is no matter of the rule.
func (s *scene) registered(path, name string) {
	s.run()
	s.start(path, name)
	_, err := s.told(name, 10*time.Second)
	must(err)
	s.pause(1500 * time.Millisecond)
}

// registeredByAnother does so with a plugin of another farm.
func (s *scene) registeredByAnother(path, name string) *child {
	other, err := startProcess("farm")
	must(err)
	s.run()
	s.order(other, order{Do: "start", Path: s.path(path), Name: name})
	if _, err := within(s, other, 0, 1, "told", name, 10*time.Second); err != nil {
		other.kill()
		must(err)
	}
	s.pause(1500 * time.Millisecond)
	return other
}

// refused starts a plugin of a type that nobody handles.
func (s *scene) refused() (note, error) {
	s.run()
	s.tell(order{Do: "start", Path: s.path("a.sock"), Name: "a", Type: "OtherPlugin"})
	return within(s, s.farm, 0, 1, "refused", "a", 5*time.Second)
}

func renamedDirectory(s *scene) (string, error) {
	must(os.Mkdir(s.path("one"), 0o755))
	s.registered("one/a.sock", "a")
	mark := s.peer.mark()
	began := clock()
	must(os.Rename(s.path("one"), s.path("two")))
	return s.moved(mark, began, "one/a.sock", "two/a.sock")
}

func renamedSocket(s *scene) (string, error) {
	s.registered("a.sock", "a")
	mark := s.peer.mark()
	began := s.tell(order{Do: "rename", Path: s.path("a.sock"), To: s.path("b.sock")})
	return s.moved(mark, began, "a.sock", "b.sock")
}

// moved waits until a new path is registered and an old one is not any more.
func (s *scene) moved(mark int, began time.Duration, from, to string) (string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	have := func(happened, path string) (note, bool) {
		found, err := s.peer.awaitAll(ctx, mark, 1, func(n note) bool { return n.What == happened && n.Path == s.path(path) })
		must(s.ctx.Err())
		if err != nil {
			return note{}, false
		}
		return found[0], true
	}
	n, in := have("register", to)
	_, out := have("deregister", from)
	switch {
	case !in && !out:
		return "", errors.New("neither within 10 s")
	case !in:
		return "", errors.New("deregistered only")
	case !out:
		return "", errors.New("registered only: both paths are registered now")
	}
	return after(n, began), nil
}

func remadeRoot(s *scene) (string, error) {
	s.registered("a.sock", "a")
	must(os.RemoveAll(s.root))
	s.pause(time.Second)
	must(os.Mkdir(s.root, 0o755))
	s.pause(time.Second)
	began := s.start("b.sock", "b")
	n, err := s.told("b", 10*time.Second)
	return after(n, began), err
}

func replacedBy(do string) func(*scene) (string, error) {
	return func(s *scene) (string, error) {
		s.registered("a.sock", "a")
		mark := s.peer.mark()
		s.tell(order{Do: do, Path: s.path("a.sock"), Name: "a"})
		with, err := within(s, s.peer, mark, 1, "register", "a", 5*time.Second)
		if err != nil {
			return "", err
		}
		without, err := within(s, s.peer, mark, 1, "deregister", "a", time.Second)
		if err == nil && with.At-without.At > 100*time.Millisecond {
			err = errors.New(after(with, without.At))
		}
		return fmt.Sprintf("%.1f ms", (with.At-without.At).Seconds()*1000), err
	}
}

func twoOfAName(s *scene) (string, error) {
	s.run()
	s.start("a.sock", "twin")
	s.start("b.sock", "twin")
	if _, err := within(s, s.farm, 0, 2, "told", "twin", 10*time.Second); err != nil {
		return "", err
	}
	s.tell(order{Do: "stop", Path: s.path("a.sock")})
	n, err := within(s, s.peer, 0, 1, "deregister", "twin", 5*time.Second)
	if err != nil {
		return "", err
	}
	s.pause(2 * time.Second)
	if all := s.peer.since(0, what("deregister", "twin")); len(all) != 1 || n.Path != s.path("a.sock") {
		return "", fmt.Errorf("%d Deregister, of %q", len(all), filepath.Base(n.Path))
	}
	return "it does", nil
}
