package state

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// The constants of the engine. Each is a promise of the contract, not a knob.
const (
	defaultProbes  = 64                     // R11
	defaultCalls   = 16                     // R11
	defaultParked  = 1024                   // R11
	evictAge       = 20 * time.Millisecond  // R11: how long a probe has its place for certain
	evictAgeAlways = time.Second            // and how long even if others get on
	parkAge        = 250 * time.Millisecond // R11: how long a handler call keeps its place
	defaultGrace   = 30 * time.Second       // L2
	lookPause      = 20 * time.Millisecond  // between two looks at one path: as scans at the eager pace (U6)
	goneGrace      = 100 * time.Millisecond // how long a dial waits for the scan that is to confirm what a look did not find (L1)
	redialPause    = time.Second            // L2: before the second redial, doubling
	redialCap      = time.Minute            // L2
	replaceGrace   = 2 * time.Second        // R6: how long a new instance may take to answer before the old one is deregistered
	askAgain       = 10 * time.Minute       // R13
	listenGrace    = 50 * time.Millisecond  // R10: how long after its first refusal a new instance is dialled again
	stampReset     = 5 * time.Second        // R12: how often stamps alone may reset the backoff
	maxMessage     = 1024                   // R3, bytes
	maxTypeShown   = 256                    // bytes of a plugin type in a message, so that there is room for what matters
)

// Config is what a Core starts with.
type Config struct {
	// Roots are the directories whose scans will come.
	Roots []Root
	// Probes and Calls are how many dials and how many handler calls run at once. 0: 64 and 16 (R11).
	Probes, Calls int
	// MaxParked is how many handler calls may run on without a place, because they take long. 0: 1024 (R11).
	MaxParked int
	// LivenessGrace is how long a registered plugin may be unreachable before it is deregistered. 0: 30 s; negative: for ever (L2).
	LivenessGrace time.Duration
	// Observe has plugins asked and validated, and neither registered nor told anything (R18).
	Observe bool
	// DeregisterOnStop has everything deregistered after Stopping (S2).
	DeregisterOnStop bool
	// Seed of the jitter. Two Cores with one Seed and the same inputs give the same effects.
	Seed uint64
}

// Root is a scanned directory.
type Root struct {
	Path string
	// Filesystem is what View shows of it before the first scan.
	Filesystem string
}

// Core is the state machine. It is not safe for concurrent use.
type Core struct {
	cfg     Config
	now     time.Time
	random  *rand.Rand
	roots   []*root
	sockets map[string]*socket
	known   map[string]bool // types with a handler, and whether it is exclusive (N2)

	lastID     EffectID
	generation uint64
	flights    map[EffectID]*flight // effects whose result is awaited
	reserved   map[name]bool        // names with a handler call (R7)
	waiting    map[name][]*socket   // sockets that want a call for a reserved name
	reporting  map[EffectID]*socket // by the Register whose handler may report
	links      map[EffectID]*socket // whose the open connections are
	members    map[name]*rivals     // who has, or wants, an exclusive name (N2)
	seen       uint64               // numbers the scans and looks that show something new, for ranks

	probes, calls slots
	probing       running
	stall         stall
	calling       running // those that are not parked
	parked        int
	alarms        alarms
	dirty         []*socket
	out           []Effect

	unscanned, untried int // what Synced still waits for
	synced             bool
	stopping, stopped  bool

	version, viewed uint64
	view            []SocketView
}

// New returns a Core that knows nothing yet.
func New(cfg Config) *Core {
	if cfg.Probes <= 0 {
		cfg.Probes = defaultProbes
	}
	if cfg.Calls <= 0 {
		cfg.Calls = defaultCalls
	}
	if cfg.MaxParked <= 0 {
		cfg.MaxParked = defaultParked
	}
	if cfg.LivenessGrace == 0 {
		cfg.LivenessGrace = defaultGrace
	}
	c := &Core{
		cfg:       cfg,
		random:    rand.New(rand.NewPCG(cfg.Seed, 0)),
		sockets:   map[string]*socket{},
		known:     map[string]bool{},
		flights:   map[EffectID]*flight{},
		reserved:  map[name]bool{},
		waiting:   map[name][]*socket{},
		reporting: map[EffectID]*socket{},
		links:     map[EffectID]*socket{},
		members:   map[name]*rivals{},
		probes:    slots{size: cfg.Probes, queued: func(s *socket) *ticket { return &s.probeTicket }},
		calls:     slots{size: cfg.Calls, queued: func(s *socket) *ticket { return &s.callTicket }},
	}
	for _, r := range cfg.Roots {
		c.roots = append(c.roots, &root{Root: r})
	}
	c.unscanned = len(c.roots)
	return c
}

// Step takes one input at the time now and returns what is to be done, in order. now must not go back.
func (c *Core) Step(now time.Time, in Input) []Effect {
	c.now, c.out = now, nil
	for s := range c.alarms.due(now) {
		c.touch(s)
	}
	switch in := in.(type) {
	case Scanned:
		c.scanned(in)
	case Looked:
		c.looked(in)
	case HandlerAdded:
		c.handlerAdded(in)
	case Disconnected:
		c.disconnected(in)
	case Asked:
		c.asked(in)
	case Called:
		c.called(in)
	case Notified:
		c.notified(in)
	case Reported:
		c.reported(in)
	case RetryAsked:
		c.retryAsked(in)
	case Stopping:
		c.stop()
	case Tick:
	}
	c.settle()
	return c.out
}

