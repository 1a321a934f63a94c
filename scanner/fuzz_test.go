package scanner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// FuzzScan plays a history of changes, faults and scans. The same changes, without the faults, happen to a second filesystem, the truth. It holds:
//   - a scan removes nothing that is there, whatever fails (U1, U2), and tells no identity that nothing had;
//   - once the faults are cleared, one scan is worth as much as the first one of a new Scanner;
//   - a Snapshot is sorted, its stale entries were known, and it comes back as it is when nothing changed.
//
// The first byte says how the filesystem behaves, with some of them directories are skipped, and by its highest bit whether files are selected (CN1, CN2).
func FuzzScan(f *testing.F) {
	f.Add([]byte{0, 0x00, 0x10, 0x20, 0xf0, 0x01, 0x80, 0xf0, 0xe0, 0xf0})
	f.Add([]byte{1, 0x04, 0x05, 0x06, 0x00, 0x05, 0xf0, 0x84, 0x31, 0x41, 0xf0, 0xf0, 0xe0, 0xf0})
	f.Add([]byte{2, 0x00, 0x53, 0x01, 0xf0, 0x90, 0xb0, 0x62, 0xf0, 0xa0, 0xf0, 0xe0, 0xf0})
	f.Add([]byte{3, 0x04, 0x09, 0xf0, 0xd0, 0x44, 0x14, 0xf0, 0xf0, 0xc0, 0xf0})
	f.Add([]byte{16, 0x00, 0x10, 0xf0, 0x53, 0x02, 0xf0, 0x53, 0x02, 0xf0, 0x04, 0xf0, 0x21, 0xf0})
	f.Add([]byte{0x52, 0x04, 0x05, 0x06, 0xf0, 0x53, 0x0e, 0xf0, 0x34, 0x0c, 0xf0, 0x53, 0x0e, 0xf0})
	f.Add([]byte{0x80, 0x00, 0x01, 0x10, 0x02, 0x14, 0x01, 0xf0, 0x00, 0x02, 0xe0, 0x43, 0x00, 0xf0, 0xe0})
	f.Add([]byte{0x91, 0x14, 0x05, 0x01, 0x49, 0x04, 0xe0, 0x90, 0x00, 0xe0, 0xc0, 0xe0, 0x30, 0x01, 0xe0})
	f.Add([]byte{0x82, 0x00, 0x01, 0x41, 0x00, 0xe0, 0xd0, 0x03, 0x20, 0xe0, 0xc0, 0xe0, 0x51, 0x02, 0xe0, 0x80, 0x01, 0xe0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 0 && len(data) <= 500 {
			synctest.Test(t, func(t *testing.T) { newHistory(t, data, nil).play() })
		}
	})
}

var (
	fuzzFiles = []string{"a.c", "b.c", ".c", "a-b", "d", "d/a.c", "d/e", "d/e/a.c", "d/f", "l", "d/l.c", "d/e/f.c", "e.c", "e.c/a.c", "b", "."}
	fuzzNames = []string{"a", "b", ".c", "a-b", "d", "d/a", "d/e", "d/e/a", "d/f", "l", "d/l", "d/e/f", "e", "e/a", "ab", "."}
	// Not ENOENT for a single entry: a filesystem that omits a name and denies it to Lstat as well cannot be told from one without it.
	fuzzErrors = []error{syscall.EIO, syscall.EACCES, syscall.ESTALE, syscall.EMFILE}
	fuzzTimes  = [16]time.Duration{
		fineSettleTime, 0, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond, fineSettleTime - time.Millisecond,
		fineSettleTime + time.Millisecond, time.Second - time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second, coarseSettleTime - time.Millisecond,
		coarseSettleTime, coarseSettleTime + time.Millisecond, FullEvery,
	}
)

type history struct {
	testing.TB
	data       []byte
	names      []string
	sim, truth *simfs.FS
	cfg        Config
	scanner    *Scanner
	last       *Snapshot
	faults     int
	hooked     bool
}

