//go:build linux

package scanner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

var raceSeed = flag.Uint64("race.seed", 0, "replay TestRace with this seed, on the kind that -run names (0: a new one)")

// tempo is how fast a filesystem's stamps change, and so the writer of TestRace.
type tempo struct {
	// lead is the longest pause before the first operation of a trial, so that some trials begin before all is settled and some after.
	lead time.Duration
	// gap is the longest pause between two operations.
	gap time.Duration
	// settled is long enough for everything to have settled since the last change.
	settled time.Duration
	// breath is the pause of the scanner between two scans.
	breath time.Duration
}

var (
	fast = tempo{lead: 80 * time.Millisecond, gap: 1500 * time.Microsecond, settled: 150 * time.Millisecond}
	// A second is the granularity. Several trials run side by side here.
	slowly = tempo{lead: 2500 * time.Millisecond, gap: 400 * time.Millisecond, settled: 2300 * time.Millisecond, breath: time.Millisecond}
)

var raceKinds = map[string]tempo{"tmpfs": fast, "ext4": fast, "overlay": fast, "ramfs": fast, "ext2-128": slowly}

// TestRace lets a writer change a tree while a Scanner looks at it as often as it can. The first scan that begins after the writer's last operation
// sees the world as a new Scanner does, and so it stays once everything is settled: no change is missed, whenever it came.
//
//	go test ./scanner -run TestRace/KIND -race.seed N
//
// replays the writer of a run; what it met in the scanner is another matter.
func TestRace(t *testing.T) {
	for kind, tempo := range raceKinds {
		t.Run(kind, func(t *testing.T) {
			wrong, trials := raceOn(t, kind, tempo, func(*Scanner) {})
			for _, w := range wrong {
				t.Error(w)
			}
			t.Logf("%d of %d trials were wrong", len(wrong), trials)
		})
	}
}

// TestRaceBites shows that TestRace finds what it is for. Without the guard every directory that was read is taken as settled: where the writer is faster
// than the clock of the stamps, changes are missed.
func TestRaceBites(t *testing.T) {
	for _, kind := range []string{"ramfs", "ext2-128"} {
		t.Run(kind, func(t *testing.T) {
			// One round shows it nearly always.
			for range 8 {
				wrong, trials := raceOn(t, kind, raceKinds[kind], func(s *Scanner) {
					for i := range s.memory.dirs {
						s.memory.dirs[i].settling.settled = true
					}
				})
				if len(wrong) > 0 {
					t.Logf("%d of %d trials were wrong; the first: %s", len(wrong), trials, wrong[0])
					return
				}
			}
			t.Error("nothing was ever wrong")
		})
	}
}

