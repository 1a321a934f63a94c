//go:build linux

package register

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plugpoll/plugpoll/state"
)

var (
	soakFor     = flag.Duration("soak", 0, "TestSoak: disturb 200 processes for so long (0: 40 of them for 20 s)")
	soakSeed    = flag.Uint64("soak.seed", 0, "TestSoak: repeat the disturbances of this seed, though not their timing (0: a new one)")
	soakProcess = flag.Int("soak.processes", 200, "TestSoak: how many, with -soak")
)

// deadIsGone is whether a socket whose process crashed stops being registered (L2).
const deadIsGone = true

// soak is a directory in which plugins live, each in a process of its own: a crash is a SIGKILL then, and what the kernel does for a process that ends is
// part of it. They share the binary, so 200 of them take less than a gigabyte.
type soak struct {
	*testing.T
	ctx    context.Context
	root   string
	random *rand.Rand
	daemon *child
	places []*place
	did    map[string]int
	names  int
}

// place is where one plugin lives, or has lived.
type place struct {
	home, path string // path is another one than home while it is renamed
	p          *child // nil: nobody is there
	name       string // what it announces; empty if nothing listens
	hung       bool
	left       bool // its process crashed, and the socket is there
}

// TestSoak has many real plugin processes start, stop, crash, hang, rename and bind their sockets anew at random, while one handler call in twenty fails.
// After that, the view is what is on disk, the handler's calls balance (R5), and no goroutine and no descriptor is left over (S3, N3). `make soak-plugins`
// runs it for ten minutes. TestChurn of cmd/plugpoll is less of the same with `plugpoll plugin`.
func TestSoak(t *testing.T) {
	processes, lasts := 40, 20*time.Second
	if *soakFor > 0 {
		processes, lasts = *soakProcess, *soakFor
	}
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d, %d processes, %v", seed, processes, lasts)
	s := newSoak(t, seed, processes, lasts)
	end := time.After(lasts)
	for disturbed := false; !disturbed; {
		s.disturb()
		select {
		case <-end:
			disturbed = true
		case <-time.After(time.Duration(s.random.IntN(100)) * time.Millisecond):
		}
	}
	t.Logf("disturbances: %v", s.did)
	s.settle()
	s.finish()
}

