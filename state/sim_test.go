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
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

var (
	simSeed   = flag.Uint64("seed", 0, "TestSimulation: run this seed only")
	simEvents = flag.Int("events", 100_000, "TestSimulation: how many inputs the Core gets")
)

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

	plugins map[string]*simPlugin // by path
	paths   []string
	roots   map[string]*simRoot
	late    map[EffectID]func() // ends an effect in flight ahead of its time
	inode   uint64
	tick    time.Time
	inputs  int
	quiet   bool // the world stands still and everything works
	err     error
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

type simRoot struct {
	last    *scanner.Snapshot
	changed time.Time // when something in it last did
	dirty   bool
	failing bool
}

// simPlugin is what is at a path: a socket, and perhaps a plugin that listens on it.
type simPlugin struct {
	id        scanner.Identity
	listens   bool
	kind      simKind
	failures  int // of GetInfo, still to come
	typ, name string
	refuses   bool // its handler says no
}

type simKind int

const (
	simGood simKind = iota
	simSlow
	simHangs
	simNoPlugin
	simBadAnswer
	simNoNotify
	simDeafNotify
	simKinds
)

func newSimulation(seed uint64) *simulation {
	s := &simulation{
		random: rand.New(rand.NewPCG(seed, 7)), now: start, trace: newTrace(),
		plugins: map[string]*simPlugin{}, roots: map[string]*simRoot{}, late: map[EffectID]func(){},
	}
	cfg := Config{Roots: []Root{{Path: "/a"}, {Path: "/b"}}, Seed: seed, DeregisterOnStop: seed%2 == 0}
	if seed%3 != 0 {
		cfg.Probes, cfg.Calls = 8, 4 // so that there are queues
	}
	for _, root := range cfg.Roots {
		s.roots[root.Path] = &simRoot{}
		for n := range 20 {
			s.paths = append(s.paths, fmt.Sprintf("%s/%02d.sock", root.Path, n))
		}
	}
	s.core, s.check = New(cfg), newChecker(cfg)
	for _, root := range fuzzRoots {
		s.after(0, func() { s.scan(root) })
	}
	s.after(0, s.live)
	s.step(HandlerAdded{Type: csi})
	s.after(s.upTo(time.Minute), func() { s.step(HandlerAdded{Type: dra}) })
	return s
}

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d)))
}

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
	if s.steps = append(s.steps, step{s.now, in, out}); len(s.steps) > 4*tail {
		s.steps = slices.Clone(s.steps[len(s.steps)-tail:])
	}
	s.err = errors.Join(s.check.step(s.now, in, out), s.check.core(s.core))
	if s.inputs%16 == 0 {
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
		e := heap.Pop(&s.heap).(simEvent)
		s.now = e.at
		e.do()
	}
}

// live is the world: something happens, and again a little later, with minutes of quiet between.
func (s *simulation) live() {
	if s.quiet {
		return
	}
	for range 1 + s.random.IntN(4) {
		s.change(s.paths[s.random.IntN(len(s.paths))])
	}
	switch n := s.random.IntN(1000); {
	case n == 0:
		s.after(s.upTo(3*time.Minute), s.live)
	case n < 10:
		s.after(s.upTo(5*time.Second), s.live)
	default:
		s.after(s.upTo(60*time.Millisecond), s.live)
	}
	switch s.random.IntN(100) {
	case 0:
		s.step(RetryAsked{})
	case 1, 2:
		s.step(RetryAsked{s.paths[s.random.IntN(len(s.paths))]})
	case 3:
		s.step(Reported{EffectID(1 + s.random.Uint64N(uint64(s.check.lastID)+1)), Report{Health: HealthDown}})
	case 4:
		s.roots[fuzzRoots[s.random.IntN(2)]].failing = true
	}
}

