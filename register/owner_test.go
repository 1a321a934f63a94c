package register

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// X1: a plugin of another user is rejected, and nothing is sent to it.
func TestAllowedUIDs(t *testing.T) {
	bubble(t, Config{AllowedUIDs: []int{0, 7}}, func(w *world) {
		good := w.bind("good.sock", simfs.Plugin{UID: 7})
		bad := w.bind("bad.sock", simfs.Plugin{UID: 8})
		w.run()
		w.phase("good.sock", state.Registered)
		w.told(good, yes)
		w.phase("bad.sock", state.Rejected)
		want := "dial: uid 8 listens there, which is not allowed: run the plugin as an allowed user, or allow uid 8"
		if got := w.socket("bad.sock").LastError; got != want {
			t.Errorf("View shows %q", got)
		}
		w.pass(time.Minute)
		if r := bad.Record(); r.Dials != 1 || r.Conns != 0 || r.GetInfos != 0 || len(r.Notices) != 0 {
			t.Errorf("the plugin saw %+v", r)
		}
	})
}

// X1: who is not known is not allowed.
func TestAllowedUIDsUnknown(t *testing.T) {
	bubble(t, Config{AllowedUIDs: []int{0}, Peer: peerOf}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.phase("a.sock", state.Rejected)
		if got := w.socket("a.sock").LastError; got != "dial: "+errPeerUnknown.Error() {
			t.Errorf("View shows %q", got)
		}
		if r := p.Record(); r.Conns != 0 || r.GetInfos != 0 {
			t.Errorf("the plugin saw %+v", r)
		}
	})
}

// X1, C1: Windows has no uids.
func TestAllowedUIDsOnWindows(t *testing.T) {
	cfg := Config{AllowedUIDs: []int{0}}
	if errs := cfg.checkUIDs("windows"); len(errs) != 1 || !strings.Contains(errs[0].Error(), "Config.AllowedUIDs") {
		t.Errorf("the errors are %v", errs)
	}
	if errs := cfg.checkUIDs("linux"); errs != nil {
		t.Errorf("the errors are %v", errs)
	}
}

// L1: the core is told whose a connection is.
func TestAskedPeer(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			w.bind("a.sock", simfs.Plugin{UID: 1, PID: 2, Start: 3})
			if asked := s.ask(1, "a.sock"); asked.Peer == nil || *asked.Peer != (state.Peer{UID: 1, PID: 2, Start: 3}) {
				t.Errorf("the peer is %+v", asked.Peer)
			}
		})
	})
	bubble(t, Config{Peer: peerOf}, func(w *world) {
		onShell(w, func(s *shell) {
			w.bind("a.sock", simfs.Plugin{UID: 1, PID: 2, Start: 3})
			if asked := s.ask(1, "a.sock"); asked.Peer != nil {
				t.Errorf("the peer is %+v", asked.Peer)
			}
		})
	})
}

// D8: observe mode makes no root. The caller's Config stays as it is.
func TestObserveMakesNoRoot(t *testing.T) {
	fs := afero.NewMemMapFs()
	cfg := Config{Observe: true, Dial: dialUnix, Roots: []scanner.Config{{FS: fs, Root: "/none", MissingRoot: scanner.CreateRoot}}}
	m, err := NewManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if m.cfg.Roots[0].MissingRoot != scanner.WaitForRoot || cfg.Roots[0].MissingRoot != scanner.CreateRoot {
		t.Errorf("the roots are %+v and %+v", m.cfg.Roots, cfg.Roots)
	}
	if _, err := m.roots[0].scanner.Scan(t.Context(), nil); err == nil {
		t.Error("there is a root")
	}
	if exists, _ := afero.DirExists(fs, "/none"); exists {
		t.Error("a root was made")
	}
}

// X1: with a Dialer of one's own the owner is looked at wherever the filesystem is the operating system's, whatever other roots there are.
func TestOwnersOfMixedRoots(t *testing.T) {
	base := t.TempDir()
	dir, sim := filepath.Join(base, "dir"), filepath.Join(base, "sim")
	path := filepath.Join(dir, "a.sock")
	err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(sim, 0o755), os.WriteFile(path, nil, 0o600))
	info, statErr := os.Stat(path)
	if err = errors.Join(err, statErr); err != nil {
		t.Fatal(err)
	}
	if _, ok := ownerOf(info); !ok {
		t.Skip("the system has no owners")
	}
	t.Chdir(dir)
	for _, test := range []struct{ root, path string }{
		{dir, path},
		{dir + "/.", dir + "/./a.sock"},
		{sim + "/../dir", sim + "/../dir/a.sock"}, // beside the other root, though it begins with it
		{".", "./a.sock"},
		{"../dir", "../dir/a.sock"},
		{sim, path}, // not what the Manager would ask for
		{"/", path},
	} {
		for _, others := range [][]scanner.Config{nil, {{Root: sim, FS: simfs.New(simfs.Config{})}}} {
			asked := ""
			cfg := Config{
				AllowedUIDs: []int{os.Getuid() + 1},
				Peer:        simPeer,
				Roots:       append([]scanner.Config{{Root: test.root}}, others...),
				Dial: func(_ context.Context, e scanner.Entry) (net.Conn, error) {
					asked = e.Path
					return nil, errors.ErrUnsupported
				},
			}.withDefaults()
			_, err := cfg.Dial(t.Context(), scanner.Entry{Path: test.path})
			if failureOf(err) != state.Permanent || asked != "" {
				t.Errorf("root %s beside %d others: %s gave %v", test.root, len(others), test.path, err)
			}
			if len(others) == 0 || test.root == "/" || test.root == sim {
				continue
			}
			if _, err := cfg.Dial(t.Context(), scanner.Entry{Path: sim + "/a.sock"}); !errors.Is(err, errors.ErrUnsupported) || asked != sim+"/a.sock" {
				t.Errorf("beside root %s a socket that is not the system's gave %v", test.root, err)
			}
		}
	}
}