// newHistory is called in a bubble. settleTime is the Scanner's, nil for the right one.
func newHistory(t testing.TB, data []byte, settleTime func(key) time.Duration) *history {
	h := &history{TB: t, data: data[1:], names: fuzzNames}
	sim := simfs.Config{
		Entries: simfs.Entries(data[0] & 3 % 3), Shuffle: uint64(data[0] & 4), ReuseInodes: data[0]&8 != 0, Stable: data[0]&16 != 0,
		Granularity: []time.Duration{0, 4 * time.Millisecond, time.Second, 2 * time.Second}[data[0]>>5&3],
	}
	h.sim, h.truth = simfs.New(sim), simfs.New(sim)
	h.wait(time.Millisecond) // a bubble begins with a whole second
	h.change(func(f *simfs.FS) error { return f.Mkdir("/r", 0o755) })
	h.change(func(f *simfs.FS) error { return f.SymlinkIfPossible("/r", "/alias") }) // faults are not for those who write
	h.cfg = Config{FS: h.sim, Root: "/r"}
	if data[0]&128 != 0 {
		h.names, h.cfg.Select, h.cfg.MaxDepth = fuzzFiles, Files(".c"), 2
	}
	h.scanner = newScanner(t, h.cfg)
	if settleTime != nil {
		h.scanner.settleTime = settleTime
	}
	return h
}

func (h *history) play() {
	defer h.sim.Close()
	defer h.truth.Close()
	for len(h.data) > 0 {
		h.step()
	}
	h.clear()
	h.scan()
}

func (h *history) wait(d time.Duration) { <-time.After(d) }

func (h *history) clear() {
	h.sim.ClearFaults()
	h.faults, h.hooked = 0, false
	h.overdue()
}

// overdue has the next scan read everything, as it does when FullEvery is over.
func (h *history) overdue() {
	for i := range h.scanner.memory.dirs {
		h.scanner.memory.dirs[i].fullRead = time.Time{}
	}
}

func (h *history) next() int {
	if len(h.data) == 0 {
		return 0
	}
	b := h.data[0]
	h.data = h.data[1:]
	return int(b)
}

// change does the same to both filesystems, at the same time on their clock.
func (h *history) change(do func(*simfs.FS) error) {
	h.wait(time.Millisecond)
	a, b := do(h.sim), do(h.truth)
	if (a == nil) != (b == nil) {
		h.Fatalf("the filesystems differ: %v, %v", a, b)
	}
}

// step: the high half of a byte is what to do, the low half the name to do it to.
func (h *history) step() {
	b := h.next()
	name := "/r/" + h.names[b&15]
	switch do := b >> 4; do {
	case 6, 7, 8, 9, 10, 11:
		h.fault(do, name)
	case 12:
		h.clear()
	case 13:
		if !h.hooked {
			// One change in the midst of a scan; with more, a socket could move to and fro and be absent wherever the scan looks.
			op := []simfs.Op{simfs.OpOpen, simfs.OpList, simfs.OpLstat, simfs.OpStat}[h.next()&3]
			change := h.mutation(h.next())
			h.sim.Inject(name, op, simfs.Fault{Times: 1, Hook: func() { h.change(change) }})
			h.hooked = true
		}
	case 15:
		h.wait(fuzzTimes[b&15])
		h.scan()
	case 14:
		h.scan()
	default:
		h.change(h.mutation(b))
	}
}

func (h *history) mutation(b int) func(*simfs.FS) error {
	name := "/r/" + h.names[b&15]
	switch b >> 4 {
	case 0:
		if h.cfg.Select.files {
			content := []byte("yes"[:h.next()&3])
			return func(f *simfs.FS) error {
				return afero.WriteFile(f, strings.Replace(name, "/r", "/alias", 1), content, 0o644)
			}
		}
		return func(f *simfs.FS) error { return f.Mknod(name, fs.ModeSocket|0o755) }
	case 1:
		return func(f *simfs.FS) error { return f.Mkdir(name, 0o755) }
	case 2:
		return func(f *simfs.FS) error { return f.RemoveAll(name) }
	case 3:
		to := "/r/" + h.names[h.next()&15]
		return func(f *simfs.FS) error { return f.Rename(name, to) }
	case 4:
		target := "/r/" + h.names[h.next()&15]
		return func(f *simfs.FS) error { return f.SymlinkIfPossible(target, name) }
	}
	mode := []fs.FileMode{0, fs.ModeIrregular, fs.ModeNamedPipe, fs.ModeSocket}[h.next()&3]
	return func(f *simfs.FS) error { return f.Mknod(name, mode|0o644) }
}