// Deadline is when Step wants a Tick. Zero: never.
func (c *Core) Deadline() time.Time {
	at := c.roomAt()
	if first := c.alarms.first(); !c.stopping && (at.IsZero() || !first.IsZero() && first.Before(at)) {
		at = first
	}
	return at
}

// Knows reports whether there is a socket at path.
func (c *Core) Knows(path string) bool { return c.sockets[path] != nil }

// Held returns the paths of what a handler holds, sorted: also where another instance is at the path by now.
func (c *Core) Held() []string {
	var paths []string
	for _, s := range c.sockets {
		if s.registered != nil && !s.registered.observed {
			paths = append(paths, s.path)
		}
	}
	slices.Sort(paths)
	return paths
}

// settle gives every socket that something happened to what it needs now, until nothing is left to give.
func (c *Core) settle() {
	for more := true; more; more = c.makeRoom() || len(c.dirty) > 0 {
		dirty := c.dirty
		c.dirty = nil
		for _, s := range dirty {
			s.dirty = false
			c.advance(s)
		}
		for s := range c.calls.grant() {
			c.startCall(s)
		}
		for s := range c.probes.grant() {
			c.startProbe(s)
		}
	}
	if !c.synced && c.unscanned == 0 && c.untried == 0 {
		c.synced = true
		c.emit(Debug, Event{Kind: EventSynced})
		c.do(Synced{})
	}
	if c.stopping && !c.stopped && len(c.flights) == 0 {
		c.stopped = true
		c.hangUp()
		c.do(Stopped{})
	}
}

// hangUp closes what is still open at the end.
func (c *Core) hangUp() {
	for _, s := range c.sorted() {
		if s.answer != nil {
			c.hang(s.answer)
		}
		if s.telling != nil {
			c.close(s.telling.conn)
			s.telling.conn = 0
		}
		if s.registered != nil {
			c.hang(s.registered.said)
		}
	}
}

// touch has s looked at by settle.
func (c *Core) touch(s *socket) {
	for _, key := range s.enrolled {
		if r := c.members[key]; r != nil {
			r.judged = false
		}
	}
	if s.dirty || s.deleted {
		return
	}
	s.dirty = true
	c.dirty = append(c.dirty, s)
}

func (c *Core) do(e Effect) { c.out = append(c.out, e) }

// fly numbers an effect and keeps it until its result comes.
func (c *Core) fly(s *socket, k kind) *flight {
	c.lastID++
	f := &flight{id: c.lastID, kind: k, socket: s, generation: s.generation, began: c.now}
	c.flights[f.id] = f
	return f
}

func (f *flight) op() Op { return Op{ID: f.id, Generation: f.generation, Path: f.socket.path} }

// land takes the effect whose result has come out of the air. nil: the result is of an effect that is no longer awaited.
func (c *Core) land(id EffectID) *flight {
	f := c.flights[id]
	delete(c.flights, id)
	if f != nil {
		f.over = true
	}
	return f
}

// hang closes the connection of an answer.
func (c *Core) hang(a *answer) {
	c.close(a.conn)
	a.conn = 0
}

func (c *Core) close(conn EffectID) {
	if conn != 0 {
		delete(c.links, conn)
		c.do(Close{conn})
	}
}

func (c *Core) types() []string {
	types := slices.AppendSeq([]string{}, maps.Keys(c.known)) // never nil: JSON has []
	slices.Sort(types)
	return types
}

func (c *Core) handlerAdded(in HandlerAdded) {
	c.known[in.Type] = in.Exclusive
	for _, s := range c.sorted() {
		// An instance that only changed its stamps has not said its type anew.
		if s.refused == unknownType && (s.info == nil || s.info.Type == in.Type) {
			s.wake(c.now)
			c.touch(s)
		}
	}
}

func (c *Core) retryAsked(in RetryAsked) {
	wanted := []*socket{c.sockets[in.Path]}
	if in.Path == "" {
		wanted = c.sorted()
	}
	for _, s := range wanted {
		if s != nil {
			s.wake(c.now)
			s.spent = false
			c.touch(s)
		}
	}
}

func (c *Core) reported(in Reported) {
	s := c.reporting[in.ID]
	if s == nil {
		return
	}
	r := in.Report
	if r.Health == "" {
		r.Health = HealthUnknown
	}
	s.report = &ReportView{Time: c.now, Health: r.Health, Message: scanner.Clean(r.Message, maxMessage), Detail: r.Detail}
	c.version++
	e := s.event(EventReport)
	e.Report, e.Error, e.Tries, e.NextTry = s.report, "", 0, time.Time{}
	c.emit(Debug, e)
}

// stop gives up every probe and cancels handler calls. Calls that run are still waited for: only the shell knows how long.
func (c *Core) stop() {
	c.stopping = true
	for _, s := range c.sorted() {
		c.dropProbe(s)
		c.dropLook(s)
		c.touch(s)
		if s.call != nil && (s.call.kind != deregister || !c.cfg.DeregisterOnStop) {
			c.cancelCall(s)
		}
	}
}

// sorted returns the sockets in the order of their paths, so that what a Core does depends on its inputs alone.
func (c *Core) sorted() []*socket {
	return slices.SortedFunc(maps.Values(c.sockets), func(a, b *socket) int { return compare(a.path, b.path) })
}