func (s *simulation) change(path string) {
	p := s.plugins[path]
	s.dirty(path)
	if p == nil {
		s.plugins[path] = s.starts(path)
		return
	}
	switch s.random.IntN(10) {
	case 0: // it ends and takes its socket along
		delete(s.plugins, path)
	case 1: // it crashes: the socket stays
		p.listens = false
	case 2, 3, 4: // it is replaced, or starts again at once
		s.plugins[path] = s.starts(path)
	case 5: // it starts again on a filesystem that gives the inode anew
		inode := p.id.Inode
		s.plugins[path] = s.starts(path)
		s.plugins[path].id.Inode = inode
	case 6: // it is renamed
		to := s.paths[s.random.IntN(len(s.paths))]
		delete(s.plugins, path)
		s.plugins[to] = p
		s.dirty(to)
	case 7: // it announces another name from now on
		name := p.name
		s.plugins[path] = s.starts(path)
		s.plugins[path].name = name + "2"
	case 8: // somebody touches it
		s.inode++
		p.id.ChangeTime = int64(s.inode)
	case 9: // it recovers
		p.kind, p.listens, p.refuses, p.failures = simGood, true, false, 0
	}
}

func (s *simulation) dirty(path string) {
	r := s.roots[path[:2]]
	r.dirty, r.changed = true, s.now
}

// starts is a new plugin, more often a good one than not. Some names are announced by several.
func (s *simulation) starts(path string) *simPlugin {
	s.inode++
	p := &simPlugin{id: at(path, s.inode, int64(s.inode)).ID, listens: true, typ: []string{csi, csi, dra}[s.random.IntN(3)]}
	p.name = fmt.Sprint("n", s.random.IntN(12))
	if s.random.IntN(2) == 0 {
		p.kind = simKind(s.random.IntN(int(simKinds)))
		p.refuses = s.random.IntN(4) == 0
	}
	if s.random.IntN(4) == 0 {
		p.failures = 1 + s.random.IntN(6)
	}
	if s.random.IntN(12) == 0 {
		p.typ = "Unknown"
	}
	return p
}

// scan shows a root to the Core, and comes again after 200 ms, or 20 ms for a second after a change (U6).
func (s *simulation) scan(root string) {
	r := s.roots[root]
	in := Scanned{Root: root, Ended: s.now}
	switch {
	case r.failing:
		in.Snapshot, in.Err, r.failing = r.last, errTest, false
	case r.dirty || r.last == nil:
		var entries []scanner.Entry
		for _, path := range s.paths {
			if p := s.plugins[path]; p != nil && path[:2] == root {
				entries = append(entries, scanner.Entry{Path: path, ID: p.id})
			}
		}
		r.last, r.dirty = scanner.NewSnapshot(entries, nil), false
		in.Snapshot = r.last
	default:
		in.Snapshot = r.last
	}
	pause := 200 * time.Millisecond
	if s.now.Sub(r.changed) < time.Second {
		pause = 20 * time.Millisecond
	}
	s.after(pause, func() { s.scan(root) })
	s.step(in)
}

func (s *simulation) do(e Effect) {
	switch e := e.(type) {
	case Ask:
		d, in := s.ask(e)
		s.ends(e.ID, d, in)
	case Notify:
		d, in := s.notify(e)
		s.ends(e.ID, d, in)
	case Validate:
		s.call(e.Op, e.Registration, 40)
	case Register:
		s.call(e.Op, e.Registration, 30)
	case Deregister:
		s.call(e.Op, e.Registration, 0)
	case Cancel:
		// What is cancelled ends soon, in its own way or with an error. Some do not listen.
		if end := s.late[e.ID]; s.random.IntN(5) > 0 {
			s.after(s.upTo(50*time.Millisecond), end)
		}
	}
}

// ends has an effect end after d with what in says then, or sooner if it is cancelled.
func (s *simulation) ends(id EffectID, d time.Duration, in func() Input) {
	end := func() {
		if s.late[id] != nil {
			delete(s.late, id)
			s.step(in())
		}
	}
	s.late[id] = end
	s.after(d, end)
}

// reach is the plugin that a dial finds, if it is the one that was scanned (R15) and listens.
func (s *simulation) reach(e scanner.Entry) (*simPlugin, error) {
	p := s.plugins[e.Path]
	switch {
	case p == nil || p.id.Inode != e.ID.Inode:
		return nil, errors.New("stale")
	case !p.listens:
		return nil, errors.New("connection refused")
	}
	return p, nil
}