func newSoak(t *testing.T, seed uint64, processes int, lasts time.Duration) *soak {
	root, err := os.MkdirTemp("", "s") //nolint:usetesting // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	ctx, cancel := context.WithTimeout(t.Context(), lasts+5*time.Minute)
	t.Cleanup(cancel)
	s := &soak{T: t, ctx: ctx, root: root, random: rand.New(rand.NewPCG(seed, 0)), daemon: startProcess(t, "daemon"), did: map[string]int{}}
	s.order(s.daemon, order{Do: "run", Daemon: &daemonConfig{Root: root, InfoTimeout: 2 * time.Second, Grace: 2 * time.Second, FailOne: 20, Quiet: true, Seed: seed | 1}})
	t.Cleanup(func() {
		for _, at := range s.places {
			if at.p != nil {
				at.p.kill()
			}
		}
	})
	for i := range processes {
		at := &place{home: filepath.Join(root, fmt.Sprintf("%d.sock", i))}
		if i%4 == 0 { // some live in subdirectories
			at.home = filepath.Join(root, fmt.Sprintf("%d", i), "a.sock")
			if err := os.Mkdir(filepath.Dir(at.home), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		at.path = at.home
		s.places = append(s.places, at)
		s.start(at)
	}
	return s
}

func (s *soak) order(p *child, o order) note {
	s.Helper()
	n, err := p.order(s.ctx, o)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// start has a new process serve at a place, where a dead one may have left its socket. Some names are those of others (N1).
func (s *soak) start(at *place) {
	s.Helper()
	p, err := newProcess("farm")
	if err != nil {
		s.Fatal(err)
	}
	at.p, at.hung, at.left = p, false, false
	mode := ""
	if s.random.IntN(10) == 0 {
		mode, at.hung = hangs, true
	}
	at.name = s.newName()
	s.order(p, order{Do: "start", Path: at.path, Name: at.name, Mode: mode})
}

func (s *soak) newName() string {
	s.names++
	if s.random.IntN(4) == 0 {
		return fmt.Sprintf("shared%d", s.random.IntN(5))
	}
	return fmt.Sprintf("n%d", s.names)
}

// disturb does one thing at one place.
func (s *soak) disturb() {
	s.Helper()
	at := s.places[s.random.IntN(len(s.places))]
	what := "starts"
	if at.p != nil {
		what = []string{"stops", "crashes", "crashes and starts", "hangs", "rebinds", "is renamed", "is renamed over", "is hidden", "is killed after its socket"}[s.random.IntN(9)]
		if at.hung {
			what = []string{"answers again", "crashes while it hangs"}[s.random.IntN(2)]
		}
	}
	s.did[what]++
	switch what {
	case "starts":
		s.start(at)
	case "answers again":
		at.hung = false
		s.order(at.p, order{Do: "answer", Path: at.path})
	case "hangs":
		at.hung = true
		s.order(at.p, order{Do: "hang", Path: at.path})
	case "stops":
		s.order(at.p, order{Do: "stop", Path: at.path})
		if err := at.p.dismiss(); err != nil {
			s.Error(err)
		}
		at.p, at.name, at.path = nil, "", at.home
	case "crashes", "crashes while it hangs":
		s.crash(at)
	case "crashes and starts":
		s.crash(at)
		s.start(at)
	case "is killed after its socket":
		if err := os.Remove(at.path); err != nil {
			s.Fatal(err)
		}
		s.crash(at)
		at.left, at.path = false, at.home
	case "rebinds":
		at.name = s.newName()
		s.order(at.p, order{Do: "rebind", Path: at.path, Name: at.name, Keep: s.random.IntN(2) == 0})
	case "is renamed over":
		at.name = s.newName()
		s.order(at.p, order{Do: "replace", Path: at.path, Name: at.name, Keep: s.random.IntN(2) == 0})
	case "is renamed":
		s.rename(at, at.path+"x")
	case "is hidden": // and, at once, shown again, or at another time renamed to something visible
		s.rename(at, filepath.Join(filepath.Dir(at.home), "."+filepath.Base(at.path)))
		if s.random.IntN(2) == 0 {
			s.rename(at, at.home)
		}
	}
}

// rename moves a socket, home if its name has become long.
func (s *soak) rename(at *place, to string) {
	if len(filepath.Base(to)) > 20 {
		to = at.home
	}
	s.order(at.p, order{Do: "rename", Path: at.path, To: to})
	at.path = to
}

func (s *soak) crash(at *place) {
	at.p.kill()
	at.p, at.name, at.hung, at.left = nil, "", false, true
}

// settle ends the hangs and waits until the view is what is on disk.
func (s *soak) settle() {
	listening, left := map[string]string{}, map[string]bool{}
	for _, at := range s.places {
		visible := filepath.Base(at.path)[0] != '.'
		if at.hung {
			s.order(at.p, order{Do: "answer", Path: at.path})
		}
		switch {
		case visible && at.p != nil:
			listening[at.path] = at.name
		case visible && at.left:
			left[at.path] = true
		}
	}
	s.Logf("%d plugins listen, %d sockets are dead", len(listening), len(left))
	began, problem := time.Now(), error(nil)
	for ticker := time.Tick(100 * time.Millisecond); ; {
		if problem = s.compare(listening, left); problem == nil {
			s.Logf("the view was right after %v", time.Since(began).Round(time.Millisecond))
			return
		}
		select {
		case <-s.ctx.Done():
		case <-ticker:
			// A plugin that hung for long is asked again when its backoff says so.
			if time.Since(began) < 3*time.Minute {
				continue
			}
		}
		s.Fatalf("the view is not what is on disk after %v: %v", time.Since(began), problem)
	}
}

// compare says in what View and the handler differ from the disk.
func (s *soak) compare(listening map[string]string, left map[string]bool) error {
	registered, deadOnes := map[string]string{}, map[string]bool{}
	for _, one := range s.order(s.daemon, order{Do: "view"}).Sockets {
		switch {
		case left[one.Path]:
			deadOnes[one.Path] = true
			if one.Phase == state.Registered && deadIsGone {
				return fmt.Errorf("L2: nobody listens at %s, and it is registered", one.Path)
			}
		case one.Phase == state.Registered && one.Acknowledged == state.AckYes:
			registered[one.Path] = one.Name
		default:
			registered[one.Path] = fmt.Sprintf("%s: %+v", one.Phase, one)
		}
	}
	held := s.order(s.daemon, order{Do: "held"}).Held
	maps.DeleteFunc(held, func(path, _ string) bool { return left[path] && !deadIsGone })
	for what, diff := range map[string]string{
		"registered": cmp.Diff(listening, registered), "seen dead": cmp.Diff(left, deadOnes), "held by the handler (R5)": cmp.Diff(listening, held),
	} {
		if diff != "" {
			return fmt.Errorf("%s (-disk +plugpoll):\n%s", what, diff)
		}
	}
	return nil
}

// finish ends everything, and looks for what is left over.
func (s *soak) finish() {
	u := s.order(s.daemon, order{Do: "usage"}).Usage
	sockets := len(s.order(s.daemon, order{Do: "view"}).Sockets)
	s.Logf("%d sockets: %d goroutines, %d descriptors, %.1f MB, %d log lines, %d connects, %v of a processor", sockets, u.Goroutines, u.Descriptors,
		float64(u.RSS)/(1<<20), u.Lines, u.Dials, u.CPU.Round(time.Millisecond))
	// Each may have one connection, with five goroutines; a scan or a try may be under way.
	if u.Descriptors > sockets+20 || u.Goroutines > 5*sockets+100 {
		s.Errorf("N3: %d sockets have %d descriptors and %d goroutines", sockets, u.Descriptors, u.Goroutines)
	}
	for _, at := range slices.Backward(s.places) {
		if at.p != nil {
			s.order(at.p, order{Do: "stop", Path: at.path})
			at.p.kill()
			at.p = nil
		}
	}
	if _, err := s.daemon.order(s.ctx, order{Do: "stop"}); err != nil {
		s.Error(err)
	}
	if err := s.daemon.dismiss(); err != nil && !errors.Is(err, os.ErrClosed) {
		s.Error(err)
	}
}
