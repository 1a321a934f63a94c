package register

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// spoken is a speaker and its plugins without gRPC: all that is left of a plugin are its answers, and all that is left of a connection is its end. The sockets
// are files of the simulated node; who listens behind one is known by its inode.
type spoken struct {
	node *simfs.FS

	mu      sync.Mutex
	plugins map[uint64]*memoryPlugin
}

type memoryPlugin struct {
	in    *spoken
	inode uint64

	mu      sync.Mutex
	p       simfs.Plugin
	asked   int
	refused int
	ended   bool
	conns   map[*connection]bool
}

// noRPC is the gRPC part of a connection that has none.
type noRPC struct{ grpc.ClientConnInterface }

func (noRPC) Close() error { return nil }

// noConn is the network part.
type noConn struct{ net.Conn }

func (noConn) Close() error { return nil }

func (m *spoken) inode(path string) (uint64, error) {
	info, err := m.node.Stat(path) // Lstat may be made to hang
	if err != nil {
		return 0, err
	}
	_, inode, _ := info.Sys().(scanner.Identifier).Identity()
	return inode, nil
}

func (m *spoken) bind(path string, p simfs.Plugin) (server, error) {
	if err := m.node.Mknod(path, fs.ModeSocket|0o755); err != nil {
		return nil, err
	}
	inode, err := m.inode(path)
	if err != nil {
		return nil, err
	}
	s := &memoryPlugin{in: m, inode: inode, p: p, conns: map[*connection]bool{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plugins[inode] = s
	return s, nil
}

// hangUp ends all connections.
func (s *memoryPlugin) hangUp(goAway bool) {
	s.mu.Lock()
	conns := s.conns
	s.conns = map[*connection]bool{}
	s.mu.Unlock()
	for c := range conns {
		c.raw.end(goAway)
	}
}

func (s *memoryPlugin) leave(goAway bool) {
	s.in.mu.Lock()
	delete(s.in.plugins, s.inode)
	s.in.mu.Unlock()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.hangUp(goAway)
}

func (s *memoryPlugin) Crash() { s.leave(false) }

func (s *memoryPlugin) Stop(context.Context) error {
	s.leave(true)
	return nil
}

func (s *memoryPlugin) Change(p simfs.Plugin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p, s.asked, s.refused = p, 0, 0
}

func (m *spoken) ask(ctx context.Context, e scanner.Entry) (state.Info, *connection, error) {
	inode, err := m.inode(e.Path)
	if err != nil {
		return state.Info{}, nil, err
	}
	if inode != e.ID.Inode {
		return state.Info{}, nil, errStale
	}
	m.mu.Lock()
	s := m.plugins[inode]
	m.mu.Unlock()
	if s == nil {
		return state.Info{}, nil, syscall.ECONNREFUSED
	}
	s.mu.Lock()
	p := s.p
	if s.refused++; s.refused <= p.RefuseDials {
		s.mu.Unlock()
		return state.Info{}, nil, syscall.ECONNREFUSED
	}
	s.asked++
	fails := p.GetInfo.Code != codes.OK && (p.GetInfo.Times == 0 || s.asked <= p.GetInfo.Times)
	c := &connection{rpc: noRPC{}, raw: &plain{Conn: noConn{}, release: func() {}}, peer: &state.Peer{UID: p.UID, PID: p.PID, Start: p.Start}}
	s.conns[c] = true
	s.mu.Unlock()
	switch err := s.wait(ctx, p.GetInfo.Delay, DefaultInfoTimeout); {
	case err != nil:
		return state.Info{}, nil, err
	case fails:
		return state.Info{}, nil, &callError{call: "GetInfo", text: "simulated failure", code: p.GetInfo.Code}
	}
	if p.MaxIdle > 0 {
		time.AfterFunc(p.MaxIdle, func() { c.raw.end(true) })
	}
	return state.Info{Type: p.Type, Name: p.Name, Endpoint: p.Endpoint, Versions: p.Versions}, c, nil
}

// wait lets a call take its time. It fails as it would if the plugin ended meanwhile.
func (s *memoryPlugin) wait(ctx context.Context, d, limit time.Duration) error {
	if d > 0 {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return io.EOF
	}
	return nil
}

func (m *spoken) notify(ctx context.Context, c *connection, n state.Notify) error {
	inode, err := m.inode(n.Path)
	if err != nil {
		return err
	}
	m.mu.Lock()
	s := m.plugins[inode]
	m.mu.Unlock()
	if over, _ := c.raw.watch(c.raw.tell); over || s == nil {
		return errors.New("the plugin closed the connection")
	}
	s.mu.Lock()
	p := s.p
	s.mu.Unlock()
	if err := s.wait(ctx, p.Notify.Delay, DefaultNotifyTimeout); err != nil {
		return err
	}
	if p.Notify.Code != codes.OK {
		return &callError{call: "NotifyRegistrationStatus", text: "simulated failure", code: p.Notify.Code}
	}
	return nil
}

// TestRandomMemory is TestRandom without gRPC, and therefore with ten times as much happening.
func TestRandomMemory(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if *randomSeed != 0 {
		seeds = []uint64{*randomSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			runAccident(t, seed, 10**randomOps/len(seeds), simfs.Config{Stable: true}, Config{HandlerTimeout: 5 * time.Second}, func(w *world) func(string, simfs.Plugin) (server, error) {
				m := &spoken{node: w.node, plugins: map[uint64]*memoryPlugin{}}
				w.m.client = m
				return m.bind
			})
		})
	}
}
