package simfs

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Server is a running plugin: a gRPC server of pluginregistration.Registration behind a socket. Make it with FS.Bind and
// end it with Crash, Stop or FS.Close.
type Server struct {
	fs     *FS
	node   *node
	accept *accepts
	grpc   *grpc.Server
	served sync.WaitGroup // the accepting goroutine
	once   sync.Once      // of the end

	mu       sync.Mutex
	plugin   Plugin
	refused  int
	failures map[*Call]int // by the call's place in plugin
	record   Record
	changed  chan struct{} // closed and renewed at each change of record
	links    map[*link]struct{}
	down     bool // does not accept any more
}

// Bind makes a socket and starts a plugin behind it. Errors are *net.OpError: EADDRINUSE when the name is taken,
// net.ErrClosed after FS.Close, else those of Mknod.
//
// Remove and Rename of the socket leave the plugin and its connections alive; a later Bind at the same path is a new
// inode. As on Linux the plugin holds its inode, whose number is not used again before the plugin ended.
func (f *FS) Bind(name string, p Plugin) (*Server, error) {
	s := &Server{
		fs:       f,
		plugin:   p.clone(),
		failures: map[*Call]int{},
		changed:  make(chan struct{}),
		links:    map[*link]struct{}{},
		accept:   listen(name),
		grpc: grpc.NewServer(
			grpc.WaitForHandlers(true),
			grpc.ReadBufferSize(pipeSize),
			grpc.WriteBufferSize(pipeSize),
			grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: p.MaxIdle}),
		),
	}
	registrationv1.RegisterRegistrationServer(s.grpc, registration{s: s})
	err := f.enter(OpBind, name).Err
	if err == nil {
		err = f.bind(name, s)
	}
	if err != nil {
		s.grpc.Stop()
		return nil, netError("listen", OpBind, name, err)
	}
	return s, nil
}

func (f *FS) bind(name string, s *Server) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servers == nil {
		return net.ErrClosed
	}
	at, err := f.vacant(name)
	if errors.Is(err, syscall.EEXIST) {
		err = syscall.EADDRINUSE
	}
	if err != nil {
		return err
	}
	s.node = f.newNode(at.dir.device, fs.ModeSocket|0o755)
	s.node.server = s
	s.node.pins++
	f.attach(at.dir, at.name, s.node)
	f.servers[s] = struct{}{}
	s.served.Go(func() {
		// It ends by Crash or Stop and has nothing else to say.
		_ = s.grpc.Serve(s.accept)
	})
	return nil
}

// Change gives the plugin another behaviour from now on and counts failures and refusals anew. Calls under way go on as
// they began.
func (s *Server) Change(p Plugin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plugin = p.clone()
	s.refused = 0
	clear(s.failures)
}

// Record returns what happened so far.
func (s *Server) Record() Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.clone()
}

// Wait returns the first record that ready accepts, the present one included. When ctx ends first it returns the last
// record and the context's error.
func (s *Server) Wait(ctx context.Context, ready func(Record) bool) (Record, error) {
	for {
		s.mu.Lock()
		now, changed := s.record.clone(), s.changed
		s.mu.Unlock()
		if ready(now) {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}

// Crash ends the plugin as SIGKILL would: every connection is closed at once and the socket stays, with nobody behind
// it. It returns when its goroutines are gone, and may be called more than once and during Stop.
func (s *Server) Crash() {
	s.leave()
	s.hangUp(func(*link) bool { return true })
	s.grpc.Stop()
	s.gone()
}

// Stop ends the plugin gracefully: new dials are refused, clients get a GOAWAY, and calls under way are finished. It
// returns when every client has hung up; when ctx ends first the rest is as in Crash, and Stop returns the context's
// error. The socket stays: a plugin that tidies up calls FS.Remove before or after.
func (s *Server) Stop(ctx context.Context) error {
	s.leave()
	s.hangUp(func(l *link) bool { return l.silent })
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.grpc.GracefulStop()
	}()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = ctx.Err()
		s.Crash()
		<-drained
	}
	s.gone()
	return err
}