func (h *history) fault(do int, name string) {
	n := h.next()
	what := simfs.Fault{Err: fuzzErrors[n&3], Times: n >> 2 & 1, After: n >> 3 & 7}
	op := simfs.OpEntry
	if do == 9 && h.cfg.Select.files && n&128 != 0 {
		do = 16
	}
	switch do {
	case 16:
		op = simfs.OpRead
	case 6:
		op = simfs.OpList
	case 7:
		op, what.Err = simfs.OpList, io.EOF
	case 8:
		op = simfs.OpOpen
	case 9:
		op = simfs.OpLstat
	case 10:
		op = simfs.OpStat
	}
	if n&64 != 0 && (op == simfs.OpList || op == simfs.OpOpen) && !errors.Is(what.Err, io.EOF) {
		what.Err = syscall.ENOENT
	}
	h.sim.Inject(name, op, what)
	h.faults++
}

// first is the first scan of a new Scanner.
func (h *history) first(f *simfs.FS) (*Snapshot, error) {
	c := h.cfg
	c.FS = f
	return newScanner(h, c).Scan(h.Context(), nil)
}

func (h *history) scan() {
	before, _ := h.first(h.truth)
	next, err := h.scanner.Scan(h.Context(), h.last)
	after, _ := h.first(h.truth)
	if next == nil {
		h.Fatal("no Snapshot")
	}
	if !slices.IsSortedFunc(next.entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) }) {
		h.Fatalf("not sorted: %q", paths(next))
	}
	for _, c := range Diff(h.last, next) {
		then, was := before.At(c.Entry.Path)
		now, is := after.At(c.Entry.Path)
		if c.Kind == Removed {
			if was && is && then.equal(now) {
				h.Fatalf("%v is there and was removed", c.Entry)
			}
			continue
		}
		if h.cfg.Select.files {
			if problem := c.Entry.File.Problem != "" && (h.faults > 0 || h.hooked); !problem && !c.Entry.equal(then) && !c.Entry.equal(now) {
				h.Fatalf("%v %v is neither %v nor %v", c.Kind, entryText(c.Entry), entryText(then), entryText(now))
			}
			continue
		}
		if !c.Entry.Maybe && c.Entry.ID != then.ID && c.Entry.ID != now.ID {
			h.Fatalf("%v %v is neither %v nor %v", c.Kind, c.Entry, then, now)
		}
	}
	for e := range next.All() {
		if known, ok := h.last.At(e.Path); e.Stale != nil && (!ok || known.ID != e.ID) {
			h.Fatalf("%v is stale and was %v", e, known)
		}
	}
	h.last = next
	if h.faults == 0 && !h.hooked {
		h.settled(next, err)
	}
}

// settled compares with a new Scanner while nothing fails.
func (h *history) settled(next *Snapshot, err error) {
	fresh, freshErr := h.first(h.sim)
	if fmt.Sprint(err) != fmt.Sprint(freshErr) {
		h.Fatalf("error %v, by a new Scanner %v", err, freshErr)
	}
	// What cannot be looked at even now, as a link to itself or a root that is no directory, stays as it was known.
	entries := slices.DeleteFunc(slices.Clone(next.entries), func(e Entry) bool { return err != nil && e.Stale != nil })
	for e := range next.All() {
		if _, ok := fresh.At(e.Path); e.Stale != nil && ok {
			h.Fatalf("%v is stale, and a new Scanner sees it", e)
		}
	}
	if diff := cmp.Diff(fresh.entries, entries, cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("by a new Scanner (-), after this history (+):\n%s", diff)
	}
	if diff := cmp.Diff(fresh.ignored, next.ignored, cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("ignored by a new Scanner (-), after this history (+):\n%s", diff)
	}
	if again, _ := h.scanner.Scan(h.Context(), next); again != next {
		h.Fatalf("nothing changed, and the Snapshot did: %v", Diff(next, again))
	}
}
