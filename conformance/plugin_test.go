package conformance_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/conformance"
)

// fakePlugin is a plugin that keeps all rules, but for what is overridden.
type fakePlugin struct {
	registerapi.UnimplementedRegistrationServer
	info     func(call int64) (*registerapi.PluginInfo, error)
	notify   func(call int64, s *registerapi.RegistrationStatus) error
	listener func(net.Listener) net.Listener
	mute     bool // offers no service
	absent   bool // does not listen
	stays    bool // does not make its socket anew

	path     string
	asked    atomic.Int64
	notified atomic.Int64
	mu       sync.Mutex
	servers  []*grpc.Server
	over     bool
	served   sync.WaitGroup
}

func goodInfo() *registerapi.PluginInfo {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: "a.example.com", SupportedVersions: []string{"1.0.0"}}
}

func (p *fakePlugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	call := p.asked.Add(1)
	if p.info != nil {
		return p.info(call)
	}
	return goodInfo(), nil
}

func (p *fakePlugin) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	call := p.notified.Add(1)
	if p.notify != nil {
		if err := p.notify(call, s); err != nil {
			return nil, err
		}
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// start serves at a path until the test ends.
func (p *fakePlugin) start(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pp") //nolint:usetesting // t.TempDir is too long for the address of a socket
	if err != nil {
		t.Fatal(err)
	}
	p.path = filepath.Join(dir, "p.sock")
	if !p.absent {
		if err := p.listen(); err != nil {
			t.Fatal(err)
		}
	}
	if !p.stays && !p.absent {
		p.served.Go(p.watch)
	}
	t.Cleanup(func() {
		p.end()
		p.served.Wait()
		_ = os.RemoveAll(dir)
	})
}

// listen serves at the path, unless the plugin has ended: a server that begins after that would be stopped by nobody.
func (p *fakePlugin) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	l, err := net.Listen("unix", p.path)
	if err != nil {
		return err
	}
	if p.listener != nil {
		l = p.listener(l)
	}
	server := grpc.NewServer()
	if !p.mute {
		registerapi.RegisterRegistrationServer(server, p)
	}
	p.servers = append(p.servers, server)
	p.served.Go(func() { _ = server.Serve(l) })
	return nil
}

// watch makes the socket anew.
func (p *fakePlugin) watch() {
	for {
		<-time.After(2 * time.Millisecond)
		p.mu.Lock()
		over := p.over
		p.mu.Unlock()
		if over {
			return
		}
		if _, err := os.Lstat(p.path); errors.Is(err, fs.ErrNotExist) {
			_ = p.listen()
		}
	}
}

func (p *fakePlugin) end() {
	p.mu.Lock()
	p.over = true
	servers := p.servers
	p.mu.Unlock()
	for _, s := range servers {
		s.Stop()
	}
}

// announces has the plugin say something else of itself.
func announces(change func(*registerapi.PluginInfo)) func(*fakePlugin) {
	return func(p *fakePlugin) {
		p.info = func(int64) (*registerapi.PluginInfo, error) {
			info := goodInfo()
			change(info)
			return info, nil
		}
	}
}

// brokenPlugins has for each rule what makes a good plugin break it.
var brokenPlugins = map[string]func(*fakePlugin){
	"P1":          func(p *fakePlugin) { p.absent = true },
	"P2":          func(p *fakePlugin) { p.mute = true },
	"R16":         announces(func(i *registerapi.PluginInfo) { i.SupportedVersions = slices.Repeat([]string{"1.0.0"}, 65) }),
	"R16/control": announces(func(i *registerapi.PluginInfo) { i.SupportedVersions = append(i.SupportedVersions, "1.1\n") }),
	"P3": func(p *fakePlugin) {
		p.info = func(call int64) (*registerapi.PluginInfo, error) {
			info := goodInfo()
			if call%2 == 0 {
				info.SupportedVersions = []string{"1.1.0"}
			}
			return info, nil
		}
	},
	"P4":        announces(func(i *registerapi.PluginInfo) { i.Type = "csiplugin" }),
	"P5":        announces(func(i *registerapi.PluginInfo) { i.Name = "a_b" }),
	"P6":        announces(func(i *registerapi.PluginInfo) { i.SupportedVersions = []string{"0.3.0"} }),
	"P5/none":   announces(func(i *registerapi.PluginInfo) { i.Name = "" }),
	"P6/none":   announces(func(i *registerapi.PluginInfo) { i.SupportedVersions = nil }),
	"X5/scheme": announces(func(i *registerapi.PluginInfo) { i.Endpoint = "tcp://127.0.0.1:80" }),
	"X5":        announces(func(i *registerapi.PluginInfo) { i.Endpoint = "csi.sock" }),
	"P7":        announces(func(i *registerapi.PluginInfo) { i.Endpoint = filepath.Join(os.TempDir(), "nobody", "csi.sock") }),
	"P8": func(p *fakePlugin) {
		p.listener = func(l net.Listener) net.Listener { return &single{Listener: l, free: make(chan struct{}, 1)} }
	},
	"P9": func(p *fakePlugin) {
		p.listener = func(l net.Listener) net.Listener { return fragile{l, p} }
	},
	"P10": func(p *fakePlugin) {
		p.notify = func(call int64, _ *registerapi.RegistrationStatus) error {
			if call == 2 {
				return status.Error(codes.AlreadyExists, "registered already")
			}
			return nil
		}
	},
	"P11": func(p *fakePlugin) {
		var told, refused atomic.Bool
		p.notify = func(call int64, _ *registerapi.RegistrationStatus) error {
			told.Store(call == 4) // the first time of P11
			return nil
		}
		p.info = func(int64) (*registerapi.PluginInfo, error) {
			if told.Load() && refused.CompareAndSwap(false, true) {
				return nil, status.Error(codes.FailedPrecondition, "registered already")
			}
			return goodInfo(), nil
		}
	},
	"P12": func(p *fakePlugin) { p.stays = true },
	"R3": func(p *fakePlugin) {
		p.notify = func(_ int64, s *registerapi.RegistrationStatus) error {
			if !s.GetPluginRegistered() {
				go p.end()
			}
			return nil
		}
	},
}

