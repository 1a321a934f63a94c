//go:build linux

package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// farm is a process with any number of real plugins. Of each it says "listening" when its socket listens and is in place, "removed" when its socket is
// away, and "told" or "refused" when it is told what became of its registration.
type farm struct {
	*mouthpiece
	plugins map[string]*farmed // by path
	started int
}

// The modes of a farmed plugin besides the usual one.
const (
	hangs      = "hangs"       // GetInfo does not return until the order answer
	deaf       = "deaf"        // it listens and never accepts
	dead       = "dead"        // the socket is there and nobody listens
	goesAway   = "goes away"   // it says GOAWAY to everybody at once
	closesIdle = "closes idle" // it says GOAWAY to whoever has been silent for a tenth of a second
)

// farmed is one plugin.
type farmed struct {
	registerapi.UnimplementedRegistrationServer
	*mouthpiece
	pluginType, name, endpoint string
	accepts, asked             atomic.Int64
	stop                       func()

	mu    sync.Mutex
	path  string
	gate  chan struct{} // closed: GetInfo answers
	conns []net.Conn    // all that were accepted
}

func playFarm() {
	f := &farm{mouthpiece: newMouthpiece(), plugins: map[string]*farmed{}}
	obeyAll(f.mouthpiece, f.obey)
}

func (f *farm) obey(o order) (note, error) {
	p := f.plugins[o.Path]
	if p == nil && o.Do != "start" && o.Do != "all" && o.Do != "become" {
		return note{}, errors.New("there is no such plugin")
	}
	switch o.Do {
	case "all": // All, in turn
		for _, one := range o.All {
			if _, err := f.obey(one); err != nil {
				return note{}, fmt.Errorf("%s of %s: %w", one.Do, one.Path, err)
			}
		}
	case "start": // a plugin Name at Path, which may be taken by what a dead one has left
		if err := os.Remove(o.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return note{}, err
		}
		return note{}, f.start(o, o.Path)
	case "stop": // as a plugin should: it removes its socket and ends
		if err := os.Remove(o.Path); err != nil {
			return note{}, err
		}
		f.say(note{What: "removed", Path: o.Path})
		delete(f.plugins, o.Path)
		p.stop()
	case "unlink": // its socket is removed, and it lives on
		if err := os.Remove(o.Path); err != nil {
			return note{}, err
		}
		f.say(note{What: "removed", Path: o.Path})
	case "leave": // ended, and the socket is left
		delete(f.plugins, o.Path)
		p.stop()
	case "rebind": // the socket is removed and made anew at once, under Name; with Keep the old server lives on
		if err := os.Remove(o.Path); err != nil {
			return note{}, err
		}
		f.say(note{What: "removed", Path: o.Path})
		return note{}, f.succeed(p, o, o.Path)
	case "replace": // the same, but by a rename over the old socket
		f.started++
		return note{}, f.succeed(p, o, filepath.Join(filepath.Dir(o.Path), fmt.Sprintf(".new%d", f.started)))
	case "rename": // the socket, to To
		if err := os.Rename(o.Path, o.To); err != nil {
			return note{}, err
		}
		f.say(note{What: "listening", Path: o.To, Name: p.name})
		f.move(p, o.Path, o.To)
	case "moved": // somebody else has renamed it, to To
		f.move(p, o.Path, o.To)
	case "hang":
		p.hang()
	case "answer":
		p.answer()
	case "count":
		return note{Accepts: p.accepts.Load(), Asked: p.asked.Load()}, nil
	case "cut": // its connections, without a word
		p.cut()
	case "become": // the user UID
		return note{}, errors.Join(syscall.Setgroups(nil), syscall.Setgid(o.UID), syscall.Setuid(o.UID))
	default:
		return note{}, errors.New("a farm cannot do that")
	}
	return note{}, nil
}

// succeed has a plugin take over the path of p; it binds elsewhere if at is another path.
func (f *farm) succeed(p *farmed, o order, at string) error {
	if err := f.start(o, at); err != nil {
		return err
	}
	if !o.Keep {
		p.stop()
	}
	return nil
}

func (f *farm) move(p *farmed, from, to string) {
	delete(f.plugins, from)
	f.plugins[to] = p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path = to
}

// start has a plugin listen at a path, renamed to o.Path if that is another one.
func (f *farm) start(o order, at string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return err
	}
	began := clock()
	l.SetUnlinkOnClose(false)
	p := &farmed{mouthpiece: f.mouthpiece, pluginType: cmp.Or(o.Type, testType), name: o.Name, path: o.Path, endpoint: o.Endpoint, gate: make(chan struct{})}
	if o.Mode != hangs {
		p.answer()
	}
	p.serve(l, o.Mode)
	if at != o.Path {
		if err := os.Rename(at, o.Path); err != nil {
			return err
		}
		began = clock()
	}
	f.plugins[o.Path] = p
	f.say(note{At: began, What: "listening", Path: o.Path, Name: o.Name})
	return nil
}

func (p *farmed) serve(l *net.UnixListener, mode string) {
	p.stop = func() { _ = l.Close() }
	switch mode {
	case dead:
		_ = l.Close()
	case deaf:
	case goesAway:
		go p.goAway(l)
	default:
		var options []grpc.ServerOption
		if mode == closesIdle {
			options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 100 * time.Millisecond}))
		}
		server := grpc.NewServer(options...)
		registerapi.RegisterRegistrationServer(server, p)
		p.stop = server.Stop
		go func() { _ = server.Serve(counting{l, p}) }()
	}
}

// goAway answers every connection with empty SETTINGS and GOAWAY, and leaves it open until the other side closes it.
func (p *farmed) goAway(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.accepts.Add(1)
		go func() {
			_, _ = c.Write([]byte{
				0, 0, 0, 4, 0, 0, 0, 0, 0,
				0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			})
			_, _ = c.Read(make([]byte, 1<<10))
			_ = c.Close()
		}()
	}
}

// counting is a listener that keeps count of what it accepts.
type counting struct {
	net.Listener
	p *farmed
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.p.accepts.Add(1)
		l.p.mu.Lock()
		defer l.p.mu.Unlock()
		l.p.conns = append(l.p.conns, c)
	}
	return c, err
}

func (p *farmed) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *farmed) hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
		p.gate = make(chan struct{})
	default:
	}
}

func (p *farmed) answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
	default:
		close(p.gate)
	}
}

func (p *farmed) GetInfo(ctx context.Context, _ *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	p.asked.Add(1)
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	select {
	case <-gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &registerapi.PluginInfo{Type: p.pluginType, Name: p.name, Endpoint: p.endpoint, SupportedVersions: []string{"v1"}}, nil
}

func (p *farmed) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	n := note{At: clock(), What: "told", Name: p.name, Error: s.GetError()}
	if !s.GetPluginRegistered() {
		n.What = "refused"
	}
	p.mu.Lock()
	n.Path = p.path
	p.mu.Unlock()
	p.say(n)
	return &registerapi.RegistrationStatusResponse{}, nil
}
