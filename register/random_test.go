package register

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/state"
)

var (
	randomSeed = flag.Uint64("random.seed", 0, "the seed of TestRandom; 0: fixed ones")
	randomOps  = flag.Int("random.ops", 2000, "how many things happen in TestRandom")
)

const exclusiveType = "ExclusivePlugin"

// server is a plugin, as far as TestRandom has to do with it.
type server interface {
	Crash()
	Stop(context.Context) error
	Change(simfs.Plugin)
}

// accident is a world to which things happen at random. Whatever they are, when they end the Manager has to find its way (S3, R5, R7, L1, U1 …).
type accident struct {
	*world
	random  *rand.Rand
	paths   []string
	plugins map[string]server // who listens, by path
	blind   bool              // the filesystem cannot tell a socket from another one at its path: only the end of its plugin does (I3)
	pid     int
	bind    func(path string, p simfs.Plugin) (server, error)
	only    *taker // of exclusiveType
	history []string
}

// what notes something that happens; the last few are printed if it goes wrong.
func (a *accident) what(format string, args ...any) {
	if len(a.history) == 200 {
		a.history = a.history[1:]
	}
	a.history = append(a.history, fmt.Sprintf("%12v ", a.now())+fmt.Sprintf(format, args...))
}

func (a *accident) chance(percent int) bool { return a.random.IntN(100) < percent }

func (a *accident) plugin() simfs.Plugin {
	a.pid++
	p := simfs.Plugin{Type: testType, Name: fmt.Sprintf("n%d", a.random.IntN(12)), PID: a.pid, Start: uint64(a.pid)}
	p.Endpoint = fmt.Sprintf("/run/%d.sock", a.pid)
	switch a.random.IntN(20) {
	case 0:
		p.GetInfo = simfs.Call{Code: codes.Internal, Times: 1 + a.random.IntN(4)}
	case 1:
		p.GetInfo = simfs.Call{Delay: time.Duration(a.random.IntN(15_000)) * time.Millisecond}
	case 2:
		p.Notify = simfs.Call{Delay: time.Minute}
	case 3:
		p.Notify = simfs.Call{Code: codes.Unimplemented}
	case 4:
		p.MaxIdle = time.Duration(1+a.random.IntN(5000)) * time.Millisecond
	case 5:
		p.RefuseDials = 1 + a.random.IntN(5)
	case 6:
		p.PID, p.Start = 0, 0
	case 7, 8, 9, 10:
		p.Type = exclusiveType
	}
	return p
}

func (a *accident) start(path string) {
	p := a.plugin()
	s, err := a.bind(path, p)
	if err != nil {
		return // the name is taken, or its directory is gone
	}
	a.what("bind %s: %+v", path, p)
	if s, ok := s.(*simfs.Server); ok {
		a.servers = append(a.servers, s)
	}
	a.plugins[path] = s
}

func (a *accident) end(path string) {
	s := a.plugins[path]
	if s == nil {
		return
	}
	delete(a.plugins, path)
	if a.chance(50) {
		a.what("crash of %s", path)
		s.Crash()
		return
	}
	a.what("stop of %s", path)
	ctx, cancel := context.WithTimeout(a.Context(), time.Second)
	defer cancel()
	_ = s.Stop(ctx)
}

// lose is what happens to a plugin whose socket is gone: it ends, or lives on without a name.
func (a *accident) lose(path string) {
	if a.blind || a.chance(80) {
		a.end(path)
	}
	delete(a.plugins, path)
}

// happen does one thing.
func (a *accident) happen() {
	path := a.paths[a.random.IntN(len(a.paths))]
	switch n := a.random.IntN(100); {
	case n < 30:
		if a.chance(70) {
			_ = a.node.Remove(path)
			a.lose(path)
		}
		a.start(path)
	case n < 40:
		a.end(path)
	case n < 48:
		a.what("remove %s", path)
		_ = a.node.Remove(path)
		a.lose(path)
	case n < 54:
		other := a.paths[a.random.IntN(len(a.paths))]
		if err := a.node.Rename(path, other); err == nil && path != other {
			a.what("rename %s to %s", path, other)
			a.lose(other)
			s := a.plugins[path]
			delete(a.plugins, path)
			if s != nil {
				a.plugins[other] = s
			}
		}
	case n < 66:
		a.what("touch %s", path)
		_ = errors.Join(a.node.Chmod(path, fs.FileMode(a.random.IntN(0o777))), a.node.Chtimes(path, time.Now(), time.Now().Add(time.Duration(a.random.IntN(100)))))
	case n < 70:
		a.trouble(path)
	case n < 73:
		a.what("all troubles end")
		a.node.ClearFaults()
	case n < 76:
		a.what("retry %s", path)
		_ = a.m.Retry(path)
	case n < 77:
		a.what("retry all")
		a.must(a.m.Retry(""))
	case n < 98:
		a.pass(time.Duration(a.random.IntN(150)) * time.Millisecond)
	default:
		a.pass(time.Duration(a.random.IntN(8)) * time.Second)
	}
}

