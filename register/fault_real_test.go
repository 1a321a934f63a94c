//go:build linux

package register

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/state"
)

// faultNode is a directory with plugins in another process, for a Manager in this one.
type faultNode struct {
	*realNode        // after manage
	base      string // the root's parent
	farm      *child
	log       *output
}

// faults are what happens to real processes and their sockets, with what the contract demands then.
var faults = map[string]struct {
	demands string
	happens func(*faultNode)
}{
	"restarted at once after a crash": {"R5, R6: the new instance takes the old one's place, each call once", crashAndRestart},
	"stopped by a signal":             {"L1: a plugin that is stopped and not dead stays registered", stopped},
	"renamed over":                    {"R6: Deregister, Validate, Register, back to back", renamedOver},
	"removed and bound by another":    {"R6: so too if the old process lives on", boundByAnother},
	"100 dead sockets at start":       {"O1, R17: one line for each, and one connect for each try", hundredDead},
	"never accepts":                   {"R10, R17: it costs its own time only, and one connection for each try", neverAccepts},
	"GOAWAY for ever":                 {"R17: one connection for each try", goawayForEver},
	"registered 1000 times":           {"N3: one connection, the same goroutines and descriptors", thousandTimes},
	"root removed and made again":     {"D7, U5: gone after the grace, and found again", rootMadeAgain},
	"root renamed away and back":      {"D7, U5: gone after the grace, and found again", rootRenamed},
	"subdirectory renamed 60 times":   {"D6, D7: each socket is removed and added, no call twice", subdirectoryRenamed},
	"renamed to a dot name":           {"D3: gone; back under a visible name it is an addition", renamedTo(".a.sock")},
	"renamed out of the tree":         {"D6: gone; back in the tree it is an addition", renamedTo("../a.sock")},
	"endpoint removed alone":          {"R5: nothing happens; the registration socket is what counts", endpointRemoved},
	"another user's":                  {"X1: without a list of users it is registered", anotherUsers},
}

// TestFaults has each happen.
func TestFaults(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Log(fault.demands)
			fault.happens(newFaultNode(t))
		})
	}
}

// newFaultNode makes one with an empty root and without a Manager.
func newFaultNode(t *testing.T) *faultNode {
	t.Helper()
	base, err := os.MkdirTemp("", "f") //nolint:usetesting // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	f := &faultNode{realNode: &realNode{T: t, dir: filepath.Join(base, "r")}, base: base, farm: startProcess(t, "farm"), log: &output{}}
	f.must(os.Mkdir(f.dir, 0o755))
	return f
}

// manage starts a Manager.
func (f *faultNode) manage(change ...func(*Config)) {
	f.Helper()
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: f.log, DisableTime: true})
	f.realNode = startRealNode(f.T, f.dir, append([]func(*Config){func(c *Config) { c.Logger = log }}, change...)...)
	f.Cleanup(func() {
		if f.Failed() {
			f.Log("log:\n" + f.log.String())
		}
	})
}

func (f *faultNode) within(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(f.Context(), limit)
	f.Cleanup(cancel)
	return ctx
}

// do gives a farm an order.
func (f *faultNode) do(farm *child, o order) note {
	f.Helper()
	n, err := farm.order(f.within(20*time.Second), o)
	f.must(err)
	return n
}

// plugin starts one and waits until it is registered and knows it.
func (f *faultNode) plugin(farm *child, path, name string) {
	f.Helper()
	mark := farm.mark()
	f.do(farm, order{Do: "start", Path: path, Name: name})
	f.told(farm, mark, path)
	f.awaitRegistered(path)
}

// told waits until a plugin is told, after mark, that it is registered.
func (f *faultNode) told(farm *child, mark int, path string) note {
	f.Helper()
	n, err := farm.await(f.within(20*time.Second), mark, happened("told", path))
	if err != nil {
		f.Fatalf("%s was not told: %v", path, err)
	}
	return n
}

// eventually polls.
func (f *faultNode) eventually(what string, is func() bool) {
	f.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for ticker := time.NewTicker(5 * time.Millisecond); !is(); <-ticker.C {
		if time.Now().After(deadline) {
			f.Fatalf("not so: %s", what)
		}
	}
}

func crashAndRestart(f *faultNode) {
	f.manage()
	path, next := f.at("a.sock"), startProcess(f, "farm")
	f.plugin(f.farm, path, "a")
	began := clock()
	f.farm.kill()
	f.do(next, order{Do: "start", Path: path, Name: "a"})
	listening, err := next.await(f.within(20*time.Second), 0, happened("listening", path))
	f.must(err)
	f.told(next, 0, path)
	f.awaitRegistered(path)
	f.calls("Validate a", "Register a", "Deregister a", "Validate a", "Register a")
	f.Logf("it listened again %v after the kill", listening.At-began)
}

