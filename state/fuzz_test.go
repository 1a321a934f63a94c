package state

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// history makes inputs of bytes and steps a Core and its checker with them.
type history struct {
	data  []byte
	core  *Core
	check *checker
	now   time.Time
	world map[string]map[string]scanner.Entry // what is there, by root and path; stale: what a scan cannot see
	scans map[string]*Scanned                 // that are under way
	last  map[string]*scanner.Snapshot
	done  []EffectID // whose result was given
	inode uint64
	err   error

	exclusive bool
	steps     []step
}

// step is one Step, kept for the message of a failure.
type step struct {
	now time.Time
	in  Input
	out []Effect
}

// story tells the last steps.
func story(steps []step) string {
	var b strings.Builder
	for _, s := range steps[max(0, len(steps)-*tail):] {
		fmt.Fprintf(&b, "%v  %s\n", s.now.Sub(start), describe(s.in))
		for _, e := range s.out {
			fmt.Fprintf(&b, "      → %s\n", describe(e))
		}
	}
	return b.String()
}

// tail is how many steps of a history a failure shows.
var tail = flag.Int("tail", 25, "how many steps a failure of the simulation or of a history shows")

var (
	fuzzRoots = []string{"/a", "/b"}
	fuzzPaths = []string{"1.sock", "2.sock", "3.sock", "4.sock"}
	fuzzTypes = []string{csi, dra, "Unknown"}
	fuzzNames = []string{"x", "y", "z"}
	pauses    = []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 150 * time.Millisecond, 250 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 5 * time.Second, 130 * time.Second, 11 * time.Minute}
)

func (h *history) byte() byte {
	if len(h.data) == 0 {
		return 0
	}
	b := h.data[0]
	h.data = h.data[1:]
	return b
}

func (h *history) pick(n int) int { return int(h.byte()) % n }

func (h *history) step(in Input) {
	if h.err != nil {
		return
	}
	out := h.core.Step(h.now, in)
	h.steps = append(h.steps, step{h.now, in, out})
	h.err = errors.Join(h.check.step(h.now, in, out), h.check.core(h.core), h.check.view(h.core.View(h.now)))
	if h.err != nil {
		h.err = fmt.Errorf("%s%w", story(h.steps), h.err)
	}
}

// scan ends the scan that is under way, or else makes one.
func (h *history) scan(root string) {
	in := h.scans[root]
	if in == nil {
		in = h.begin(root)
	}
	delete(h.scans, root)
	in.Ended = h.now
	h.last[root] = in.Snapshot
	h.step(*in)
}

// begin is a scan that sees the world as it is now. What it cannot see it shows as the one before did.
func (h *history) begin(root string) *Scanned {
	var entries []scanner.Entry
	for path, e := range h.world[root] {
		before, had := h.last[root].At(path)
		switch {
		case e.Stale == nil:
			entries = append(entries, e)
		case had:
			before.Stale = e.Stale
			entries = append(entries, before)
		}
	}
	return &Scanned{Root: root, Snapshot: scanner.NewSnapshot(entries, nil), Started: h.now}
}

// inFlight are the effects that may get a result, also those given up.
func (h *history) inFlight() []*flightModel {
	all := slices.AppendSeq(slices.Collect(maps.Values(h.check.flights)), maps.Values(h.check.dropped))
	slices.SortFunc(all, func(a, b *flightModel) int { return int(a.id) - int(b.id) })
	return all
}

