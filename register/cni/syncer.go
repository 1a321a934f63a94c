package cni

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gocni "github.com/containerd/go-cni"
	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/register/internal/stream"
	"github.com/plugpoll/plugpoll/scanner"
)

// Syncer keeps one go-cni instance equal to what is in its directory. Make one with New. All methods are safe for concurrent use.
type Syncer struct {
	cfg     Config
	log     hclog.Logger
	scanner *scanner.Scanner
	metrics *metrics
	synced  chan struct{}
	poke    chan struct{} // there may be something to do
	current atomic.Pointer[gocni.CNI]
	// status is askStatus and make is instance, except where a test has them do as it says.
	status func(ctx context.Context, dirs []string, networks []network) error
	make   func(networks []network, o instanceOptions) (gocni.CNI, error)

	mu      sync.Mutex // guards what follows; nothing is waited for under it
	core    *core
	mail    []any // inputs and requests for Run, in order
	readers map[*stream.Reader[Event]]struct{}
	running bool
	ended   bool
}

// New checks cfg and returns a Syncer that has done nothing yet. It touches no filesystem.
func New(cfg Config) (*Syncer, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	log := cfg.Logger.Named("cni")
	if cfg.Name != "" {
		log = log.With("handler", loggable(cfg.Name))
	}
	sc, err := scanner.New(scanner.Config{
		FS: cfg.FS, Root: cfg.ConfDir, Interval: cfg.Interval, Logger: log.Named("scanner"),
		// What is gone is gone at the second look: Grace says how long that may do no harm.
		Select: scanner.Files(extensions...), MaxDepth: 1, RootGrace: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("cni: %w", err)
	}
	return &Syncer{
		cfg: cfg, log: log, scanner: sc,
		metrics: &metrics{},
		synced:  make(chan struct{}),
		poke:    make(chan struct{}, 1),
		status:  askStatus,
		make:    instance,
		core:    newCore(cfg),
		readers: map[*stream.Reader[Event]]struct{}{},
	}, nil
}

// CNI returns the newest instance that could be made: nil before there was one, and never nil after. It stays the last good one while what is on disk cannot be
// used, or is gone, so that pods can be removed (CN6, CN7, CN8): LastStatus says whether pods should be set up. It waits for nothing. Ask at each Setup, and
// keep what set a pod up for its Remove: one whose network has another name cannot remove it.
func (s *Syncer) CNI() gocni.CNI {
	if instance := s.current.Load(); instance != nil {
		return *instance
	}
	return nil
}

// LastStatus returns nil if pods can be set up, else a *NotReadyError (CN13). It asks nobody.
func (s *Syncer) LastStatus() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.status()
}

// Status looks for the plugins and asks them for their STATUS now, and returns what LastStatus does after that (CN12). If Run does not run, or no network is in
// use, nobody is asked. An asking that runs already is waited for, since there is one at a time. Its error is that of ctx if that ends first; the asking goes on.
func (s *Syncer) Status(ctx context.Context) error {
	done := make(chan struct{})
	s.mu.Lock()
	if !s.running {
		defer s.mu.Unlock()
		return s.core.status()
	}
	s.postLocked(statusWanted{ctx, done})
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return fmt.Errorf("cni: the plugins have not answered: %w", context.Cause(ctx))
	case <-done:
	}
	return s.LastStatus()
}

// View returns what there is to see now (CN13): an empty one before Run, the last one after it.
func (s *Syncer) View() View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.show(time.Now())
}

// Synced returns a channel that closes once it was decided what the directory comes to, be it that it is not there. It stays open if Run ends before.
func (s *Syncer) Synced() <-chan struct{} { return s.synced }

// Retry has the directory polled and the plugins looked for and asked now, whatever the pauses. Once Run has ended it does nothing.
func (s *Syncer) Retry() { s.post(retryAsked{}) }

// statusWanted is a Status that waits until its plugins were asked.
type statusWanted struct {
	ctx  context.Context
	done chan struct{}
}

// post hands something to Run's loop. It never blocks; what comes after Run has ended is dropped.
func (s *Syncer) post(mail any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.postLocked(mail)
}

func (s *Syncer) postLocked(mail any) {
	if s.ended {
		return
	}
	if _, ok := mail.(retryAsked); ok && len(s.mail) > 0 && s.mail[len(s.mail)-1] == mail {
		return // somebody who asks in a loop must not fill the memory
	}
	s.mail = append(s.mail, mail)
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

func (s *Syncer) takeMail() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	mail := s.mail
	s.mail = nil
	return mail
}

// begin marks the one run of a Syncer.
func (s *Syncer) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || s.ended {
		return errors.New("cni: Run was called twice: make another Syncer")
	}
	s.running = true
	return nil
}

// end lets the readers of Events go, and whoever has asked for a Status since the mail was last taken.
func (s *Syncer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mail := range s.mail {
		if late, ok := mail.(statusWanted); ok {
			close(late.done)
		}
	}
	s.running, s.ended, s.mail = false, true, nil
	for r := range s.readers {
		r.Finish()
	}
}

// StuckError is returned by Run when something did not end in time after its context had. What it lists still runs.
type StuckError struct {
	// Calls says, one each, what is stuck and where.
	Calls []string
}

// Error lists the calls.
func (e *StuckError) Error() string {
	return "cni: stopped, but what follows did not end: " + strings.Join(e.Calls, "; ")
}
