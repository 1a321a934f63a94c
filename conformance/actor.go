package conformance

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// actor is a plugin of the suite, a gRPC server on a socket of the operating system.
type actor struct {
	registerapi.UnimplementedRegistrationServer
	name     string
	file     string   // of its socket, below the root; empty: its name
	kind     string   // empty: pluginType
	endpoint string   // that it announces
	versions []string // nil: 1.0.0

	delay   time.Duration // of GetInfo
	deaf    bool          // Notify fails
	foreign bool          // it does not offer the service
	rude    bool          // it closes each connection at once

	stage  *stage
	path   string
	server *grpc.Server
	socket *counted
}

// play has a plugin listen in the root, and returns when it does.
func (s *stage) play(a *actor) time.Time { return s.playAt(a, cmp.Or(a.file, a.name)) }

// playAt has it listen at another name first, from which it is renamed.
func (s *stage) playAt(a *actor, at string) time.Time {
	a.stage, a.path = s, s.path(cmp.Or(a.file, a.name))
	socket, err := listen(s.path(at))
	must(err)
	began := time.Now()
	a.socket = &counted{UnixListener: socket, rude: a.rude}
	a.server = grpc.NewServer(grpc.UnknownServiceHandler(a.unknown))
	if !a.foreign {
		registerapi.RegisterRegistrationServer(a.server, a)
	}
	s.mu.Lock()
	s.actors = append(s.actors, a)
	s.mu.Unlock()
	go func() { _ = a.server.Serve(a.socket) }()
	if s.path(at) != a.path {
		must(os.Rename(s.path(at), a.path))
		began = time.Now()
	}
	return began
}

// maxAddress is the longest path that a socket can be bound at everywhere.
const maxAddress = 103

// listen binds a long path through a handle of its directory, where there is /proc.
func listen(path string) (*net.UnixListener, error) {
	if len(path) > maxAddress && runtime.GOOS == "linux" {
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		defer dir.Close() //nolint:errcheck // nothing was written
		path = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}

// die ends it as a kill does: its connections end, its socket stays.
func (a *actor) die() { a.server.Stop() }

// leave ends it as it should: it removes its socket first.
func (a *actor) leave() time.Time {
	must(os.Remove(a.path))
	began := time.Now()
	a.die()
	return began
}

// GetInfo is one of the plugin's calls.
func (a *actor) GetInfo(ctx context.Context, _ *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	a.stage.note(event{what: asked, name: a.name, path: a.path})
	if err := pause(ctx, a.delay); err != nil {
		return nil, err
	}
	return a.info(), nil
}

func (a *actor) info() *registerapi.PluginInfo {
	versions := a.versions
	if versions == nil {
		versions = []string{"1.0.0"}
	}
	return &registerapi.PluginInfo{Type: cmp.Or(a.kind, pluginType), Name: a.name, Endpoint: a.endpoint, SupportedVersions: versions}
}

// unknown is any call of a service that it does not offer.
func (a *actor) unknown(any, grpc.ServerStream) error {
	a.stage.note(event{what: asked, name: a.name, path: a.path})
	return status.Error(codes.Unimplemented, "unknown service")
}

// NotifyRegistrationStatus is one of the plugin's calls.
func (a *actor) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	what := refused
	if s.GetPluginRegistered() {
		what = told
	}
	a.stage.note(event{what: what, name: a.name, path: a.path, text: s.GetError()})
	if a.deaf {
		return nil, status.Error(codes.Internal, "not today")
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// counted counts its connections.
type counted struct {
	*net.UnixListener
	rude bool

	mu        sync.Mutex
	all, open int
}

func (l *counted) Accept() (net.Conn, error) {
	for {
		conn, err := l.UnixListener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		l.all++
		l.open++
		l.mu.Unlock()
		c := &countedConn{Conn: conn, l: l}
		if !l.rude {
			return c, nil
		}
		_ = c.Close()
	}
}

// count returns how many connections there were, and how many there are.
func (l *counted) count() (all, open int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all, l.open
}

type countedConn struct {
	net.Conn
	l    *counted
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.l.mu.Lock()
		c.l.open--
		c.l.mu.Unlock()
	})
	return c.Conn.Close()
}
