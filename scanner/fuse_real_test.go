//go:build linux

package scanner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watched is a Scanner on a faulty filesystem.
type watched struct {
	*faulty
	root    string
	scanner *Scanner
	last    *Snapshot
}

// watch makes sockets, given from the root, and scans them once.
func (f *faulty) watch(c Config, sockets ...string) *watched {
	f.t.Helper()
	w := &watched{faulty: f, root: f.dir}
	if c.Root != "" {
		w.root = c.Root
	}
	c.Root = w.root
	for _, name := range sockets {
		f.bind(name)
	}
	w.scanner = newScanner(f.t, c)
	w.last = scanOK(f.t, w.scanner, nil)
	if w.last.Len() < len(sockets) {
		f.t.Fatalf("the first scan found %q", paths(w.last))
	}
	return w
}

func (f *faulty) bind(name string) {
	f.t.Helper()
	path := filepath.Join(f.back, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = bindAt(path)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// scan takes one scan and returns what changed, and its error. A scan that does not end fails the test; the server is killed then, which ends it.
func (w *watched) scan() ([]Change, error) {
	w.t.Helper()
	type result struct {
		next *Snapshot
		err  error
	}
	done := make(chan result, 1)
	go func() {
		next, err := w.scanner.Scan(w.t.Context(), w.last)
		done <- result{next, err}
	}()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	select {
	case r := <-done:
		changes := Diff(w.last, r.next)
		w.last = r.next
		return changes, r.err
	case <-timer.C:
		w.kill()
		<-done
		w.t.Fatal("the scan did not end")
		return nil, nil
	}
}

// stale returns the names that are stale, in the order of paths.
func (w *watched) stale() []string {
	names := []string{}
	for e := range w.last.All() {
		if e.Stale != nil {
			names = append(names, strings.TrimPrefix(e.Path, w.root+"/"))
		}
	}
	return names
}

// unchanged takes a scan that may change nothing but what is stale.
func (w *watched) unchanged() error {
	w.t.Helper()
	changes, err := w.scan()
	if len(changes) != 0 {
		w.t.Errorf("U1: a failing filesystem changed %v", changes)
	}
	return err
}

// heals expects the next scan to find everything as it was, and a socket made after the fault.
func (w *watched) heals() {
	w.t.Helper()
	if err := w.unchanged(); err != nil {
		w.t.Errorf("after the fault: %v", err)
	}
	if stale := w.stale(); len(stale) != 0 {
		w.t.Errorf("after the fault %q are stale", stale)
	}
	name := fmt.Sprintf("healed-%d", w.last.Len())
	w.bind(name)
	changes, err := w.scan()
	if err != nil || len(changes) != 1 || changes[0].Kind != Added || filepath.Base(changes[0].Entry.Path) != name {
		w.t.Errorf("a socket made after the fault: %v, %v", changes, err)
	}
}

var (
	everything = []string{"a", "b", "sub/x", "z"}
	anErrno    = []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EACCES, syscall.ENOENT, syscall.ENOTCONN, syscall.EHOSTDOWN}
)

// U1, U2, U3: for each way to fail, what was known and cannot be seen is stale, what can be seen is not, nothing is gone, and all heals.
func TestFUSEFaults(t *testing.T) {
	f := newFaulty(t)
	w := f.watch(Config{}, everything...)
	tests := []struct {
		fault string // ERRNO stands for each of anErrno
		stale []string
		quiet bool // the scan has no error of its own: it is the doubt that is shown
	}{
		{fault: "opendir . ERRNO", stale: everything},
		{fault: "opendir sub ERRNO", stale: []string{"sub/x"}},
		{fault: "list . 0 ERRNO", stale: everything},
		{fault: "list sub 0 ERRNO", stale: []string{"sub/x"}},
		// An empty listing is no proof: Lstat finds them all.
		{fault: "list . 0 end", stale: everything, quiet: true},
		{fault: "list sub 0 end", stale: []string{"sub/x"}, quiet: true},
		{fault: "lookup b ERRNO", stale: []string{"b"}},
		{fault: "lookup sub/x ERRNO", stale: []string{"sub/x"}},
		{fault: "lookup sub ERRNO", stale: []string{"sub/x"}},
		{fault: "lookup . ERRNO", stale: everything},
	}
	for _, test := range tests {
		for _, errno := range anErrno {
			order := strings.Replace(test.fault, "ERRNO", errnoName(errno), 1)
			if order == test.fault && errno != anErrno[0] {
				continue // it has none
			}
			if errno == syscall.ENOENT && strings.HasPrefix(order, "lookup") && order != "lookup . ENOENT" {
				continue // that is how a socket is gone, but for its name in the listing: TestFUSEListedOnly
			}
			t.Run(strings.ReplaceAll(order, " ", "_"), func(t *testing.T) {
				w.t = t
				f.tell(order)
				for range 2 {
					err := w.unchanged()
					if stale := w.stale(); !slices.Equal(stale, test.stale) {
						t.Errorf("%q are stale, want %q", stale, test.stale)
					}
					if !test.quiet && !errors.Is(err, errno) || test.quiet && err != nil {
						t.Errorf("the error is %v", err)
					}
				}
				f.tell("clear")
				w.heals()
				w.forget()
			})
		}
	}
}

// forget removes what heals made.
func (w *watched) forget() {
	w.t.Helper()
	made, err := filepath.Glob(filepath.Join(w.back, "healed-*"))
	for _, path := range made {
		err = errors.Join(err, os.Remove(path))
	}
	if changes, scanErr := w.scan(); err != nil || scanErr != nil || len(changes) != len(made) {
		w.t.Errorf("removed %d sockets: %v, %v, %v", len(made), changes, err, scanErr)
	}
}

func errnoName(e syscall.Errno) string {
	for name, err := range errnos {
		if err == e { //nolint:errorlint // two errnos
			return name
		}
	}
	return "unknown"
}

// U2: a name that is listed and that Lstat does not find is in doubt.
func TestFUSEListedOnly(t *testing.T) {
	f := newFaulty(t)
	w := f.watch(Config{}, everything...)
	f.tell("lookup b ENOENT")
	if err := w.unchanged(); err != nil {
		t.Error(err)
	}
	if stale := w.stale(); !slices.Equal(stale, []string{"b"}) {
		t.Errorf("%q are stale", stale)
	}
	f.tell("clear")
	w.heals()
}

// U1, U2: 700 of 1000 names, whether the listing says that it failed or not.
func TestFUSECutListing(t *testing.T) {
	for _, end := range []string{"EIO", "ENOENT", "end"} {
		t.Run(end, func(t *testing.T) {
			f := newFaulty(t)
			names := make([]string, 1000)
			for i := range names {
				names[i] = fmt.Sprintf("s%03d", i)
			}
			w := f.watch(Config{}, names...)
			f.tell("list . 700 " + end)
			if err := w.unchanged(); (err == nil) != (end == "end") {
				t.Errorf("the error is %v", err)
			}
			unseen := w.stale()
			if len(unseen) != 300 || w.last.Len() != 1000 {
				t.Fatalf("%d of %d are stale, want 300 of 1000", len(unseen), w.last.Len())
			}
			// One of those that are not shown is really removed. A listing that looks whole, and Lstat, are two witnesses; a failed one is none.
			if err := os.Remove(filepath.Join(f.back, unseen[0])); err != nil {
				t.Fatal(err)
			}
			changes, _ := w.scan()
			gone := len(changes) == 1 && changes[0].Kind == Removed && changes[0].Entry.Path == filepath.Join(f.dir, unseen[0])
			if end == "end" && !gone || end != "end" && len(changes) != 0 {
				t.Errorf("after a removal: %v", changes)
			}
			f.tell("clear")
			if changes, err := w.scan(); err != nil || len(changes)+w.last.Len() != map[bool]int{true: 999, false: 1000}[end == "end"] {
				t.Errorf("healed: %v, %v, %d", changes, err, w.last.Len())
			}
		})
	}
}

// U3: one bad child hides no other, for a scanner that has never seen it well either.
func TestFUSEBadChild(t *testing.T) {
	f := newFaulty(t)
	w := f.watch(Config{}, everything...)
	f.tell("lookup b EIO")
	next, err := newScanner(t, Config{Root: f.dir}).Scan(t.Context(), nil)
	want := []string{w.root + "/a", w.root + "/sub/x", w.root + "/z"}
	if got := paths(next); !slices.Equal(got, want) || !errors.Is(err, syscall.EIO) {
		t.Errorf("a new scanner found %q, %v, want %q", got, err, want)
	}
	f.tell("clear")
	w.heals()
}

// U1: the server of a subdirectory, or of the root, is killed; later another one is there.
func TestFUSEServerKilled(t *testing.T) {
	t.Run("root", func(t *testing.T) {
		f := newFaulty(t)
		const grace = 100 * time.Millisecond
		w := f.watch(Config{RootGrace: grace}, everything...)
		f.kill()
		// A root that does not answer is not a root that is missing: no grace ends.
		for range 6 {
			if err := w.unchanged(); !errors.Is(err, syscall.ENOTCONN) {
				t.Errorf("the error is %v", err)
			}
			wait(grace / 2)
		}
		if stale := w.stale(); !slices.Equal(stale, everything) {
			t.Errorf("%q are stale", stale)
		}
		f.detach()
		f.serve()
		w.remounted(len(everything))
	})
	t.Run("subdirectory", func(t *testing.T) {
		f := newFaulty(t)
		if err := bindAt(filepath.Join(f.top, "outside")); err != nil {
			t.Fatal(err)
		}
		w := f.watch(Config{Root: f.top}, "x", "y")
		f.kill()
		for range 3 {
			if err := w.unchanged(); !errors.Is(err, syscall.ENOTCONN) {
				t.Errorf("the error is %v", err)
			}
		}
		if stale := w.stale(); !slices.Equal(stale, []string{"dir/x", "dir/y"}) {
			t.Errorf("%q are stale", stale)
		}
		f.detach()
		f.serve()
		w.remounted(3)
	})
}

// remounted expects everything to be there again, perhaps as another instance, on what may be another device: then the root stays unconfirmed until RootGrace
// has passed (U5), but nothing that is seen is.
func (w *watched) remounted(entries int) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; wait(10 * time.Millisecond) {
		changes, err := w.scan()
		for _, c := range changes {
			if c.Kind != Replaced {
				w.t.Errorf("after the mount came back %s was %v", c.Entry.Path, c.Kind)
			}
		}
		if stale := w.stale(); len(stale) != 0 || w.last.Len() != entries {
			w.t.Errorf("after the mount came back: %q are stale of %q, %v", stale, paths(w.last), err)
		}
		if err == nil {
			break
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Path != w.root || time.Now().After(deadline) {
			w.t.Fatalf("after the mount came back: %v", err)
		}
	}
	w.heals()
}
