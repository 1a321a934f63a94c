package state

import (
	"cmp"
	"container/heap"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

var (
	simSeed   = flag.Uint64("seed", 0, "TestSimulation, TestSimulationOnFiles: run this seed only")
	simEvents = flag.Int("events", 10_000, "TestSimulation: how many inputs the Core gets, of each seed")
	simSoak   = flag.Bool("soak", false, "TestSimulation: run seeds from -seed on until one fails or the test is ended")
)

// simSeeds are how many seeds a run has. Their configurations differ.
const simSeeds = 10

// simulation is a node in virtual time: plugins that come, go and misbehave, scans that show them, and effects that take their time. One heap of events,
// one goroutine, one seed: a run is replayed exactly by its number.
type simulation struct {
	random *rand.Rand
	now    time.Time
	heap   simEventHeap
	order  uint64
	core   *Core
	check  *checker
	trace  trace
	steps  []step // the last ones
	world  simWorld

	plugins map[string]*simPlugin // by path
	paths   []string
	roots   map[string]*simRoot
	late    map[EffectID]func()     // ends an effect in flight ahead of its time
	conns   map[EffectID]*simPlugin // open, by the process at the other end
	handed  map[string]int          // what handlers have registered, by type, name and path
	inode   uint64
	pid     int
	tick    time.Time
	inputs  int
	quiet   bool // the world stands still and everything works
	err     error
}

// simWorld is what a simulation takes place in: where its sockets are and whose, and its time. The simulation itself is one.
type simWorld interface {
	// waitFor lets the time pass until at, and returns what time it is then.
	waitFor(at time.Time) time.Time
	// behind is whose socket is at path. nil: nobody's.
	behind(path string) *simPlugin
	// reach is the plugin that a dial finds.
	reach(e scanner.Entry) (*simPlugin, Failure, error)
	lstat(path string) (scanner.Entry, error)
	rescan(root string)
}

type simEvent struct {
	at    time.Time
	order uint64
	do    func()
}

type simEventHeap []simEvent

func (h simEventHeap) Len() int { return len(h) }
func (h simEventHeap) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}
func (h simEventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *simEventHeap) Push(x any)   { *h = append(*h, x.(simEvent)) }
func (h *simEventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

// simConfig is the configuration of a seed.
func simConfig(seed uint64) Config {
	cfg := Config{Roots: []Root{{Path: "/a"}, {Path: "/b"}}, Seed: seed, DeregisterOnStop: seed%2 == 0, Observe: seed%5 == 0}
	if seed%3 != 0 {
		cfg.Probes, cfg.Calls = 8, 4 // so that there are queues
	}
	if seed%8 == 1 {
		cfg.MaxParked = 2
	}
	cfg.LivenessGrace = []time.Duration{0, 2 * time.Second, 7 * time.Second, -1}[seed/2%4]
	return cfg
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		random: rand.New(rand.NewPCG(seed, 7)), now: start, trace: newTrace(), pid: 100,
		plugins: map[string]*simPlugin{}, roots: map[string]*simRoot{}, late: map[EffectID]func(){}, conns: map[EffectID]*simPlugin{}, handed: map[string]int{},
	}
	s.world = s
	cfg := simConfig(seed)
	for n, root := range cfg.Roots {
		s.roots[root.Path] = &simRoot{kind: []simFS{simFine, simFS(seed % 3)}[n]}
		for n := range 20 {
			s.paths = append(s.paths, fmt.Sprintf("%s/%02d.sock", root.Path, n))
		}
	}
	s.core, s.check = New(cfg), newChecker(cfg)
	for _, root := range fuzzRoots {
		s.after(0, func() { s.scan(root) })
	}
	s.after(0, s.live)
	s.step(HandlerAdded{Type: csi, Exclusive: true})
	s.after(s.upTo(time.Minute), func() { s.step(HandlerAdded{Type: dra}) })
	return s
}

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d)))
}

func (s *simulation) oneIn(n int) bool { return s.random.IntN(n) == 0 }

func (s *simulation) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.heap, simEvent{s.now.Add(d), s.order, do})
}

