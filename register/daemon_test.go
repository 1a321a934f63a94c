//go:build linux

package register

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// daemonConfig is what a daemon process is told of its Manager. Zero means the Manager's default.
type daemonConfig struct {
	Root        string
	InfoTimeout time.Duration `json:",omitempty"`
	Grace       time.Duration `json:",omitempty"` // LivenessGrace
	// Quiet has it say nothing of the handler's calls.
	Quiet bool `json:",omitempty"`
	// FailOne has one of so many handler calls fail. 0: none.
	FailOne int    `json:",omitempty"`
	Seed    uint64 `json:",omitempty"`
}

// daemon is a process with a Manager, as `plugpoll run` is one. It says "deregister" when that call of the handler begins, and "register" when that ends.
type daemon struct {
	*mouthpiece
	m        *Manager
	h        *keeper
	log      lineCounter
	dials    atomic.Int64
	stop     context.CancelFunc
	ended    chan error
	before   goleak.Option
	open     int // descriptors before Run
	routines int // goroutines before Run
}

// usage is what a daemon takes.
type usage struct {
	CPU            time.Duration // of processors, since its start
	RSS, HighWater int64         // bytes
	Goroutines     int           // beyond those before Run
	Descriptors    int           // beyond those before Run
	Lines          int64         // of the log at its usual level
	Dials          int64
}

// glimpse is a socket of View.
type glimpse struct {
	Path, Name   string
	Phase        state.Phase
	Acknowledged state.Acknowledged
	Tries        int
	Error        string
}

// lineCounter is a log that nobody reads.
type lineCounter struct{ lines atomic.Int64 }

func (l *lineCounter) Write(p []byte) (int, error) {
	l.lines.Add(int64(bytes.Count(p, []byte("\n"))))
	return len(p), nil
}

func playDaemon() {
	d := &daemon{mouthpiece: newMouthpiece()}
	obeyAll(d.mouthpiece, d.obey)
}

func (d *daemon) obey(o order) (note, error) {
	if d.m == nil && o.Do != "run" {
		return note{}, errors.New("it does not run")
	}
	switch o.Do {
	case "run": // a Manager as in Daemon; done when it is synced
		return note{}, d.run(*o.Daemon)
	case "cpu": // that alone, which costs next to nothing
		return note{Usage: &usage{CPU: processor()}}, nil
	case "usage":
		return note{Usage: d.usage()}, nil
	case "view":
		var n note
		for _, s := range d.m.View().Sockets {
			one := glimpse{Path: s.Path, Phase: s.Phase, Acknowledged: s.Acknowledged, Tries: s.Tries, Error: s.LastError}
			if s.Plugin != nil {
				one.Name = s.Plugin.Name
			}
			n.Sockets = append(n.Sockets, one)
		}
		return n, nil
	case "held": // what the handler holds, and as an error whatever was wrong with its calls (R5)
		return d.h.holds()
	case "stop": // the Manager, after which nothing may be left (S3)
		d.stop()
		err := errors.Join(<-d.ended, goleak.Find(d.before))
		if u := d.usage(); u.Descriptors > 0 {
			err = errors.Join(err, fmt.Errorf("S3: %d descriptors more than before are open", u.Descriptors))
		}
		return note{Usage: d.usage()}, err
	}
	return note{}, errors.New("a daemon cannot do that")
}

func (d *daemon) run(cfg daemonConfig) error {
	d.h = &keeper{say: d.say, quiet: cfg.Quiet, failOne: cfg.FailOne, random: rand.New(rand.NewPCG(cfg.Seed, 1)), held: map[instance]int{}}
	c := Config{
		Roots:       []scanner.Config{{Root: cfg.Root}},
		InfoTimeout: cfg.InfoTimeout, LivenessGrace: cfg.Grace,
		Seed:   cfg.Seed,
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: &d.log}),
		Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
			d.dials.Add(1)
			return dialUnix(ctx, e)
		},
	}
	m, err := NewManager(c)
	if err == nil {
		err = m.AddHandler(testType, d.h)
	}
	if err != nil {
		return err
	}
	d.m = m
	// The first listing opens descriptors of the runtime.
	descriptors()
	d.before, d.open, d.routines = goleak.IgnoreCurrent(), descriptors(), runtime.NumGoroutine()
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background()) //nolint:usetesting // there is no test in this process
	d.ended = make(chan error, 1)
	go func() { d.ended <- m.Run(ctx) }()
	<-m.Synced()
	return nil
}

func (d *daemon) usage() *usage {
	return &usage{
		CPU: processor(),
		RSS: statusBytes("VmRSS"), HighWater: statusBytes("VmHWM"),
		Goroutines: runtime.NumGoroutine() - d.routines, Descriptors: descriptors() - d.open,
		Lines: d.log.lines.Load(), Dials: d.dials.Load(),
	}
}

// instance is what R5 is about: what was registered, as it was recorded.
type instance struct{ path, name, endpoint string }

// keeper is a handler that keeps the accounts of R5.
type keeper struct {
	say     func(note)
	quiet   bool
	failOne int

	mu     sync.Mutex
	random *rand.Rand
	held   map[instance]int
	faults []string
}

func (h *keeper) fails() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failOne > 0 && h.random.IntN(h.failOne) == 0 {
		return errors.New("not today")
	}
	return nil
}

func (h *keeper) count(r state.Registration, by int) {
	i := instance{r.Entry.Path, r.Name, r.Endpoint}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[i] += by; h.held[i] < 0 || h.held[i] > 1 {
		h.faults = append(h.faults, fmt.Sprintf("R5: %+v was registered %+d times more than deregistered", i, h.held[i]))
	}
	if h.held[i] == 0 {
		delete(h.held, i)
	}
}

func (h *keeper) note(what string, r state.Registration) {
	if !h.quiet {
		h.say(note{What: what, Path: r.Entry.Path, Name: r.Name})
	}
}

func (h *keeper) Validate(context.Context, state.Registration) error { return h.fails() }

func (h *keeper) Register(_ context.Context, r state.Registration, _ func(state.Report)) error {
	if err := h.fails(); err != nil {
		return err
	}
	h.count(r, 1)
	h.note("register", r)
	return nil
}

func (h *keeper) Deregister(_ context.Context, r state.Registration) error {
	h.note("deregister", r)
	h.count(r, -1)
	return h.fails()
}

func (h *keeper) holds() (note, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := note{Held: map[string]string{}}
	for i := range h.held {
		n.Held[i.path] = i.name
	}
	var errs []error
	for _, f := range h.faults {
		errs = append(errs, errors.New(f))
	}
	return n, errors.Join(errs...)
}