func stopped(f *faultNode) {
	f.manage()
	path := f.at("a.sock")
	f.plugin(f.farm, path, "a")
	f.must(f.farm.cmd.Process.Signal(syscall.SIGSTOP))
	f.Cleanup(func() { _ = f.farm.cmd.Process.Signal(syscall.SIGCONT) })
	f.plugin(startProcess(f, "farm"), f.at("b.sock"), "b")
	f.awaitRegistered(path)
	f.calls("Validate a", "Register a", "Validate b", "Register b")
}

func renamedOver(f *faultNode) {
	f.manage()
	path := f.at("a.sock")
	f.plugin(f.farm, path, "a")
	mark := f.farm.mark()
	f.do(f.farm, order{Do: "replace", Path: path, Name: "a"})
	f.told(f.farm, mark, path)
	f.awaitRegistered(path)
	f.calls("Validate a", "Register a", "Deregister a", "Validate a", "Register a")
}

func boundByAnother(f *faultNode) {
	f.manage()
	path, next := f.at("a.sock"), startProcess(f, "farm")
	f.plugin(f.farm, path, "a")
	f.do(next, order{Do: "start", Path: path, Name: "a"}) // it removes what is there
	f.told(next, 0, path)
	f.awaitRegistered(path)
	f.calls("Validate a", "Register a", "Deregister a", "Validate a", "Register a")
}

func hundredDead(f *faultNode) {
	for i := range 100 {
		f.do(f.farm, order{Do: "start", Path: socketOf(f.dir, i), Name: "a", Mode: dead})
	}
	f.manage()
	for i := range 100 {
		f.await(socketOf(f.dir, i), "failing", func(s state.SocketView) bool { return s.Phase == state.Backoff && s.Tries >= 2 })
	}
	for _, s := range f.m.View().Sockets {
		// The first refusal is let pass (R10); a try may have begun since.
		if got := f.dialled(filepath.Base(s.Path)); got < s.Tries || got > s.Tries+2 {
			f.Errorf("%d dials of %s for %d tries", got, s.Path, s.Tries)
		}
	}
	if got := len(f.log.lines("[WARN]")) + len(f.log.lines("[INFO]")); got > 110 {
		f.Errorf("%d lines in the log", got)
	}
}

func neverAccepts(f *faultNode) {
	f.manage(func(c *Config) { c.InfoTimeout = 200 * time.Millisecond })
	path := f.at("a.sock")
	f.do(f.farm, order{Do: "start", Path: path, Name: "a", Mode: deaf})
	f.plugin(f.farm, f.at("b.sock"), "b")
	s := f.await(path, "failing", func(s state.SocketView) bool { return s.Phase == state.Backoff && s.Tries == 3 })
	if s.LastError != "GetInfo: no answer within 200ms" {
		f.Errorf("View shows %q", s.LastError)
	}
	if got := f.dialled("a.sock"); got != 3 {
		f.Errorf("%d dials for 3 tries", got)
	}
}

func goawayForEver(f *faultNode) {
	f.manage()
	path := f.at("a.sock")
	f.do(f.farm, order{Do: "start", Path: path, Mode: goesAway})
	f.await(path, "failing", func(s state.SocketView) bool { return s.Phase == state.Backoff && s.Tries == 4 })
	if got := f.do(f.farm, order{Do: "count", Path: path}).Accepts; got != 4 {
		f.Errorf("%d connections for 4 tries", got)
	}
}

func thousandTimes(f *faultNode) {
	f.manage()
	path := f.at("a.sock")
	f.plugin(f.farm, path, "a")
	var routines, open int
	for i := range 1000 {
		mark := f.farm.mark()
		f.do(f.farm, order{Do: []string{"replace", "rebind"}[i%2], Path: path, Name: "a"})
		f.told(f.farm, mark, path)
		if i == 10 {
			f.awaitRegistered(path)
			routines, open = runtime.NumGoroutine(), sockets(f)
		}
	}
	f.awaitRegistered(path)
	f.eventually("N3: one connection", func() bool { return sockets(f) == open })
	f.eventually("N3: no more goroutines", func() bool { return runtime.NumGoroutine() <= routines })
	f.calls(slices.Concat([]string{"Validate a", "Register a"}, slices.Repeat([]string{"Deregister a", "Validate a", "Register a"}, 1000))...)
}

// shortGrace is for tests in which a root is missing.
func shortGrace(c *Config) { c.Roots[0].RootGrace = 50 * time.Millisecond }

func rootMadeAgain(f *faultNode) {
	f.manage(shortGrace)
	path := f.at("a.sock")
	f.plugin(f.farm, path, "a")
	f.must(os.RemoveAll(f.dir))
	f.do(f.farm, order{Do: "leave", Path: path})
	f.awaitGone(path)
	f.must(os.Mkdir(f.dir, 0o755))
	f.plugin(f.farm, path, "a")
	f.calls("Validate a", "Register a", "Deregister a", "Validate a", "Register a")
}