// step gives the Core an input, has the checker look at what it does, and does it.
func (s *simulation) step(in Input) {
	if s.err != nil {
		return
	}
	s.inputs++
	out := s.core.Step(s.now, in)
	s.trace.add(s.now, in, out)
	if s.steps = append(s.steps, step{s.now, in, out}); len(s.steps) > 4**tail {
		s.steps = slices.Clone(s.steps[len(s.steps)-*tail:])
	}
	s.err = errors.Join(s.check.step(s.now, in, out), s.check.core(s.core))
	if s.inputs%32 == 0 {
		s.err = errors.Join(s.err, s.check.view(s.core.View(s.now)))
	}
	if s.err != nil {
		s.err = fmt.Errorf("%sinput %d: %w", story(s.steps), s.inputs, s.err)
		return
	}
	for _, e := range out {
		s.do(e)
	}
	if at := s.core.Deadline(); !at.Equal(s.tick) {
		if s.tick = at; !at.IsZero() {
			s.after(at.Sub(s.now), func() {
				if s.tick.Equal(at) {
					s.step(Tick{})
				}
			})
		}
	}
}

// run handles events until the Core has had that many inputs, or until done says so.
func (s *simulation) run(inputs int, done func() bool) {
	for s.inputs < inputs && s.err == nil && len(s.heap) > 0 && (done == nil || !done()) {
		s.next()
	}
}

func (s *simulation) next() {
	e := heap.Pop(&s.heap).(simEvent)
	s.now = s.world.waitFor(e.at)
	e.do()
}

func (s *simulation) waitFor(at time.Time) time.Time { return latest(s.now, at) } // the machine may have slept

// converge has the world stand still and everything work, and waits until what is there is registered.
func (s *simulation) converge(anew bool) {
	s.quiet = true
	for _, path := range s.paths {
		p := s.plugins[path]
		if p == nil {
			continue
		}
		if anew { // whatever it was, a good one is started in its place
			s.ends(p, false, 0)
			s.plugins[path] = s.starts(path)
			s.dirty(path)
		}
		s.plugins[path].heal()
	}
	s.step(HandlerAdded{Type: dra})
	s.run(s.inputs+40_000, s.settled)
	if s.err == nil && !s.settled() {
		s.err = fmt.Errorf("%sit does not converge: %s", story(s.steps), s.unsettled())
	}
}

func (s *simulation) settled() bool {
	return len(s.check.flights) == 0 && len(s.late) == 0 && !s.roots["/a"].dirty && !s.roots["/b"].dirty && s.unsettled() == ""
}

// unsettled is what is wrong in a world that stands still.
func (s *simulation) unsettled() string {
	for _, path := range s.paths {
		p, m := s.plugins[path], s.check.paths[path]
		if p == nil && m != nil {
			return path + " is gone, and still there"
		}
		if p != nil {
			if wrong := s.wrong(p, p.id, m); wrong != "" {
				return path + " " + wrong
			}
		}
	}
	return ""
}

// wrong is what is wrong with one socket: who listens is registered, or stands by for one that is and outranks it, or is refused for a reason; who does not is
// not registered, or unreachable and for ever, if that is configured.
func (s *simulation) wrong(p *simPlugin, id scanner.Identity, m *pathModel) string {
	forEver := s.check.grace < 0 || s.check.cfg.Observe
	switch {
	case m == nil:
		return "was not found"
	case m.entry.ID != id:
		return "is taken for another file"
	case !p.listens || p.kind == simNoPlugin || p.kind == simBadAnswer || p.typ == "Unknown":
		if m.held != nil && (!forEver || m.held.since.IsZero()) {
			return "is no plugin and registered"
		}
		return ""
	case m.current() && (!m.held.conn.live() || s.conns[m.held.conn.id] != p || !sameInfo(m.held.info, p.says())):
		return "is registered and another one is there"
	case m.current() && !m.held.since.IsZero():
		return "is unreachable and listens"
	case m.current():
		if !s.check.cfg.Observe && m.held.ack != AckYes && m.held.ack != AckUnsupported {
			return "was not told"
		}
		return ""
	case m.answer != nil && s.check.standing(m) == yes && s.conns[m.answer.conn.id] == p:
		return ""
	case m.refused == unknownType && m.info != nil && !s.check.types[m.info.Type]: // another process has its socket now, which nobody can know (R8)
		return ""
	case m.refused == permanent && m.blocked != nil:
		return ""
	}
	return fmt.Sprintf("listens and is %s: tries %d, next %v, answer %v", m.phase, m.tries, m.next, m.answer)
}

