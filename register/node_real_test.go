//go:build unix

package register

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// realNode is a directory of real sockets with a Manager on it.
type realNode struct {
	*testing.T
	dir string
	m   *Manager
	h   *taker

	mu    sync.Mutex
	dials []string // the names that were dialled
}

// newRealNode starts a Manager on a fresh directory. When the test ends it is stopped, and no socket and no goroutine may be left (S3).
func newRealNode(t *testing.T) *realNode {
	t.Helper()
	// t.TempDir has the test's name in it, which makes it too long for a socket's path.
	dir, err := os.MkdirTemp("", "r") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return startRealNode(t, dir)
}

func startRealNode(t *testing.T, dir string, change ...func(*Config)) *realNode {
	t.Helper()
	n := &realNode{T: t, dir: dir, h: newTaker()}
	log := &output{}
	cfg := Config{
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: log}),
		Roots:  []scanner.Config{{Root: dir, Interval: 10 * time.Millisecond}},
		Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
			n.mu.Lock()
			n.dials = append(n.dials, filepath.Base(e.Path))
			n.mu.Unlock()
			return dialUnix(ctx, e)
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	m, err := NewManager(cfg)
	n.must(err)
	n.m = m
	n.must(m.AddHandler(testType, n.h))
	before, goroutines := sockets(t), goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if t.Failed() {
			t.Log("log:\n" + log.String())
		}
		goleak.VerifyNone(t, goroutines)
		if after := sockets(t); after != before {
			t.Errorf("S3: %d sockets were open before and %d are after", before, after)
		}
	})
	return n
}

// sockets counts the process's open ones.
func sockets(t testing.TB) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range open {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			count++
		}
	}
	return count
}

func (n *realNode) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// await waits until View shows what is wanted of a socket. Every change of it comes with an event.
func (n *realNode) await(path string, what string, wanted func(state.SocketView) bool) state.SocketView {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), 20*time.Second)
	defer cancel()
	var s state.SocketView
	for range n.m.Events(ctx) {
		if s = find(n.m.View(), path); wanted(s) {
			return s
		}
	}
	n.Fatalf("%s is not %s: %+v", scanner.Quote(path), what, s)
	return s
}

func (n *realNode) awaitRegistered(path string) {
	n.Helper()
	n.await(path, "registered", func(s state.SocketView) bool { return s.Phase == state.Registered && s.Acknowledged == state.AckYes })
}

func (n *realNode) awaitGone(path string) {
	n.Helper()
	n.await(path, "gone", func(s state.SocketView) bool { return s.Path == "" })
}

func (n *realNode) dialled(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, d := range n.dials {
		if d == name {
			count++
		}
	}
	return count
}

// realPlugin is a plugin of testType that serves a real socket.
type realPlugin struct {
	registerapi.UnimplementedRegistrationServer
	name     string
	server   *grpc.Server
	notified chan *registerapi.RegistrationStatus
}

func (p *realPlugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: testType, Name: p.name, SupportedVersions: []string{"v1"}}, nil
}

func (p *realPlugin) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	p.notified <- s
	return &registerapi.RegistrationStatusResponse{}, nil
}

// serve starts a plugin. The socket stays when it ends.
func (n *realNode) serve(path, name string) *realPlugin {
	n.Helper()
	return serveOn(n, n.listen(path), name)
}

// listen makes a socket that is never seen before it listens: between bind and listen a dial is refused.
func (n *realNode) listen(path string) net.Listener {
	n.Helper()
	hidden := filepath.Join(filepath.Dir(path), ".bound")
	l, err := (&net.ListenConfig{}).Listen(n.Context(), "unix", hidden)
	n.must(err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	n.must(os.Rename(hidden, path))
	return l
}

func serveOn(t testing.TB, l net.Listener, name string) *realPlugin {
	p := &realPlugin{name: name, server: grpc.NewServer(grpc.WaitForHandlers(true)), notified: make(chan *registerapi.RegistrationStatus, 100)}
	registerapi.RegisterRegistrationServer(p.server, p)
	var served sync.WaitGroup
	served.Go(func() { _ = p.server.Serve(l) })
	t.Cleanup(func() {
		p.server.Stop()
		served.Wait()
	})
	return p
}

// acknowledged waits until the plugin is told that it is registered.
func (n *realNode) acknowledged(p *realPlugin) {
	n.Helper()
	select {
	case s := <-p.notified:
		if !s.GetPluginRegistered() {
			n.Errorf("%s was told %v", p.name, s)
		}
	case <-time.After(20 * time.Second):
		n.Fatalf("%s was not told", p.name)
	}
}

func (n *realNode) at(name string) string { return filepath.Join(n.dir, name) }

func (n *realNode) calls(want ...string) {
	n.Helper()
	if got := n.h.take(); !slices.Equal(got, want) {
		n.Errorf("the handler's calls were\n%q, want\n%q", got, want)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
