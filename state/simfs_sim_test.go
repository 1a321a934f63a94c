package state

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
)

var simOps = flag.Int("ops", 3200, "TestSimulationOnFiles: how many things happen to the filesystem and its plugins, in all seeds together")

const (
	// filesSettleEvery is how many things happen until everything settles.
	filesSettleEvery = 500
	// filesPatience is how long that may take. The longest pause of a Core is the 10 min of R13.
	filesPatience = 13 * time.Minute
)

// filesKinds are the filesystems that a simulation takes place on, by seed.
var filesKinds = []struct {
	config simfs.Config
	detail simfs.Detail
}{
	{config: simfs.Config{ReuseInodes: true, Stable: true, Shuffle: 7}},
	{config: simfs.Config{ReuseInodes: true, Entries: simfs.UntypedEntries}},
	{config: simfs.Config{ReuseInodes: true, Stable: true, Granularity: time.Second}},
	{detail: simfs.NoDetail},
	{config: simfs.Config{ReuseInodes: true, Granularity: 2 * time.Second}, detail: simfs.NoChangeTime},
	{config: simfs.Config{Stable: true, Entries: simfs.NoEntries, Granularity: 4 * time.Millisecond}},
	{config: simfs.Config{ReuseInodes: true, Stable: true, Granularity: 2 * time.Second}},
	{config: simfs.Config{Granularity: time.Second}, detail: simfs.NoDetail},
}

// files is a simulation whose sockets are files of a simulated filesystem, which scanners look at. It runs in a bubble, and all that happens in it is done by
// one goroutine at a time: a Scan has a goroutine of its own make its calls, and waits for it. So a seed is replayed exactly.
//
// What is really there is asked under /real, which is another way to everything: faults are by path.
type files struct {
	*simulation
	fs     *simfs.FS
	seen   afero.Fs // as much of it as scanners are told
	blind  bool     // it has no inodes: a socket in another's place may be noticed by the end of that one's plugin only (I3)
	dull   bool     // and its stamps are coarse
	dirs   []*filesRoot
	at     map[fileID]*simPlugin // whose a socket is
	asked  map[string]filesAsk   // what was last found by dialling a path
	mounts []string
	shown  map[uint64]time.Time // when a device was first seen at a root
	lies   map[string]bool      // paths of which a call may say that they are not there

	ops, calls int
	stamps     int64         // the filesystem's clock never stands still
	skew       time.Duration // and is ahead of ours
	faults     int           // that are injected and not cleared
	hidden     time.Time     // when one that hides something was last there: that may be believed for as long as directories are skipped
	version    int           // of what is there
	coming     int           // things that are yet to happen to it
	depth      int           // in calls of the filesystem
	began      time.Time     // when everything began to settle
	checked    time.Time
}

type fileID struct{ device, inode uint64 }

type filesAsk struct {
	id scanner.Identity
	by *simPlugin
}

// filesRoot is a scanned directory, and what package register keeps of one.
type filesRoot struct {
	path       string
	scanner    *scanner.Scanner
	pace       scanner.Pace
	grace      time.Duration
	last       *scanner.Snapshot
	ended      time.Time
	took       time.Duration
	plan       int
	busy, soon bool
	missing    time.Time // since when it is, for a scan: it may have come and gone between two; zero: it is there
}

// happened is something that happens to the world, among the inputs of a story.
type happened string

func (happened) input() {}

// dimmed tells less of its files than it could.
type dimmed struct {
	*simfs.FS
	detail simfs.Detail
}

type dimInfo struct {
	fs.FileInfo
	detail simfs.Detail
}

type dimIdentity struct{ device, inode uint64 }

func (d dimIdentity) Identity() (device, inode uint64, changeTime time.Time) {
	return d.device, d.inode, time.Time{}
}

func (i dimInfo) Sys() any {
	if i.detail == simfs.NoDetail {
		return nil
	}
	return dimIdentity(inodeOf(i.FileInfo))
}

func (d dimmed) Stat(name string) (fs.FileInfo, error) { return d.dim(d.FS.Stat(name)) }

func (d dimmed) LstatIfPossible(name string) (fs.FileInfo, bool, error) {
	info, _, err := d.FS.LstatIfPossible(name)
	info, err = d.dim(info, err)
	return info, true, err
}

func (d dimmed) dim(info fs.FileInfo, err error) (fs.FileInfo, error) {
	if err != nil || d.detail == simfs.FullDetail {
		return info, err
	}
	return dimInfo{info, d.detail}, nil
}