// finish converges, removes everything and looks for what is left; or stops in the midst of it.
func (s *simulation) finish(stop, anew bool) {
	if stop {
		s.step(Stopping{})
		s.run(s.inputs+50_000, func() bool { return s.check.stopped && len(s.late) == 0 })
		if s.err == nil && (!s.check.stopped || len(s.check.conns) > 0) {
			s.err = fmt.Errorf("%sstopped: %v, connections: %v", story(s.steps), s.check.stopped, s.check.conns)
		}
		return
	}
	s.converge(anew)
	for _, path := range s.paths {
		if p := s.plugins[path]; p != nil {
			s.ends(p, true, 0)
		}
	}
	clear(s.plugins)
	s.dirty("/a")
	s.dirty("/b")
	s.run(s.inputs+20_000, func() bool { return s.settled() && len(s.late) == 0 })
	if l := left(s.core); s.err == nil && (l != "" || len(s.check.conns) > 0) {
		s.err = fmt.Errorf("%ssomething is left: %s\nconnections: %v", story(s.steps), l, s.check.conns)
	}
	for what, n := range s.handed {
		if n != 0 && s.err == nil {
			s.err = fmt.Errorf("%s%s was registered %d times more often than deregistered (R5)", story(s.steps), what, n)
		}
	}
}

// simTransitions are the changes of phase that a run of all seeds is to have seen.
var simTransitions = []string{
	"→registering", "→pending", "pending→registering", "pending→",
	"registering→registered", "registering→backoff", "registering→rejected", "registering→ignored", "registering→deregistering", "registering→",
	"registering→standby", "registering→observed",
	"registered→registering", "registered→deregistering", "registered→pending", "registered→unreachable",
	"unreachable→registered", "unreachable→deregistering", "unreachable→registering", "unreachable→observed",
	"observed→unreachable", "observed→registering", "observed→",
	"standby→registering", "standby→rejected", "standby→",
	"backoff→registering", "backoff→", "rejected→registering", "rejected→", "ignored→registering", "ignored→",
	"deregistering→registering", "deregistering→standby", "deregistering→backoff", "deregistering→",
}

// simKindsOfEvents are what a run of all seeds is to have seen besides.
var simKindsOfEvents = []string{
	"registered", "replacements", "late successes", "retries", "cancels", "tells", "adopted by stamps", "changed during an ask", "fresh starts after an ask", "doubts",
	"looks", "looks that were older", "looks that found another", "looks that found nothing", "rescans", "stale asks that failed", "disconnected strangers",
	"standbys disconnected", "spaced checks", "another process answered", "same instance over a new connection", "reached again", "takeovers", "takeovers refused",
	"demotions", "evictions", "parked",
}

// simulate runs a seed to its end and returns the hash of all inputs and effects.
func simulate(seed uint64, events int) (*simulation, string) {
	s := newSimulation(seed)
	stop := seed%4 >= 2
	if stop {
		events += s.random.IntN(1 + events/10)
	}
	s.run(events, nil)
	if s.err == nil {
		s.finish(stop, seed%8 < 4)
	}
	return s, s.trace.String()
}

// simCounts is what the seeds of a run have seen.
type simCounts struct {
	mu sync.Mutex
	of map[string]int
}

// simRun runs one seed and adds what it has seen to counts.
func simRun(t *testing.T, seed uint64, events int, counts *simCounts) {
	began := time.Now()
	s, hash := simulate(seed, events)
	if s.err != nil {
		t.Fatalf("replay it with: go test ./state -run '^TestSimulation$' -seed %d -events %d\n%v", seed, events, s.err)
	}
	took := time.Since(began)
	t.Logf("%d inputs in %v (%.0f/s), %v of virtual time, hash %s", s.inputs, took.Round(time.Millisecond), float64(s.inputs)/took.Seconds(), s.now.Sub(start).Round(time.Second), hash)
	counts.mu.Lock()
	defer counts.mu.Unlock()
	counts.of["inputs"] += s.inputs
	for what, n := range s.check.counts {
		counts.of[what] += n
	}
}