func (s *simulation) ask(e Ask) (time.Duration, func() Input) {
	d := time.Millisecond + s.upTo(20*time.Millisecond)
	p, err := s.reach(e.Entry)
	fail := func(err error, failure Failure, connected bool) (time.Duration, func() Input) {
		return d, func() Input { return Asked{ID: e.ID, Err: err, Failure: failure, Connected: connected} }
	}
	if err != nil {
		return fail(err, Refused, false)
	}
	if p.failures > 0 && !s.quiet {
		p.failures--
		return fail(errTest, Transient, s.random.IntN(2) == 0)
	}
	switch p.kind {
	case simSlow:
		d = s.upTo(3 * time.Second)
	case simHangs:
		if !s.quiet {
			d = 10 * time.Second
			return fail(errors.New("deadline exceeded"), Transient, false)
		}
	case simNoPlugin:
		return fail(errTest, Unsupported, s.random.IntN(2) == 0)
	case simBadAnswer:
		return fail(errTest, Permanent, true)
	}
	return d, func() Input { return Asked{ID: e.ID, Info: s.says(e.Path, p), Connected: true} }
}

func (s *simulation) says(path string, p *simPlugin) Info {
	return Info{Type: p.typ, Name: p.name, Endpoint: path, Versions: []string{"1"}}
}

func (s *simulation) notify(e Notify) (time.Duration, func() Input) {
	d := time.Millisecond + s.upTo(10*time.Millisecond)
	in := Notified{ID: e.ID}
	p := s.plugins[e.Path]
	switch {
	case p == nil:
		in.Err = errTest
	case p.kind == simNoNotify:
		in.Err, in.Failure = errTest, Unsupported
	case p.kind == simDeafNotify && !s.quiet:
		in.Err = errors.New("deadline exceeded")
		d = 5 * time.Second
	}
	return d, func() Input { return in }
}

// call is a handler at work. bad is how many calls of a hundred fail.
func (s *simulation) call(op Op, r Registration, bad int) {
	d := s.upTo(30 * time.Millisecond)
	if s.random.IntN(20) == 0 {
		d = s.upTo(4 * time.Second)
	}
	in := Called{ID: op.ID}
	if p := s.plugins[op.Path]; bad > 0 && p != nil && p.refuses && !s.quiet && s.random.IntN(100) < bad {
		in.Err = errTest
		if s.random.IntN(8) == 0 {
			in.Failure = Permanent
		}
	} else if bad == 0 && s.random.IntN(20) == 0 {
		in.Err = errTest
	}
	s.ends(op.ID, d, func() Input { return in })
}

// converge has the world stand still and everything work, and waits until what is there is registered.
func (s *simulation) converge() {
	s.quiet = true
	for _, path := range s.paths {
		if p := s.plugins[path]; p != nil { // whatever it was, a good one is started in its place
			q := s.starts(path)
			q.failures, q.refuses = 0, false
			if q.kind == simBadAnswer {
				q.kind = simGood
			}
			s.plugins[path] = q
			s.dirty(path)
		}
	}
	s.step(HandlerAdded{Type: dra})
	s.run(s.inputs+20_000, s.settled)
	if s.err == nil && !s.settled() {
		s.err = fmt.Errorf("%sit does not converge", story(s.steps))
	}
}

func (s *simulation) settled() bool {
	if s.roots["/a"].dirty || s.roots["/b"].dirty || len(s.check.flights) > 0 {
		return false
	}
	for path, p := range s.plugins {
		m := s.check.paths[path]
		good := p.kind != simNoPlugin && p.typ != "Unknown"
		if m == nil || m.entry.ID != p.id || good != m.current() || good && m.held.ack != AckYes && m.held.ack != AckUnsupported {
			return false
		}
	}
	return len(s.plugins) == len(s.check.paths)
}