func inodeOf(info fs.FileInfo) fileID {
	device, inode, _ := info.Sys().(scanner.Identifier).Identity()
	return fileID{device, inode}
}

// really is a path that no fault is about.
func really(name string) string { return "/real" + name }

func newFiles(seed uint64) *files {
	<-time.After(time.Until(start))
	s := &simulation{
		random: rand.New(rand.NewPCG(seed, 11)), now: time.Now(), trace: newTrace(), pid: 100,
		late: map[EffectID]func(){}, conns: map[EffectID]*simPlugin{}, handed: map[string]int{},
	}
	kind := filesKinds[seed%uint64(len(filesKinds))]
	w := &files{
		simulation: s, blind: kind.detail == simfs.NoDetail, dull: kind.detail == simfs.NoDetail && kind.config.Granularity > 0,
		at: map[fileID]*simPlugin{}, asked: map[string]filesAsk{}, shown: map[uint64]time.Time{}, lies: map[string]bool{},
	}
	s.world = w
	kind.config.Now = func() time.Time {
		w.stamps++
		return time.Now().Add(w.skew + time.Duration(w.stamps))
	}
	w.fs = simfs.New(kind.config)
	w.seen = dimmed{w.fs, kind.detail}
	w.must(w.fs.SymlinkIfPossible("/", "/real"))
	for _, dir := range []string{"/out", "/limbo", "/a/sub1", "/a/sub2/deep", "/b"} {
		w.must(w.fs.MkdirAll(dir, 0o755))
	}
	cfg := simConfig(seed / 2) // so that kinds of filesystems and of configurations meet
	s.core, s.check = New(cfg), newChecker(cfg)
	for n, root := range cfg.Roots {
		r := &filesRoot{path: root.Path, grace: []time.Duration{10 * time.Second, 2 * time.Second}[(seed+uint64(n))%2]}
		missing := []scanner.MissingRoot{scanner.WaitForRoot, scanner.CreateRoot}[seed%2]
		var err error
		r.scanner, err = scanner.New(scanner.Config{FS: w.seen, Root: root.Path, RootGrace: r.grace, MissingRoot: missing})
		w.must(err)
		w.dirs = append(w.dirs, r)
		w.scanIn(r, 0)
	}
	w.names()
	w.pictures()
	w.after(0, w.live)
	w.step(HandlerAdded{Type: csi, Exclusive: true})
	w.after(w.upTo(time.Minute), func() { w.step(HandlerAdded{Type: dra}) })
	return w
}

// filesLinks are links, and where they lead.
var filesLinks = [][2]string{{"/a/l0.sock", "/out/00.sock"}, {"/b/l1.sock", "/out/01.sock"}, {"/a/sub1/l2.sock", "../00.sock"}}

// names makes up the paths at which there are sockets at times, and the links to some.
func (w *files) names() {
	for _, dir := range []struct {
		path string
		n    int
	}{{"/a", 8}, {"/a/sub1", 5}, {"/a/sub2/deep", 3}, {"/b", 8}, {"/b/new", 3}, {"/out", 4}} {
		for n := range dir.n {
			w.paths = append(w.paths, fmt.Sprintf("%s/%02d.sock", dir.path, n))
		}
	}
	for _, link := range filesLinks {
		w.must(w.fs.SymlinkIfPossible(link[1], link[0]))
	}
}

// must is for what cannot fail but by a mistake of ours.
func (w *files) must(err error) {
	if err != nil {
		w.err = errors.Join(w.err, err)
	}
}

// tell notes what happens to the world.
func (w *files) tell(format string, args ...any) {
	what := happened(fmt.Sprintf(format, args...))
	w.trace.line(w.now.UnixNano(), what)
	w.steps = append(w.steps, step{w.now, what, nil})
	kind, _, _ := strings.Cut(string(what), " ")
	w.check.counts["world: "+kind]++
}

// waitFor lets the time of the bubble pass. It is the only timer, but for those of a Scan that is under way.
func (w *files) waitFor(at time.Time) time.Time {
	if d := time.Until(at); d > 0 {
		<-time.After(d)
	}
	return time.Now()
}

// meanwhile lets the time pass in a call of the filesystem: that of a scan, so that everything else goes on.
func (w *files) meanwhile(d time.Duration) {
	end := w.now.Add(d)
	for len(w.heap) > 0 && !w.heap[0].at.After(end) && w.err == nil {
		w.next()
	}
	w.now = w.waitFor(end)
}

func (w *files) scanIn(r *filesRoot, d time.Duration) {
	r.plan++
	plan := r.plan
	w.after(d, func() {
		if r.plan == plan && !r.busy {
			w.scan(r)
		}
	})
}

