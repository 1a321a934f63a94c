package register

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/plugpoll/plugpoll/register/internal/stream"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// Manager keeps the set of registered plugins equal to what is in its directories: scanners, core and worker pool in one. Make one with NewManager.
// All methods are safe for concurrent use.
type Manager struct {
	cfg     Config
	log     hclog.Logger
	client  speaker
	files   *files
	dials   *dials
	metrics *metrics
	roots   []*watched
	synced  chan struct{}
	poke    chan struct{} // there may be something to do

	mu       sync.Mutex // guards what follows; nothing is waited for under it
	core     *state.Core
	handlers map[string]Handler
	mail     []any                  // inputs and requests for Run, in order
	reports  map[state.EffectID]int // where in mail a Register's report is
	conns    map[state.EffectID]*connection
	readers  map[*stream.Reader[state.Event]]struct{}
	began    time.Time // when Run did; zero: it has not
	running  bool
	ended    bool
}

// watched is a root and its next scan. Only Run's goroutine touches it.
type watched struct {
	scanner *scanner.Scanner
	path    string
	pace    scanner.Pace
	last    *scanner.Snapshot
	ended   time.Time // the last scan
	took    time.Duration
	next    time.Time
	busy    bool
	again   bool // somebody asked for a scan at once while one was running
	soon    bool // likewise, for one at the eager pace
}

// NewManager checks cfg and returns a Manager that has done nothing yet. It touches no filesystem.
func NewManager(cfg Config) (*Manager, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	m := &Manager{
		cfg:      cfg,
		log:      cfg.Logger.Named("manager"),
		files:    &files{},
		dials:    &dials{},
		metrics:  newMetrics(),
		synced:   make(chan struct{}),
		poke:     make(chan struct{}, 1),
		handlers: map[string]Handler{},
		reports:  map[state.EffectID]int{},
		conns:    map[state.EffectID]*connection{},
		readers:  map[*stream.Reader[state.Event]]struct{}{},
	}
	m.dials.freed = m.wake
	m.client = client{cfg, m.files, m.dials}
	coreCfg := state.Config{DeregisterOnStop: cfg.DeregisterOnStop, Observe: cfg.Observe, LivenessGrace: cfg.LivenessGrace, Seed: cfg.Seed}
	if coreCfg.Seed == 0 {
		coreCfg.Seed = rand.Uint64()
	}
	for _, r := range cfg.Roots {
		if r.Logger == nil {
			r.Logger = cfg.Logger.Named("scanner")
		}
		s, err := scanner.New(r)
		if err != nil {
			return nil, err
		}
		m.roots = append(m.roots, &watched{scanner: s, path: r.Root, pace: scanner.Pace{Interval: r.Interval}})
		coreCfg.Roots = append(coreCfg.Roots, state.Root{Path: r.Root, Filesystem: s.Filesystem()})
	}
	m.core = state.New(coreCfg)
	return m, nil
}

// AddHandler makes h the handler of a plugin type, before or while Run runs. Sockets that wait for the type are tried at once (R8).
// An empty type, a nil handler or a second handler for a type is an error. Once Run has ended h is never called.
func (m *Manager) AddHandler(pluginType string, h Handler) error {
	switch {
	case pluginType == "":
		return errors.New("register: AddHandler: the plugin type is empty")
	case h == nil:
		return fmt.Errorf("register: AddHandler: the handler for %q is nil", pluginType)
	}
	added := state.HandlerAdded{Type: pluginType}
	if e, ok := h.(interface{ Exclusive() bool }); ok {
		added.Exclusive = e.Exclusive()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handlers[pluginType] != nil {
		return fmt.Errorf("register: AddHandler: there is a handler for %q already", pluginType)
	}
	m.handlers[pluginType] = h
	m.metrics.known(pluginType)
	if !m.running && !m.ended {
		m.core.Step(time.Now(), added) // nothing was scanned yet, so there is nothing to do
		return nil
	}
	m.postLocked(added)
	return nil
}

// Synced returns a channel that closes once every root was scanned and everything those scans found was tried (O3). It stays open if Run ends before.
func (m *Manager) Synced() <-chan struct{} { return m.synced }

// View returns what there is to see now (O2): an empty one before Run, the last one after it.
func (m *Manager) View() state.View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.core.View(time.Now())
}

// Retry has the socket at path tried now, whatever its backoff. The empty path means every socket, and every root is scanned now too.
// An unknown path is an *Error that wraps ErrUnknownPath. Once Run has ended it does nothing.
func (m *Manager) Retry(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if path != "" && !m.core.Knows(path) {
		return &Error{Verb: "retry", Path: path, Err: ErrUnknownPath}
	}
	m.postLocked(state.RetryAsked{Path: path})
	return nil
}

// post hands something to Run's loop. It never blocks; what comes after Run has ended is dropped, and false returned.
func (m *Manager) post(mail any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.postLocked(mail)
}

func (m *Manager) postLocked(mail any) bool {
	if m.ended {
		return false
	}
	if r, ok := mail.(state.Reported); ok {
		// The last report counts. A handler that reports in a loop must not fill the memory.
		if at, ok := m.reports[r.ID]; ok {
			m.mail[at] = mail
			return true
		}
		m.reports[r.ID] = len(m.mail)
	}
	m.mail = append(m.mail, mail)
	m.wake()
	return true
}

// wake has Run's loop see what there is to do.
func (m *Manager) wake() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

func (m *Manager) takeMail() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail
	m.mail = nil
	clear(m.reports)
	return mail
}

// begin marks the one run of a Manager.
func (m *Manager) begin() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running || m.ended {
		return errors.New("register: Run was called twice: make another Manager")
	}
	m.running, m.began = true, time.Now()
	m.files.limit(fileLimit(), len(m.roots))
	return nil
}

// end closes what is left open and lets the readers of Events go.
func (m *Manager) end() {
	m.mu.Lock()
	m.running, m.ended = false, true
	conns := m.conns
	m.conns = nil
	for s := range m.readers {
		s.Finish()
	}
	m.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // not under the mutex: gRPC waits for its reader, which may be waiting to tell of an end
	}
}

// bring hands over the result of an Ask with the connection it opened, which is stored under the effect's number. Should the connection end by itself, that
// is told once, and not before the result (L1). If Run has ended it is closed.
func (m *Manager) bring(result done, conn *connection) {
	m.mu.Lock()
	id := result.id
	kept := m.postLocked(result)
	if kept {
		m.conns[id] = conn
		over, goAway := conn.raw.watch(func(goAway bool) { m.post(state.Disconnected{Conn: id, GoAway: goAway}) })
		if over {
			m.postLocked(state.Disconnected{Conn: id, GoAway: goAway})
		}
	}
	m.mu.Unlock()
	if !kept {
		_ = conn.Close()
	}
}

func (m *Manager) conn(id state.EffectID) *connection {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conns[id]
}

func (m *Manager) drop(id state.EffectID) {
	m.mu.Lock()
	conn := m.conns[id]
	delete(m.conns, id)
	m.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}