// raceOn returns what went wrong, one text for each trial. spoil is done to the Scanner after each scan.
func raceOn(t *testing.T, kind string, tempo tempo, spoil func(*Scanner)) (wrong []string, trials int) {
	seed := *raceSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-race.seed %d", seed)
	dir := mounted(t, kind).dir
	worlds, rounds := 1, 20
	if thorough() {
		rounds = 150
	}
	if tempo.breath > 0 {
		worlds, rounds = 8, 1
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range worlds {
		all.Go(func() {
			r := newRace(t, filepath.Join(dir, fmt.Sprint(n)), tempo, rand.New(rand.NewPCG(seed, uint64(n))))
			r.spoil = spoil
			for round := range rounds {
				text := r.trial(t.Context())
				mu.Lock()
				if trials++; text != "" {
					wrong = append(wrong, fmt.Sprintf("seed %d, world %d, trial %d: %s", seed, n, round, text))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return wrong, trials
}

// race is one tree with its writer and its scanner.
type race struct {
	tempo
	dir, root string
	random    *rand.Rand
	scanner   *Scanner
	spoil     func(*Scanner)
	last      *Snapshot
	history   []string
	began     time.Time
}

// newRace makes DIR/root, which is scanned, and DIR/out beside it, where things come from and go to.
func newRace(t *testing.T, dir string, tempo tempo, random *rand.Rand) *race {
	r := &race{tempo: tempo, dir: dir, root: filepath.Join(dir, "root"), random: random, scanner: newScanner(t, Config{Root: filepath.Join(dir, "root")})}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(r.root, "a", "c"), 0o755), os.Mkdir(filepath.Join(r.root, "b"), 0o755), os.Mkdir(filepath.Join(dir, "out"), 0o755),
		bindAt(filepath.Join(dir, "out", "s0")), os.Symlink("../out/s0", filepath.Join(r.root, "link")),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	return r
}

// trial lets the writer do two to seven operations while the scanner polls, and says what the scanner has wrong then.
func (r *race) trial(ctx context.Context) string {
	r.history, r.began = nil, time.Now()
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.pause(r.lead)
		for range 2 + r.random.IntN(6) {
			r.change()
			r.pause(r.gap)
		}
	}()
	for writing := true; writing; {
		// An error is what one may see of a tree that changes: the last scan has none.
		_ = r.scan(ctx)
		wait(r.breath)
		select {
		case <-written:
			writing = false
		default:
		}
	}
	if text := r.compare(ctx); text != "" {
		return "after the last operation " + text
	}
	// Now and then, what has settled wrong would stay so.
	if r.breath > 0 || r.random.IntN(5) == 0 {
		for until := time.Now().Add(r.settled); time.Now().Before(until); wait(max(r.breath, 10*time.Millisecond)) {
			_ = r.scan(ctx)
		}
		if text := r.compare(ctx); text != "" {
			return "when settled " + text
		}
	}
	return ""
}

func (r *race) scan(ctx context.Context) (err error) {
	r.last, err = r.scanner.Scan(ctx, r.last)
	r.spoil(r.scanner)
	return err
}

// compare says what the scanner's world has that a fresh walk has not, and the other way round.
func (r *race) compare(ctx context.Context) string {
	err := r.scan(ctx)
	walker, newErr := New(Config{Root: r.root})
	if newErr != nil {
		return newErr.Error()
	}
	fresh, freshErr := walker.Scan(ctx, nil)
	var text strings.Builder
	if err != nil || freshErr != nil {
		fmt.Fprintf(&text, "\nerrors: %v, of the fresh walk: %v", err, freshErr)
	}
	for _, c := range Diff(r.last, fresh) {
		fmt.Fprintf(&text, "\nit missed that %s was %v", c.Entry.Path, c.Kind)
	}
	for e := range r.last.All() {
		if e.Stale != nil {
			fmt.Fprintf(&text, "\n%s is stale: %v", e.Path, e.Stale.Err)
		}
	}
	if diff := cmp.Diff(fresh.Ignored(), r.last.Ignored()); diff != "" {
		fmt.Fprintf(&text, "\nignored (- right, + its): %s", diff)
	}
	if text.Len() > 0 {
		fmt.Fprintf(&text, "\nthe writer's operations:\n%s", strings.Join(r.history, "\n"))
	}
	return text.String()
}

// change does one operation that succeeds.
func (r *race) change() {
	for range 200 {
		a, b := r.name(), r.name()
		what, err := r.operation(a, b)
		if err == nil {
			r.history = append(r.history, fmt.Sprintf("%9.3fms %s", float64(time.Since(r.began).Microseconds())/1000, what))
			return
		}
	}
	r.history = append(r.history, "nothing: 200 operations failed")
}

// name returns one of few, so that operations meet.
func (r *race) name() string {
	names := []string{"s0", "s1", "s2", "d"}
	folders := []string{"root", "root", "root/a", "root/a", "root/b", "root/a/c", "root/d", "root/a/d", "out"}
	return folders[r.random.IntN(len(folders))] + "/" + names[r.random.IntN(len(names))]
}

func (r *race) operation(a, b string) (what string, err error) {
	path, other := filepath.Join(r.dir, a), filepath.Join(r.dir, b)
	sibling := filepath.Join(filepath.Dir(path), filepath.Base(other))
	isDir := strings.HasSuffix(a, "/d")
	switch n := r.random.IntN(12); {
	case isDir && n < 4:
		return "mkdir " + a, os.Mkdir(path, 0o755)
	case isDir && n < 6:
		return "rmdir " + a, unix.Rmdir(path)
	case n < 2:
		return "bind " + a, bindAt(path)
	case n < 3:
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			err = f.Close()
		}
		return "create " + a, err
	case n < 5:
		return "unlink " + a, unix.Unlink(path)
	case n < 7:
		if err := unix.Unlink(path); err != nil {
			return "", err
		}
		return "re-bind " + a, bindAt(path)
	case n < 8:
		return "rename " + a + " within to " + filepath.Base(sibling), rename(path, sibling, unix.RENAME_NOREPLACE)
	case n < 9:
		return "rename " + a + " to " + b, rename(path, other, unix.RENAME_NOREPLACE)
	case n < 10:
		return "rename " + a + " over " + b, rename(path, other, 0)
	case n < 11:
		return "exchange " + a + " and " + b, rename(path, other, unix.RENAME_EXCHANGE)
	}
	// What the link leads to lives in a directory that is not read.
	target := filepath.Join(r.dir, "out", "s0")
	if err := unix.Unlink(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return "re-bind the link's target", bindAt(target)
}

func rename(from, to string, flags uint) error {
	if from == to {
		return unix.EEXIST
	}
	if flags == 0 {
		if _, err := os.Lstat(to); err != nil {
			return err // over what is there
		}
	}
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
}

func (r *race) pause(most time.Duration) { wait(time.Duration(r.random.Int64N(int64(most)))) }

func wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	<-timer.C
}