// scan has a root scanned, as the loop of package register does, and its result taken a little later.
func (w *files) scan(r *filesRoot) {
	r.busy = true
	in := Scanned{Root: r.path, Started: w.now}
	version, faults, calls := w.version, w.faults, w.calls
	if _, err := w.fs.Stat(really(r.path)); err == nil {
		r.missing = time.Time{}
	}
	w.depth++
	in.Snapshot, in.Err = r.scanner.Scan(bubble, r.last)
	w.depth--
	w.now = time.Now()
	in.Ended, in.Filesystem = w.now, r.scanner.Filesystem()
	w.check.counts["scans"]++
	if version == w.version && w.err == nil {
		w.err = w.judgeScan(r, in, faults+w.faults == 0 && calls == w.calls)
		if w.err != nil {
			w.err = fmt.Errorf("%sscan of %s: %w", story(w.steps), r.path, w.err)
		}
	} else {
		w.check.counts["scans of a world that changed meanwhile"]++
	}
	if in.Err != nil {
		w.check.counts["scans with an error"]++
	}
	for e := range in.Snapshot.All() {
		if e.Stale != nil {
			w.check.counts["stale entries"]++
		}
	}
	d := w.upTo(time.Millisecond)
	if w.oneIn(50) && !w.quiet {
		d = w.upTo(150 * time.Millisecond)
	}
	w.after(d, func() {
		changed := in.Snapshot != r.last && len(scanner.Diff(r.last, in.Snapshot)) > 0
		r.busy, r.last, r.ended, r.took = false, in.Snapshot, in.Ended, in.Ended.Sub(in.Started)
		next := r.pace.Next(r.ended, r.took, changed)
		if r.soon && r.eager().Before(next) {
			next = r.eager()
		}
		r.soon = false
		w.scanIn(r, next.Sub(w.now))
		w.step(in)
	})
}

func (r *filesRoot) eager() time.Time {
	pace := r.pace
	return pace.Next(r.ended, r.took, true)
}

func (w *files) rescan(root string) {
	for _, r := range w.dirs {
		if r.path == root && r.busy {
			r.soon = true
		} else if r.path == root {
			w.scanIn(r, r.eager().Sub(w.now))
		}
	}
}

func (w *files) root(name string) *filesRoot {
	for _, r := range w.dirs {
		if strings.HasPrefix(name, r.path+"/") {
			return r
		}
	}
	return nil
}

// judgeScan is what must hold of a scan during which nothing happened, whatever the Core makes of it. clean: and no call was made to fail.
func (w *files) judgeScan(r *filesRoot, in Scanned, clean bool) error {
	for _, c := range scanner.Diff(r.last, in.Snapshot) {
		if c.Kind != scanner.Removed {
			continue
		}
		e := c.Entry
		if _, _, there := w.candidate(e.Path); there && !w.lies[e.Path] {
			return fmt.Errorf("%s is gone for it, and is there (U1, U2)", e.Path)
		}
		if !r.missing.IsZero() && w.now.Sub(r.missing) < r.grace {
			return fmt.Errorf("%s is gone for it, and the root is missing since %v only (U5)", e.Path, r.missing.Sub(start))
		}
		own := e.ID.Stamp
		if e.ID.Link.Device != 0 {
			own = e.ID.Link
		}
		if info, err := w.fs.Stat(really(r.path)); err == nil && own.Device == 1 && inodeOf(info).device != 1 && w.now.Sub(w.shown[inodeOf(info).device]) < r.grace {
			return fmt.Errorf("%s is gone for it, and the root is on another device since %v only (U5)", e.Path, w.shown[inodeOf(info).device].Sub(start))
		}
	}
	if !clean || in.Err != nil || w.now.Sub(w.hidden) <= scanner.FullEvery || !w.oneIn(4) && !w.quiet {
		return nil
	}
	w.check.counts["scans compared"]++
	there := w.there(r)
	for e := range in.Snapshot.All() {
		if is, ok := there[e.Path]; !ok || e.Stale != nil || e.ID.Inode != is.id.Inode || e.ID.Device != is.id.Device {
			return fmt.Errorf("it shows %s with inode %d, stale %v, and there it is %v, inode %d", e.Path, e.ID.Inode, e.Stale, ok, is.id.Inode)
		}
		delete(there, e.Path)
	}
	for name := range there {
		return fmt.Errorf("it does not show %s", name)
	}
	return nil
}

type thing struct {
	id scanner.Identity
	p  *simPlugin // nil: never anybody's
}