// TestSimulation is the promise of doc.go over long histories of a whole node. Another seed: go test ./state -run TestSimulation -seed N -events M -v.
func TestSimulation(t *testing.T) {
	events := *simEvents
	if testing.Short() || raceDetector { // there is one goroutine: nothing to race with
		events = min(events, 2_000)
	}
	seen := simCounts{of: map[string]int{}}
	if *simSoak {
		for seed := max(1, *simSeed); ; seed++ {
			simRun(t, seed, events, &seen)
		}
	}
	if *simSeed != 0 {
		simRun(t, *simSeed, events, &seen)
	} else {
		t.Run("seeds", func(t *testing.T) { // each has one goroutine and shares nothing with the others
			for seed := range uint64(simSeeds) {
				t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
					t.Parallel()
					simRun(t, seed+1, events, &seen)
				})
			}
		})
	}
	counts := seen.of
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[what], what)
	}
	if counts["inputs"] < 500_000 { // the ends of short runs, where little happens, weigh too much
		return
	}
	if counts["asks"]*5 < counts["inputs"] {
		t.Errorf("only %d of %d inputs led to a dial", counts["asks"], counts["inputs"])
	}
	var missing []string
	for _, transition := range simTransitions {
		if counts["phase "+transition] == 0 {
			missing = append(missing, transition)
		}
	}
	for _, what := range simKindsOfEvents {
		if counts[what] == 0 {
			missing = append(missing, what)
		}
	}
	if len(missing) > 0 {
		t.Errorf("the run was trivial: it has not seen %s", strings.Join(missing, ", "))
	}
}

// TestSimulationReplays: a seed stands for one run, to the last effect.
func TestSimulationReplays(t *testing.T) {
	for seed := range uint64(5) {
		s, a := simulate(100+seed, 2000)
		_, b := simulate(100+seed, 2000)
		if a != b || s.err != nil {
			t.Errorf("seed %d: %s, then %s; %v", 100+seed, a, b, s.err)
		}
	}
}

// scan shows a root to the Core, and comes again after 200 ms, or 20 ms for a second after a change (U6).
func (s *simulation) scan(root string) {
	r := s.roots[root]
	in := Scanned{Root: root, Started: s.now}
	in.Snapshot, in.Err = r.look(s, root)
	r.running = true
	d := s.upTo(time.Millisecond)
	if s.oneIn(50) && !s.quiet {
		d = s.upTo(150 * time.Millisecond)
	}
	s.after(d, func() {
		in.Ended = s.now
		r.running = false
		pause := 200 * time.Millisecond
		if s.now.Sub(r.changed) < time.Second {
			pause = 20 * time.Millisecond
		}
		s.scanIn(root, pause)
		s.step(in)
	})
}

// scanIn plans the next scan of a root.
func (s *simulation) scanIn(root string, pause time.Duration) {
	r := s.roots[root]
	r.plan++
	plan := r.plan
	s.after(pause, func() {
		if r.plan == plan && !r.running {
			s.scan(root)
		}
	})
}

// look is one scan of a root. It fails sometimes, as a whole or in parts, and then shows what it showed before, marked stale.
func (r *simRoot) look(s *simulation, root string) (*scanner.Snapshot, error) {
	var err error
	var unseen func(path string) bool
	if !s.quiet {
		switch s.random.IntN(120) {
		case 0:
			return nil, errTest
		case 1:
			err, unseen = errTest, func(string) bool { return true }
		case 2:
			n := s.random.IntN(8)
			unseen = func(path string) bool { return int(path[len(path)-len("0.sock")])%8 == n }
		}
	}
	if !r.dirty && r.last != nil && unseen == nil && !r.stale {
		return r.last, nil
	}
	r.dirty, r.stale = unseen != nil, false
	var entries []scanner.Entry
	for _, path := range s.paths {
		if path[:2] != root {
			continue
		}
		before, had := r.last.At(path)
		switch p := s.plugins[path]; {
		case had && unseen != nil && unseen(path):
			if before.Stale == nil {
				before.Stale = &scanner.Stale{Since: s.now, Err: errTest}
			}
			entries, r.stale = append(entries, before), true
		case p != nil && (unseen == nil || !unseen(path)):
			entries = append(entries, scanner.Entry{Path: path, ID: p.id})
		}
	}
	if next := scanner.NewSnapshot(entries, nil); r.last == nil || !slices.Equal(entries, slices.Collect(r.last.All())) {
		r.last = next
	}
	return r.last, err
}