// single takes one connection at a time, and closes others when that does not end soon.
type single struct {
	net.Listener
	free chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case s.free <- struct{}{}:
			return &onlyConn{Conn: conn, free: s.free}, nil
		case <-time.After(time.Second):
			_ = conn.Close()
		}
	}
}

type onlyConn struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

func (c *onlyConn) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}

// fragile ends the plugin when a connection ends in the middle of its first message.
type fragile struct {
	net.Listener
	p *fakePlugin
}

func (f fragile) Accept() (net.Conn, error) {
	conn, err := f.Listener.Accept()
	return &fragileConn{Conn: conn, p: f.p}, err
}

type fragileConn struct {
	net.Conn
	p    *fakePlugin
	read atomic.Int64
	dies sync.Once
}

func (c *fragileConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if total := c.read.Add(int64(n)); err != nil && total > 0 && total < 30 {
		c.dies.Do(func() {
			c.p.mu.Lock()
			c.p.over = true
			c.p.mu.Unlock()
			_ = os.Remove(c.p.path)
		})
	}
	return n, err
}

func (p *fakePlugin) subject() conformance.PluginSubject {
	return conformance.PluginSubject{Socket: p.path, Notifies: true, Rejects: true, Remakes: true, Patience: 2 * time.Second}
}

func TestPluginBites(t *testing.T) {
	complete(t, conformance.Plugin(conformance.PluginSubject{}), slices.Collect(maps.Keys(brokenPlugins)))
	for id, breaks := range brokenPlugins {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			p := &fakePlugin{}
			breaks(p)
			p.start(t)
			bites(t, conformance.Plugin(p.subject()), ruleOf(id))
		})
	}
}

func TestPluginHolds(t *testing.T) {
	for name, change := range map[string]func(*registerapi.PluginInfo){
		registerapi.CSIPlugin: func(*registerapi.PluginInfo) {},
		registerapi.DevicePlugin: func(i *registerapi.PluginInfo) {
			i.Type, i.Name, i.SupportedVersions = registerapi.DevicePlugin, "example.com/gpu", []string{"v1beta1"}
		},
		registerapi.DRAPlugin: func(i *registerapi.PluginInfo) {
			i.Type, i.Name, i.SupportedVersions = registerapi.DRAPlugin, "gpu.example.com", []string{"v1.DRAPlugin"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &fakePlugin{}
			announces(change)(p)
			p.start(t)
			bites(t, conformance.Plugin(p.subject()), "")
		})
	}
}

// What a subject does not allow is not done to it.
func TestPluginIsOnlyAsked(t *testing.T) {
	p := &fakePlugin{stays: true}
	p.start(t)
	before, err := os.Lstat(p.path)
	if err != nil {
		t.Fatal(err)
	}
	conformance.Test(t, conformance.Plugin(conformance.PluginSubject{Socket: p.path}))
	if n := p.notified.Load(); n > 0 {
		t.Errorf("the plugin was told something %d times", n)
	}
	if after, err := os.Lstat(p.path); err != nil || !os.SameFile(before, after) {
		t.Errorf("its socket was touched: %v", err)
	}
}