// there are the sockets of a root.
func (w *files) there(r *filesRoot) map[string]thing {
	found := map[string]thing{}
	w.walk(r.path, found)
	return found
}

func (w *files) walk(dir string, found map[string]thing) {
	list, err := afero.ReadDir(w.fs, really(dir))
	if err != nil {
		return // it is not there
	}
	for _, info := range list {
		name := path.Join(dir, info.Name())
		if strings.HasPrefix(info.Name(), ".") {
			continue
		}
		if info.IsDir() {
			w.walk(name, found)
		} else if id, p, ok := w.candidate(name); ok {
			found[name] = thing{id, p}
		}
	}
}

// candidate is the socket at a path, or the one that a link there leads to, as a scanner is told of it, and whose it is.
func (w *files) candidate(name string) (id scanner.Identity, p *simPlugin, ok bool) {
	shown := dimmed{w.fs, w.seen.(dimmed).detail}
	link, _, err := shown.LstatIfPossible(really(name))
	if err != nil {
		return id, nil, false
	}
	info := link
	if link.Mode().Type() == fs.ModeSymlink {
		if info, err = shown.Stat(really(name)); err != nil {
			return id, nil, false
		}
		id.Link = stamp(link)
	}
	id.Stamp = stamp(info)
	if info.Mode().Type() != fs.ModeSocket {
		return id, nil, false
	}
	all, err := w.fs.Stat(really(name))
	if err != nil {
		return id, nil, false
	}
	return id, w.at[inodeOf(all)], true
}

func stamp(info fs.FileInfo) scanner.Stamp {
	s := scanner.Stamp{ModTime: info.ModTime().UnixNano(), Type: info.Mode().Type()}
	if sys, ok := info.Sys().(scanner.Identifier); ok {
		var changed time.Time
		if s.Device, s.Inode, changed = sys.Identity(); !changed.IsZero() {
			s.ChangeTime = changed.UnixNano()
		}
	}
	return s
}

// settle has the world stand still and everything work, and waits until what is there is registered, and nothing else.
func (w *files) settle() {
	w.tell("settles")
	w.quiet = true
	w.fs.ClearFaults()
	w.faults, w.hidden = 0, w.now
	clear(w.lies)
	for _, p := range w.at {
		if p != nil {
			p.heal()
		}
	}
	w.step(HandlerAdded{Type: dra})
	w.began = w.now
	w.run(w.inputs+1_000_000, func() bool { return w.now.Sub(w.began) > filesPatience || w.settled() })
	wrong := w.unsettledFiles()
	if w.err == nil && wrong == "" && w.oneIn(4) { // and so it stays
		until := w.now.Add(time.Minute)
		w.run(w.inputs+1_000_000, func() bool { return w.now.After(until) && len(w.check.flights) == 0 })
		wrong = w.unsettledFiles()
	}
	if w.err == nil && wrong != "" {
		w.err = fmt.Errorf("%sit does not converge: %s", story(w.steps), wrong)
	}
}

func (w *files) settled() bool {
	if len(w.check.flights) > 0 || len(w.late) > 0 || w.coming > 0 || w.now.Sub(w.checked) < 250*time.Millisecond {
		return false
	}
	w.checked = w.now
	return w.unsettledFiles() == ""
}

// unsettledFiles is what is wrong in a world that stands still.
func (w *files) unsettledFiles() string {
	if len(w.late) > 0 || w.coming > 0 {
		return "something is under way for ever"
	}
	known := map[string]bool{}
	handed := map[string]int{}
	for _, r := range w.dirs {
		there := w.there(r)
		for _, name := range slices.Sorted(maps.Keys(there)) {
			known[name] = true
			p := there[name].p
			if p == nil {
				p = &simPlugin{}
			}
			m := w.check.paths[name]
			if wrong := w.wrong(p, there[name].id, m); wrong != "" {
				return name + " " + wrong
			}
			if last := w.asked[name]; m != nil && p.listens && m.refused == unknownType && m.held == nil && p.typ != "Unknown" && (last.by == p || last.id != there[name].id) {
				return name + " listens and is refused for what another one said"
			}
		}
	}
	for name, m := range w.check.paths {
		if !known[name] {
			return name + " is gone, and still there"
		}
		if h := m.held; h != nil && !w.check.cfg.Observe {
			handed[h.reg.Type+" "+h.reg.Name+" "+h.reg.Entry.Path]++
		}
	}
	for what, n := range w.handed {
		if n != handed[what] {
			return fmt.Sprintf("%s was registered %d times more often than deregistered, and should be %d (R5)", what, n, handed[what])
		}
	}
	return ""
}