// next is one input, or a change of the world.
func (h *history) next() {
	switch op := h.pick(40); {
	case op < 7:
		h.change()
	case op < 9:
		root := fuzzRoots[h.pick(2)]
		in := Scanned{Root: root, Snapshot: h.last[root], Started: h.now, Ended: h.now}
		if op == 8 {
			in.Snapshot, in.Err = nil, errTest
		}
		if h.scans[root] == nil { // one at a time
			h.step(in)
		}
	case op < 10:
		h.handler(h.pick(2))
	case op < 26:
		if all := h.inFlight(); len(all) > 0 {
			h.end(all[h.pick(len(all))], h.byte())
		}
	case op < 27:
		h.stray()
	case op < 29:
		root := fuzzRoots[h.pick(2)]
		h.step(RetryAsked{[]string{"", root + "/" + fuzzPaths[h.pick(4)], "/nowhere"}[h.pick(3)]})
	case op < 33:
		h.pause(pauses[h.pick(len(pauses))], op == 32)
	case op < 34:
		h.step(Reported{ID: EffectID(h.byte()), Report: Report{Health: HealthServing, Message: "fine"}})
	case op < 38:
		h.disconnect()
	case op < 39:
		if root := fuzzRoots[h.pick(2)]; h.scans[root] == nil {
			h.scans[root] = h.begin(root)
		}
	default:
		if h.byte() == 0xff {
			h.step(Stopping{})
		}
	}
}

// handler adds the handler of a type. The first type is exclusive in half of the histories.
func (h *history) handler(n int) {
	h.step(HandlerAdded{Type: fuzzTypes[n], Exclusive: n == 0 && h.exclusive})
}