func rootRenamed(f *faultNode) {
	f.manage(shortGrace)
	path, away := f.at("a.sock"), filepath.Join(f.base, "away")
	f.plugin(f.farm, path, "a")
	f.must(os.Rename(f.dir, away))
	f.awaitGone(path)
	f.calls("Validate a", "Register a", "Deregister a")
	mark := f.farm.mark()
	f.must(os.Rename(away, f.dir))
	f.told(f.farm, mark, path)
	f.awaitRegistered(path)
	f.calls("Validate a", "Register a")
}

func subdirectoryRenamed(f *faultNode) {
	f.manage()
	sub := func(i int) string { return f.at(fmt.Sprintf("sub%d", i)) }
	f.must(os.Mkdir(sub(0), 0o755))
	for i := range 3 {
		f.plugin(f.farm, socketOf(sub(0), i), fmt.Sprint(i))
	}
	f.h.take()
	for trial := range 60 {
		f.must(os.Rename(sub(trial), sub(trial+1)))
		for i := range 3 {
			f.awaitGone(socketOf(sub(trial), i))
			f.awaitRegistered(socketOf(sub(trial+1), i))
		}
		got := f.h.take()
		slices.Sort(got)
		want := []string{"Deregister 0", "Deregister 1", "Deregister 2", "Register 0", "Register 1", "Register 2", "Validate 0", "Validate 1", "Validate 2"}
		if !slices.Equal(got, want) {
			f.Fatalf("trial %d: the handler's calls were %q", trial, got)
		}
	}
}

// renamedTo has a socket renamed and renamed back.
func renamedTo(to string) func(*faultNode) {
	return func(f *faultNode) {
		f.manage()
		path, other := f.at("a.sock"), f.at(to)
		f.plugin(f.farm, path, "a")
		f.must(os.Rename(path, other))
		f.awaitGone(path)
		f.calls("Validate a", "Register a", "Deregister a")
		mark := f.farm.mark()
		f.must(os.Rename(other, path))
		f.told(f.farm, mark, path)
		f.awaitRegistered(path)
		f.calls("Validate a", "Register a")
		if exists(other) {
			f.Errorf("there is still %s", other)
		}
	}
}

func endpointRemoved(f *faultNode) {
	f.manage()
	path, endpoint := f.at("a.sock"), filepath.Join(f.base, "endpoint.sock")
	f.do(f.farm, order{Do: "start", Path: endpoint, Name: "endpoint"})
	f.do(f.farm, order{Do: "start", Path: path, Name: "a", Endpoint: endpoint})
	f.awaitRegistered(path)
	if got := f.h.holding(path).Endpoint; got != endpoint {
		f.Errorf("the endpoint is %s", got)
	}
	f.do(f.farm, order{Do: "stop", Path: endpoint})
	f.plugin(f.farm, f.at("b.sock"), "b") // the root has been scanned since
	f.awaitRegistered(path)
	f.calls("Validate a", "Register a", "Validate b", "Register b")
}

// anotherUser is one that owns nothing else.
const anotherUser = 12345

// become has the farm be another user, who may use the root.
func (f *faultNode) become(farm *child, uid int) {
	f.Helper()
	if os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		f.Skip("the user namespace of noinotify.sh has one user")
	}
	f.must(os.Chmod(f.base, 0o755)) // another user is to pass
	f.must(os.Chmod(f.dir, 0o777))  // and to bind
	if _, err := farm.order(f.within(20*time.Second), order{Do: "become", UID: uid}); err != nil {
		lacking(f.T, "no process of another user: "+err.Error())
	}
}

func anotherUsers(f *faultNode) {
	f.become(f.farm, anotherUser)
	f.manage()
	path := f.at("a.sock")
	f.plugin(f.farm, path, "a")
	i, err := os.Lstat(path)
	f.must(err)
	if got := i.Sys().(*syscall.Stat_t).Uid; got != anotherUser {
		f.Errorf("the socket is of user %d", got)
	}
	f.do(f.farm, order{Do: "stop", Path: path})
	f.awaitGone(path)
	f.calls("Validate a", "Register a", "Deregister a")
}

// R14: a proxy in the environment has no say. Go reads it once, so the Manager is in a process that has it from the start.
func TestFaultProxy(t *testing.T) {
	proxy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	go func() {
		for {
			c, err := proxy.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = proxy.Close() })
	env := []string{"NO_PROXY=", "no_proxy="}
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "GRPC_PROXY"} {
		env = append(env, name+"=http://"+proxy.Addr().String(), strings.ToLower(name)+"=http://"+proxy.Addr().String())
	}
	f := newFaultNode(t)
	daemon := startProcess(t, "daemon", env...)
	f.do(daemon, order{Do: "run", Daemon: &daemonConfig{Root: f.dir}})
	f.do(f.farm, order{Do: "start", Path: f.at("a.sock"), Name: "a"})
	f.told(f.farm, 0, f.at("a.sock"))
	f.do(daemon, order{Do: "stop"})
	if got := asked.Load(); got != 0 {
		t.Errorf("the proxy was asked %d times", got)
	}
}
