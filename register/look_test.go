package register

import (
	"errors"
	"io/fs"
	"reflect"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

func (s *shell) look(name string) state.Looked {
	s.Helper()
	in := s.do(state.Look{Op: state.Op{ID: 5, Path: at(name)}})
	if len(in) != 1 {
		s.Fatalf("looking gave %+v", in)
	}
	return in[0].(state.Looked)
}

// L1: a look says what is at a path now, and when it began.
func TestLook(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			w.bind("a.sock", simfs.Plugin{})
			w.pass(time.Second)
			got := s.look("a.sock")
			if got.Err != nil || got.ID != 5 || got.Entry.Path != at("a.sock") || got.Entry.ID.Inode == 0 || time.Since(got.Started) != 0 {
				t.Errorf("the look gave %+v", got)
			}
			w.node.Inject(at("a.sock"), simfs.OpLstat, simfs.Fault{Err: syscall.EIO, Times: 1})
			if got := s.look("a.sock"); !errors.Is(got.Err, syscall.EIO) {
				t.Errorf("with EIO the look gave %+v", got)
			}
			w.remove("a.sock")
			if got := s.look("a.sock"); !errors.Is(got.Err, fs.ErrNotExist) {
				t.Errorf("without a socket the look gave %+v", got)
			}
		})
	})
}

// S1: a look that hangs is given up with its Cancel. At the end it is waited for 1 s, and then listed.
func TestLookHangs(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			w.bind("a.sock", simfs.Plugin{})
			w.node.Inject(at("a.sock"), simfs.OpLstat, simfs.Fault{Hang: true})
			op := state.Op{ID: 5, Path: at("a.sock")}
			s.expect("looking", s.do(state.Look{Op: op}))
			if in := s.do(state.Cancel{ID: 5}); len(in) != 1 || in[0].(state.Looked).Err == nil {
				t.Errorf("Cancel gave %+v", in)
			}
			w.node.ClearFaults()
			synctest.Wait()
			w.node.Inject(at("a.sock"), simfs.OpLstat, simfs.Fault{Hang: true})
			s.expect("looking", s.do(state.Look{Op: op}))
			s.cancel()
			s.l.stop()
			if by := time.Until(s.l.wakeAt()); s.l.finished(time.Now()) || by != time.Second {
				t.Errorf("the look is waited for %v", by)
			}
			w.pass(time.Second)
			if !s.l.finished(time.Now()) {
				t.Error("the look is still waited for")
			}
			stuck, ok := errors.AsType[*StuckError](s.l.left())
			if !ok || !reflect.DeepEqual(stuck.Calls, []string{"lstat /plugins/a.sock"}) {
				t.Errorf("what is left is %v", stuck)
			}
			w.node.ClearFaults()
			synctest.Wait()
			if in := s.inputs(); len(in) != 1 || in[0].(state.Looked).Err == nil {
				t.Errorf("the end of the call gave %+v", in)
			}
		})
	})
}

// With several roots the one that has shown a path is looked into.
func TestLookRoot(t *testing.T) {
	bubble(t, Config{Roots: []scanner.Config{{Root: "/plugins"}, {Root: "/more"}}}, func(w *world) {
		w.must(w.node.MkdirAll("/more", 0o755))
		w.bind("/more/a.sock", simfs.Plugin{})
		onShell(w, func(s *shell) {
			if got := s.look("/more/a.sock"); !errors.Is(got.Err, errNoRoot) {
				t.Errorf("before a scan the look gave %+v", got)
			}
			snapshot, err := w.m.roots[1].scanner.Scan(w.Context(), nil)
			w.must(err)
			w.m.roots[1].last = snapshot
			if got := s.look("/more/a.sock"); got.Err != nil || got.Entry.Path != "/more/a.sock" {
				t.Errorf("the look gave %+v", got)
			}
		})
	})
}

// U6: Rescan has one scan 20 ms after the end of the last one, or of the one that runs; the scan after that is at the usual pace.
func TestRescan(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			r := s.l.roots[0]
			due := func(want time.Duration) {
				t.Helper()
				if got := time.Until(r.next); got != want {
					t.Errorf("the next scan is due in %v, want %v", got, want)
				}
			}
			end := func() { s.l.takeScan(scanned{root: r, snapshot: r.last, started: time.Now(), ended: time.Now()}) }
			s.l.scans = 10
			end()
			due(scanner.DefaultInterval)
			s.l.carryOut(state.Rescan{Root: "elsewhere"})
			due(scanner.DefaultInterval)
			s.l.carryOut(state.Rescan{Root: root})
			due(20 * time.Millisecond)
			w.pass(20 * time.Millisecond)
			end()
			due(scanner.DefaultInterval)
			w.pass(100 * time.Millisecond)
			s.l.carryOut(state.Rescan{Root: root})
			if r.next.After(time.Now()) {
				t.Errorf("it is not due: %v", time.Until(r.next))
			}
			r.busy = true
			s.l.carryOut(state.Rescan{Root: root})
			end()
			due(20 * time.Millisecond)
			end()
			due(scanner.DefaultInterval)
			s.l.scans = 0
		})
	})
}