// leave makes dials refused.
func (s *Server) leave() {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	_ = s.accept.Close()
}

// hangUp closes the plugin's end of connections.
func (s *Server) hangUp(which func(*link) bool) {
	s.mu.Lock()
	var over []*link
	for l := range s.links {
		if which(l) {
			over = append(over, l)
		}
	}
	s.mu.Unlock()
	for _, l := range over {
		_ = l.server.Close()
	}
}

// gone waits for the last goroutine and gives the inode back.
func (s *Server) gone() {
	s.served.Wait()
	s.once.Do(func() {
		s.fs.mu.Lock()
		defer s.fs.mu.Unlock()
		delete(s.fs.servers, s)
		s.fs.unpin(s.node)
	})
}

// connect is the plugin's side of Dial.
func (s *Server) connect(name string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, syscall.ECONNREFUSED
	}
	s.record.Dials++
	s.note()
	if s.plugin.RefuseDials < 0 || s.refused < s.plugin.RefuseDials {
		s.refused++
		return nil, syscall.ECONNREFUSED
	}
	client, server, err := pair()
	if err != nil {
		return nil, err
	}
	l := &link{silent: s.plugin.Silent}
	forget := func() { s.forget(l) }
	l.client = clientEnd{
		end:   &end{Conn: client, addr: &net.UnixAddr{Name: name, Net: "unix"}, forget: forget},
		uid:   s.plugin.UID,
		pid:   s.plugin.PID,
		start: s.plugin.Start,
	}
	l.server = &end{Conn: server, addr: s.accept.addr, forget: forget}
	if !l.silent {
		s.accept.push(l.server)
	}
	s.links[l] = struct{}{}
	s.record.Conns++
	return l.client, nil
}

func (s *Server) forget(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.links[l]; open {
		delete(s.links, l)
		s.record.Conns--
		s.note()
	}
}

// note wakes those in Wait.
func (s *Server) note() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// registration is the service that the plugin serves.
type registration struct {
	registrationv1.UnimplementedRegistrationServer
	s *Server
}

func (r registration) GetInfo(ctx context.Context, _ *registrationv1.InfoRequest) (*registrationv1.PluginInfo, error) {
	r.s.mu.Lock()
	p := r.s.plugin.clone()
	r.s.record.GetInfos++
	r.s.note()
	fails := r.s.fails(&r.s.plugin.GetInfo)
	r.s.mu.Unlock()
	if err := answer(ctx, p.GetInfo, fails); err != nil {
		return nil, err
	}
	return &registrationv1.PluginInfo{
		Type:              p.Type,
		Name:              p.Name,
		Endpoint:          p.Endpoint,
		SupportedVersions: p.Versions,
	}, nil
}

func (r registration) NotifyRegistrationStatus(
	ctx context.Context, in *registrationv1.RegistrationStatus,
) (*registrationv1.RegistrationStatusResponse, error) {
	r.s.mu.Lock()
	call := r.s.plugin.Notify
	r.s.record.Notices = append(r.s.record.Notices, Notice{Registered: in.GetPluginRegistered(), Error: in.GetError()})
	r.s.note()
	fails := r.s.fails(&r.s.plugin.Notify)
	r.s.mu.Unlock()
	if err := answer(ctx, call, fails); err != nil {
		return nil, err
	}
	return &registrationv1.RegistrationStatusResponse{}, nil
}

// fails says whether the present call fails, and counts it.
func (s *Server) fails(call *Call) bool {
	if call.Code == codes.OK || call.Times > 0 && s.failures[call] >= call.Times {
		return false
	}
	s.failures[call]++
	return true
}

func answer(ctx context.Context, call Call, fails bool) error {
	if call.Delay > 0 {
		timer := time.NewTimer(call.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if fails {
		return status.Error(call.Code, "simulated failure")
	}
	return nil
}