// finish converges, removes everything and looks for what is left; or stops in the midst of it.
func (s *simulation) finish(stop bool) {
	if stop {
		s.step(Stopping{})
		s.run(s.inputs+5_000, func() bool { return s.check.stopped && len(s.late) == 0 })
		if s.err == nil && (!s.check.stopped || len(s.check.conns) > 0) {
			s.err = fmt.Errorf("%sstopped: %v, connections: %v", story(s.steps), s.check.stopped, s.check.conns)
		}
		return
	}
	s.converge()
	clear(s.plugins)
	s.dirty("/a")
	s.dirty("/b")
	s.run(s.inputs+20_000, func() bool { return s.settled() && len(s.late) == 0 })
	if l := left(s.core); s.err == nil && (l != "" || len(s.check.conns) > 0) {
		s.err = fmt.Errorf("%ssomething is left: %s\nconnections: %v", story(s.steps), l, s.check.conns)
	}
}

// simTransitions are the changes of phase that a run is to have seen.
var simTransitions = []string{
	"→registering", "→pending", "pending→registering", "pending→",
	"registering→registered", "registering→backoff", "registering→rejected", "registering→ignored", "registering→deregistering", "registering→",
	"registered→registering", "registered→deregistering", "registered→pending",
	"backoff→registering", "backoff→", "rejected→registering", "rejected→", "ignored→registering", "ignored→",
	"deregistering→registering", "deregistering→",
}

// trivial says why a run proves little.
func (s *simulation) trivial() (why []string) {
	n := s.check.counts
	if dials := n["asks"] + n["acknowledges"]; dials*5 < s.inputs {
		why = append(why, fmt.Sprintf("only %d of %d inputs led to a dial", dials, s.inputs))
	}
	for _, transition := range simTransitions {
		if n["phase "+transition] == 0 && (transition != "→pending" && !strings.Contains(transition, "pending") || s.core.cfg.Probes < 64) {
			why = append(why, "no change of phase "+transition)
		}
	}
	for _, kind := range []string{"registered", "replacements", "late successes", "retries", "cancels", "tells"} {
		if n[kind] == 0 {
			why = append(why, "no "+kind)
		}
	}
	return why
}

// simulate runs a seed to its end and returns the hash of all inputs and effects.
func simulate(seed uint64, events int) (*simulation, string) {
	s := newSimulation(seed)
	s.run(events, nil)
	if s.err == nil {
		s.finish(seed%4 == 3 || seed%4 == 2)
	}
	return s, s.trace.String()
}

// TestSimulation is the promise of doc.go over long histories of a whole node. Another seed: go test ./state -run TestSimulation -seed N -events M -v.
func TestSimulation(t *testing.T) {
	seeds, events := []uint64{1, 2, 3, 4}, *simEvents
	switch {
	case *simSeed != 0:
		seeds = []uint64{*simSeed}
	case testing.Short() || raceDetector: // there is one goroutine: nothing to race with
		events = min(events, 10_000)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			began := time.Now()
			s, hash := simulate(seed, events)
			if s.err != nil {
				t.Fatalf("replay it with: go test ./state -run 'TestSimulation' -seed %d -events %d\n%v", seed, events, s.err)
			}
			took := time.Since(began)
			t.Logf("%d inputs in %v (%.0f/s), %v of virtual time, hash %s", s.inputs, took.Round(time.Millisecond), float64(s.inputs)/took.Seconds(), s.now.Sub(start).Round(time.Second), hash)
			for _, key := range slices.Sorted(maps.Keys(s.check.counts)) {
				t.Logf("%8d %s", s.check.counts[key], key)
			}
			if why := s.trivial(); events >= 50_000 && len(why) > 0 {
				t.Errorf("the run was trivial: %s", strings.Join(why, "; "))
			}
		})
	}
}

// TestSimulationReplays: a seed stands for one run, to the last effect.
func TestSimulationReplays(t *testing.T) {
	for seed := range uint64(3) {
		s, a := simulate(100+seed, 5000)
		_, b := simulate(100+seed, 5000)
		if a != b || s.err != nil {
			t.Errorf("seed %d: %s, then %s; %v", 100+seed, a, b, s.err)
		}
	}
}