func (a *accident) trouble(path string) {
	switch a.random.IntN(5) {
	case 0:
		a.what("listing fails")
		a.node.Inject(root, simfs.OpList, simfs.Fault{Err: syscall.EIO, After: a.random.IntN(5), Times: 1 + a.random.IntN(5)})
	case 1:
		a.what("stat of %s fails", path)
		a.node.Inject(path, simfs.OpLstat, simfs.Fault{Err: syscall.ESTALE, Times: 1 + a.random.IntN(5)})
	case 2:
		a.what("stat of %s hangs", path)
		a.node.Inject(path, simfs.OpLstat, simfs.Fault{Hang: true, Times: 1})
	case 3:
		a.what("dials of %s hang", path)
		a.node.Inject(path, simfs.OpDial, simfs.Fault{Hang: true, Times: 1})
	case 4:
		a.what("%s is left out of the listing", path)
		a.node.Inject(path, simfs.OpEntry, simfs.Fault{Err: syscall.ENOENT, Times: 1 + a.random.IntN(3)})
	}
}

// handler has the calls of h go wrong at random, until it is told to behave.
func (a *accident) handler(h *taker, random *rand.Rand, behave *atomic.Bool) {
	for _, verb := range []string{"Validate", "Register", "Deregister"} {
		h.on(verb, func(ctx context.Context, _ state.Registration) error {
			h.mu.Lock()
			n, d, good := random.IntN(100), time.Duration(random.IntN(1000))*time.Millisecond, behave.Load()
			h.mu.Unlock()
			switch {
			case good:
			case n < 5:
				return errors.New("no")
			case n < 7:
				panic("no")
			case n < 17:
				select {
				case <-time.After(d):
				case <-ctx.Done():
					return ctx.Err()
				}
			case n < 20:
				a.sleep(20 * d) // it does not obey its context
			}
			return nil
		})
	}
}

// settle ends all troubles, waits, and compares what the Manager has with what is there.
func (a *accident) settle() {
	a.what("everything settles")
	a.node.ClearFaults()
	for _, s := range a.plugins {
		p := a.plugin()
		p.GetInfo, p.Notify, p.RefuseDials, p.MaxIdle = simfs.Call{}, simfs.Call{}, 0, 0
		s.Change(p)
	}
	a.pass(5 * time.Minute)
	var want, got []string
	for path := range a.plugins {
		want = append(want, path)
	}
	slices.Sort(want)
	for _, s := range a.m.View().Sockets {
		switch {
		case s.Phase == state.Registered, s.Phase == state.Standby && a.plugins[s.Holder] != nil:
			got = append(got, s.Path)
		case a.plugins[s.Path] == nil && s.Phase == state.Backoff:
		default:
			a.Errorf("%s is %s: %+v, plugin %+v, call %+v", s.Path, s.Phase, s, s.Plugin, s.Call)
		}
	}
	if !slices.Equal(got, want) {
		a.Errorf("registered or standing by are\n%q, there are\n%q", got, want)
		for _, s := range a.m.View().Sockets {
			a.Logf("%s %s %v %+v holder %s", s.Path, s.Phase, s.Since.Sub(a.began), s.Plugin, s.Holder)
		}
	}
	held := map[string]string{}
	for path, r := range a.only.held {
		if other := held[r.Name]; other != "" {
			a.Errorf("N2: %s and %s hold %s", path, other, r.Name)
		}
		held[r.Name] = path
	}
}

// TestRandom has things happen to a node whose plugins are asked over gRPC. A seed does not stand for one run, since goroutines take turns as they like,
// but for one kind of trouble: go test ./register -run 'TestRandom$' -random.seed N -random.ops M
func TestRandom(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if *randomSeed != 0 {
		seeds = []uint64{*randomSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			sim := simfs.Config{ReuseInodes: seed%2 == 0}
			if seed%4 == 3 {
				sim = simfs.Config{Detail: simfs.NoDetail, Granularity: time.Second}
			}
			runAccident(t, seed, *randomOps/len(seeds), sim, Config{HandlerTimeout: 5 * time.Second}, func(w *world) func(string, simfs.Plugin) (server, error) {
				return func(path string, p simfs.Plugin) (server, error) { return w.node.Bind(path, p) }
			})
		})
	}
}

func runAccident(t *testing.T, seed uint64, ops int, sim simfs.Config, cfg Config, binder func(*world) func(string, simfs.Plugin) (server, error)) {
	cfg.Logger = hclog.NewNullLogger()
	bubbleOn(t, sim, cfg, func(w *world) {
		a := &accident{world: w, random: rand.New(rand.NewPCG(seed, 0)), plugins: map[string]server{}, only: newTaker(), blind: sim.Detail == simfs.NoDetail}
		a.bind = binder(w)
		w.must(w.node.MkdirAll(at("sub"), 0o755))
		for i := range 24 {
			dir := root
			if i%3 == 0 {
				dir = at("sub")
			}
			a.paths = append(a.paths, fmt.Sprintf("%s/%02d.sock", dir, i))
		}
		w.takers = append(w.takers, a.only)
		w.must(w.m.AddHandler(exclusiveType, exclusiveTaker{a.only}))
		var behave atomic.Bool
		for i, h := range w.takers {
			a.handler(h, rand.New(rand.NewPCG(seed, uint64(i+1))), &behave)
		}
		defer func() {
			if t.Failed() {
				t.Logf("seed %d; the last things that happened:", seed)
				for _, line := range a.history {
					t.Log(line)
				}
			}
		}()
		w.run()
		for i := range ops {
			a.happen()
			if i%1000 == 999 || i == ops-1 {
				behave.Store(true)
				a.settle()
				behave.Store(false)
			}
			if t.Failed() {
				return
			}
		}
		for _, h := range w.takers {
			h.take()
		}
	})
}
