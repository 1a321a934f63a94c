package register

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/state"
)

// otherProcess is a plugin in a process of its own.
type otherProcess struct {
	*exec.Cmd
	input io.Closer
}

// spawn starts a plugin in another process and waits until it listens.
func (n *realNode) spawn(path string) *otherProcess {
	n.Helper()
	p := &otherProcess{Cmd: exec.CommandContext(n.Context(), os.Args[0], "-test.run=^TestOtherProcess$")}
	p.Env = append(os.Environ(), "PLUGPOLL_SERVE="+path)
	input, err := p.StdinPipe()
	n.must(err)
	p.input = input
	output, err := p.StdoutPipe()
	n.must(err)
	n.must(p.Start())
	if got, err := output.Read(make([]byte, 100)); got == 0 {
		n.Fatal(err)
	}
	n.Cleanup(p.kill)
	return p
}

func (p *otherProcess) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// TestOtherProcess is no test but the plugin of spawn.
func TestOtherProcess(t *testing.T) {
	path := os.Getenv("PLUGPOLL_SERVE")
	if path == "" {
		return
	}
	serveOn(t, listenAt(t, path), "a")
	_, _ = os.Stdout.WriteString("serving\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// L1: the death of a process by SIGKILL is seen, and its successor.
func TestRealKill(t *testing.T) {
	n := newRealNode(t)
	path := n.at("a.sock")
	p := n.spawn(path)
	n.awaitRegistered(path)
	began := time.Now()
	p.kill()
	n.await(path, "unreachable", func(s state.SocketView) bool { return s.Phase == state.Unreachable })
	t.Logf("its death was seen after %v", time.Since(began))
	n.calls("Validate a", "Register a")
	n.must(os.Remove(path))
	n.spawn(path)
	n.awaitRegistered(path)
	n.calls("Deregister a", "Validate a", "Register a")
}

// L1: a server that closes its idle connections stays registered: it is the same process, and the handler sees nothing.
func TestRealIdleServer(t *testing.T) {
	n := newRealNode(t)
	path := n.at("a.sock")
	p := &realPlugin{name: "a", notified: make(chan *registerapi.RegistrationStatus, 100)}
	p.server = grpc.NewServer(grpc.WaitForHandlers(true), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 100 * time.Millisecond}))
	registerapi.RegisterRegistrationServer(p.server, p)
	l := n.listen(path)
	var served sync.WaitGroup
	served.Go(func() { _ = p.server.Serve(l) })
	t.Cleanup(func() {
		p.server.Stop()
		served.Wait()
	})
	for range 3 {
		n.acknowledged(p)
	}
	n.awaitRegistered(path)
	n.calls("Validate a", "Register a")
	if got := n.dialled("a.sock"); got < 3 || got > 4 {
		t.Errorf("%d dials", got)
	}
}