// disconnect ends one of the connections, or one that never was.
func (h *history) disconnect() {
	var open []EffectID
	for id, c := range h.check.conns {
		if !c.ended {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	in := Disconnected{Conn: EffectID(1<<40 + int(h.byte())), GoAway: h.byte()%2 == 0}
	if n := h.pick(8); len(open) > 0 && n < 7 {
		in.Conn = open[n%len(open)]
	}
	h.step(in)
}

// noInode reports whether a path is on a filesystem that has no inodes.
func noInode(path string) bool { return path == "/b/3.sock" || path == "/b/4.sock" }

// file is a new socket at a path.
func (h *history) file(path string) scanner.Entry {
	h.inode++
	e := at(path, h.inode, int64(h.inode))
	if noInode(path) {
		e.ID.Device, e.ID.Inode, e.ID.ChangeTime = 0, 0, 0
	}
	return e
}

// change changes one to three paths of a root, and scans it, or not.
func (h *history) change() {
	root := fuzzRoots[h.pick(2)]
	n := h.byte()
	for range 1 + n%3 {
		path := root + "/" + fuzzPaths[h.pick(4)]
		e, there := h.world[root][path]
		switch what := h.pick(8); {
		case what < 3 || !there:
			e = h.file(path)
		case what < 5:
			h.inode++
			e.ID.ModTime = int64(h.inode)
		case what < 6:
			e.Stale = nil
			if h.byte()%2 == 0 {
				e.Stale = &scanner.Stale{Since: h.now, Err: errTest}
			}
		default:
			delete(h.world[root], path)
			continue
		}
		h.world[root][path] = e
	}
	if n < 192 {
		h.scan(root)
	}
}

// peers are the processes that answer.
var peers = []*Peer{nil, {UID: 1}, {UID: 1, PID: 7, Start: 1}, {UID: 1, PID: 7, Start: 2}, {UID: 2, PID: 8, Start: 1}, {UID: 0, PID: 9, Start: 1}, {UID: 1, PID: 7, Start: 1}, {UID: 2}}

// end gives an effect the result that b stands for.
func (h *history) end(f *flightModel, b byte) {
	h.done = append(h.done, f.id)
	if f.kind == kindLook {
		h.step(h.seen(f, b))
		return
	}
	in := result(f.id, f.kind, b, Info{
		Type: fuzzTypes[int(b>>3)%3], Name: fuzzNames[int(b>>5)%3], Endpoint: "/e", Versions: []string{"1"},
	})
	if a, ok := in.(Asked); ok && a.Connected {
		a.Peer = peers[h.pick(len(peers))]
		in = a
	}
	h.step(in)
}

// seen is the result of a look.
func (h *history) seen(f *flightModel, b byte) Looked {
	in := Looked{ID: f.id, Started: f.started}
	e, there := h.world[f.path.root][f.path.path]
	e.Stale = nil
	switch {
	case b&7 == 7:
		in.Err = errTest
	case !there:
		in.Err = &fs.PathError{Op: "lstat", Path: f.path.path, Err: fs.ErrNotExist}
	default:
		in.Entry = e
	}
	return in
}

// result is one of the ways an effect can end: low bits of b below 4 are good.
func result(id EffectID, k kind, b byte, info Info) Input {
	var err error
	var failure Failure
	if b&7 >= 4 {
		err, failure = errTest, []Failure{Transient, Transient, Unsupported, Permanent}[b&3]
		if k == ask && b&0x27 == 0x24 {
			failure = Refused // nobody answered, so nothing is connected
		}
		if k == ask && b&0x27 == 0x25 {
			failure = Stale
		}
	}
	switch k {
	case ask:
		return Asked{ID: id, Info: info, Connected: err == nil || b&32 == 0 && failure != Refused && failure != Stale, Err: err, Failure: failure}
	case tell, acknowledge:
		return Notified{ID: id, Err: err, Failure: failure}
	}
	return Called{ID: id, Err: err, Failure: failure}
}

// stray is a result nobody waits for: of an effect that never was, or a second one.
func (h *history) stray() {
	id := EffectID(1 << 40)
	if len(h.done) > 0 && h.byte()%2 == 0 {
		id = h.done[h.pick(len(h.done))]
	}
	h.step([]Input{Asked{ID: id}, Called{ID: id}, Notified{ID: id, Err: errTest}, Looked{ID: id, Err: errTest}}[h.pick(4)])
}

// pause lets the time pass, with a Tick at each Deadline on the way unless the clock jumps.
func (h *history) pause(d time.Duration, jump bool) {
	end := h.now.Add(d)
	for at := h.core.Deadline(); !jump && !at.IsZero() && !at.After(end); at = h.core.Deadline() {
		h.now = at
		h.step(Tick{})
		if h.err != nil {
			return
		}
	}
	h.now = end
	h.step(Tick{})
}

// good is what the plugin at a path says when everything works.
func good(path string) (Info, bool) {
	n := int(path[len(path)-len("1.sock")] - '1')
	return Info{Type: fuzzTypes[n%2], Name: fuzzNames[n%3], Endpoint: path + ".api"}, n != 3
}

// converge has everything succeed until what is there is registered.
func (h *history) converge() {
	for n := range fuzzTypes[:2] {
		h.handler(n)
	}
	for _, root := range fuzzRoots {
		for _, path := range slices.Sorted(maps.Keys(h.world[root])) {
			e := h.world[root][path]
			if _, ok := good(path); !ok {
				e = h.file(path) // it may be registered: only another instance may say another thing
			}
			e.Stale = nil
			h.world[root][path] = e
		}
		if h.scans[root] != nil {
			h.scan(root)
		}
		h.scan(root)
	}
	for _, path := range slices.Sorted(maps.Keys(h.check.paths)) {
		if h.check.paths[path].never {
			h.step(RetryAsked{path}) // it says another type now, and nothing else will have it asked
		}
	}
	for range 2000 {
		if h.err != nil || h.settled() {
			return
		}
		if all := h.inFlight(); len(all) > 0 {
			f := all[0]
			info, ok := good(f.path.path)
			b := byte(0)
			if !ok && f.kind == ask {
				b = 6 // Unsupported
			}
			if f.kind == kindLook {
				h.step(h.seen(f, 0))
				continue
			}
			h.step(result(f.id, f.kind, b, info))
			if h.check.dropped[f.id] != nil {
				delete(h.check.dropped, f.id)
			}
			continue
		}
		at := h.core.Deadline()
		if at.IsZero() {
			break
		}
		h.now = at
		h.step(Tick{})
	}
	if h.err == nil {
		h.err = fmt.Errorf("%s%q does not converge", story(h.steps), h.unsettled())
	}
}

// settled reports whether exactly what is there and good is registered, and nothing runs.
func (h *history) settled() bool {
	return len(h.check.flights) == 0 && (!h.check.stopping || h.check.stopped) && h.unsettled() == ""
}

// unsettled is a path that is not as it should be in the end.
func (h *history) unsettled() string {
	if h.check.stopping {
		return ""
	}
	for path, p := range h.check.paths {
		_, ok := good(path)
		switch {
		case !p.present:
			return path
		case !ok && p.refused != unsupported:
			return path
		case ok && p.current() && p.held.since.IsZero() && (h.check.cfg.Observe || p.held.ack == AckYes || p.held.ack == AckUnsupported):
		case ok && h.check.standing(p) != yes:
			return path
		}
	}
	return ""
}

// empty removes everything and looks whether anything is left.
func (h *history) empty() {
	for _, root := range fuzzRoots {
		clear(h.world[root])
	}
	h.converge()
	for _, f := range h.inFlight() {
		h.end(f, 0)
	}
	for range len(h.steps) { // timers that have become useless are not more than what happened, and then there is nothing to wait for
		if at := h.core.Deadline(); !at.IsZero() {
			h.now = at
			h.step(Tick{})
		}
	}
	if h.err != nil {
		return
	}
	if at := h.core.Deadline(); !at.IsZero() {
		h.err = fmt.Errorf("%san empty core still waits for %v", story(h.steps), at)
	}
	if l := left(h.core); l != "" && !h.check.stopping {
		h.err = fmt.Errorf("something is left: sockets, flights, reserved, waiting, probes, calls, dirty, links, members, parked (-want +got):\n%s", l)
	}
	if len(h.check.conns) > 0 {
		h.err = fmt.Errorf("connections are left: %v", h.check.conns)
	}
}

func newHistory(data []byte) *history {
	cfg := Config{Roots: []Root{{Path: "/a"}, {Path: "/b"}}}
	h := &history{
		data: data, now: start,
		world: map[string]map[string]scanner.Entry{"/a": {}, "/b": {}}, last: map[string]*scanner.Snapshot{}, scans: map[string]*Scanned{},
	}
	flags := h.byte()
	cfg.DeregisterOnStop = flags&1 != 0
	if flags&2 != 0 {
		cfg.Probes, cfg.Calls = 4, 2
	}
	if flags&2 != 0 && flags&64 != 0 {
		cfg.MaxParked = 1
	}
	cfg.Observe = flags&16 != 0 && flags&32 != 0
	cfg.LivenessGrace = []time.Duration{0, -1, 700 * time.Millisecond, 2 * time.Second}[flags>>6]
	h.exclusive = flags&8 != 0
	cfg.Seed = uint64(flags)
	h.core, h.check = New(cfg), newChecker(cfg)
	if flags&4 == 0 {
		h.handler(0)
	}
	return h
}

// FuzzCore: whatever happens, in whatever order, the promises hold; and when it ends well, what is there is registered (doc.go).
func FuzzCore(f *testing.F) {
	for seed := range 64 {
		f.Add(randomBytes(uint64(seed), 40+seed*12))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := newHistory(data).run(); err != nil {
			t.Fatal(err)
		}
	})
}

func (h *history) run() error {
	for len(h.data) > 0 && h.err == nil {
		h.next()
	}
	h.converge()
	h.empty()
	return h.err
}

// TestHistories runs random histories where no fuzzer does.
func TestHistories(t *testing.T) {
	histories := 500
	if testing.Short() {
		histories = 50
	}
	for seed := range histories {
		h := newHistory(randomBytes(uint64(seed), 200+seed%1000))
		if err := h.run(); err != nil {
			t.Fatalf("history %d: %v", seed, err)
		}
	}
}