// end settles, removes everything and looks for what is left; or stops in the midst of it.
func (w *files) end(stop bool) {
	if stop {
		w.finish(true, false)
		return
	}
	w.settle()
	for _, r := range w.dirs {
		w.empty(r.path)
	}
	w.settle()
	if l := left(w.core); w.err == nil && (l != "" || len(w.check.conns) > 0) {
		w.err = fmt.Errorf("%ssomething is left: %s\nconnections: %v", story(w.steps), l, w.check.conns)
	}
}

// simulateFiles runs a seed to its end, and returns the hash of all that happened, went in and came out.
func simulateFiles(t *testing.T, seed uint64, ops int) (w *files, hash string) {
	synctest.Test(t, func(*testing.T) {
		w = newFiles(seed)
		defer w.fs.Close()
		for next := 0; w.err == nil && w.ops < ops; {
			next = min(ops, next+filesSettleEvery)
			w.run(1<<60, func() bool { return w.ops >= next })
			if w.err == nil && w.ops < ops {
				w.settle()
				w.quiet = false
				w.after(0, w.live)
			}
		}
		if w.err == nil {
			w.end(seed/2%4 >= 2)
		}
	})
	return w, w.trace.String()
}

// filesSeeds are how many seeds a run has: each kind of filesystem meets two configurations.
const filesSeeds = 16

// filesKindsOfEvents are what a long run is to have seen.
var filesKindsOfEvents = []string{
	"registered", "replacements", "adopted by stamps", "doubts", "looks that found another", "looks that found nothing", "rescans", "another process answered",
	"same instance over a new connection", "reached again", "takeovers", "evictions", "scans with an error", "stale entries", "scans compared",
	"scans of a world that changed meanwhile", "silent swaps",
}

func filesRun(t *testing.T, seed uint64, ops int, counts *simCounts) {
	began := time.Now()
	w, hash := simulateFiles(t, seed, ops)
	if w.err != nil {
		t.Fatalf("replay it with: go test ./state -run '^TestSimulationOnFiles$' -seed %d -ops %d\n%v", seed, ops, w.err)
	}
	took := time.Since(began)
	t.Logf("%d operations, %d inputs, %d scans in %v (%.0f operations/s), %v of virtual time, hash %s",
		w.ops, w.inputs, w.check.counts["scans"], took.Round(time.Millisecond), float64(w.ops)/took.Seconds(), w.now.Sub(start).Round(time.Second), hash)
	counts.mu.Lock()
	defer counts.mu.Unlock()
	counts.of["operations"] += w.ops
	for what, n := range w.check.counts {
		counts.of[what] += n
	}
}

// TestSimulationOnFiles is TestSimulation with real scanners on a simulated filesystem: the two have to fit together. Another seed:
// go test ./state -run TestSimulationOnFiles -seed N -ops M -v.
func TestSimulationOnFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths of simfs are those of Unix")
	}
	seen := simCounts{of: map[string]int{}}
	ops := *simOps
	if *simSoak {
		for seed := max(1, *simSeed); ; seed++ {
			filesRun(t, seed, ops, &seen)
		}
	}
	if *simSeed != 0 {
		filesRun(t, *simSeed, ops, &seen)
		return
	}
	seeds := filesSeeds
	if testing.Short() || raceDetector { // one goroutine at a time: nothing to race with
		seeds = len(filesKinds)
		ops = min(ops, 60*seeds)
	}
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
				t.Parallel()
				filesRun(t, seed+1, ops/seeds, &seen)
			})
		}
	})
	for _, what := range slices.Sorted(maps.Keys(seen.of)) {
		t.Logf("%8d %s", seen.of[what], what)
	}
	for _, what := range filesKindsOfEvents {
		if seen.of[what] == 0 && seen.of["operations"] >= 20_000 {
			t.Errorf("the run was trivial: it has not seen %s", what)
		}
	}
}

// TestSimulationOnFilesReplays: the scanners' goroutines take no turn that a seed does not give them.
func TestSimulationOnFilesReplays(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths of simfs are those of Unix")
	}
	seeds := len(filesKinds)
	if testing.Short() || raceDetector {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		a, first := simulateFiles(t, 100+seed, 100)
		b, second := simulateFiles(t, 100+seed, 100)
		if first != second || errors.Join(a.err, b.err) != nil {
			t.Errorf("seed %d: %s, then %s; %v, %v", 100+seed, first, second, a.err, b.err)
		}
	}
}
