//go:build unix

package register

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
)

// crowd is many real plugins in one directory, all served by this process.
type crowd struct {
	registerapi.UnimplementedRegistrationServer
	dir string

	mu     sync.Mutex
	wanted int // acknowledgements still to come
	all    chan struct{}
}

type member struct {
	*crowd
	name string
}

func (m member) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: m.name, SupportedVersions: []string{"1.0.0"}}, nil
}

func (m member) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wanted--; m.wanted == 0 {
		close(m.all)
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// expect returns a channel that closes when n plugins were told that they are registered.
func (c *crowd) expect(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted, c.all = n, make(chan struct{})
	return c.all
}

func newCrowd(b *testing.B, n int, hidden bool) *crowd {
	b.Helper()
	dir, err := os.MkdirTemp("", "b") //nolint:usetesting // b.TempDir is too long for a socket's path
	if err != nil {
		b.Fatal(err)
	}
	c := &crowd{dir: dir}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	for i := range n {
		path := c.socket(i)
		if hidden {
			path = c.hidden(i)
		}
		l, err := (&net.ListenConfig{}).Listen(b.Context(), "unix", path)
		if err != nil {
			b.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		server := grpc.NewServer()
		registerapi.RegisterRegistrationServer(server, member{c, fmt.Sprintf("p%d.example.com", i)})
		var served sync.WaitGroup
		served.Go(func() { _ = server.Serve(l) })
		b.Cleanup(func() {
			server.Stop()
			served.Wait()
		})
	}
	return c
}

func (c *crowd) socket(i int) string { return filepath.Join(c.dir, fmt.Sprintf("%d.sock", i)) }
func (c *crowd) hidden(i int) string { return filepath.Join(c.dir, fmt.Sprintf(".%d", i)) }

// start runs a Manager with the default settings. stop ends it.
func (c *crowd) start(b *testing.B) (m *Manager, stop func()) {
	return c.startAt(b, scanner.DefaultInterval)
}

func (c *crowd) startAt(b *testing.B, interval time.Duration) (m *Manager, stop func()) {
	m, err := NewManager(Config{Roots: []scanner.Config{{Root: c.dir, Interval: interval}}})
	if err != nil {
		b.Fatal(err)
	}
	if err := m.AddHandler(registerapi.CSIPlugin, record.Handler{}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return m, func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

func wait(b *testing.B, done <-chan struct{}) {
	b.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		b.Fatal("not all were registered within a minute")
	}
}

// BenchmarkRegister is the time from the start of a Manager, with the sockets in place, to the last plugin that is told that it is registered. The time of
// the plugins, which are in this process, is in it.
func BenchmarkRegister(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("plugins=%d", n), func(b *testing.B) {
			c := newCrowd(b, n, false)
			b.ReportAllocs()
			for b.Loop() {
				all := c.expect(n)
				_, stop := c.start(b)
				wait(b, all)
				b.StopTimer()
				stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/plugin")
		})
	}
}

// BenchmarkAppear is the time from the appearance of all sockets, under a Manager that runs with the default interval, to the last acknowledgement. They come
// right after a scan, which is the worst moment: a whole interval passes before the next one.
func BenchmarkAppear(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("plugins=%d", n), func(b *testing.B) {
			c := newCrowd(b, n, true)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				m, stop := c.start(b)
				<-m.Synced()
				all := c.expect(n)
				b.StartTimer()
				for i := range n {
					if err := os.Rename(c.hidden(i), c.socket(i)); err != nil {
						b.Fatal(err)
					}
				}
				wait(b, all)
				b.StopTimer()
				stop()
				for i := range n {
					if err := os.Rename(c.socket(i), c.hidden(i)); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/plugin")
		})
	}
}
