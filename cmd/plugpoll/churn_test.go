package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// leftBehind stands for a socket whose process crashed: it is unreachable, or was not registered yet (L1).
const leftBehind = "left behind"

// node is a directory with real plugin processes.
type node struct {
	t       *testing.T
	dir     string
	random  *rand.Rand
	plugins map[string]*exec.Cmd // by path: who serves there
	want    map[string]string    // by path: the name it announces, or leftBehind
	started int
}

// TestChurn replaces and removes ten real plugin processes at random. In the end the view is what is in the directory, and when the Manager has
// stopped no goroutine and no descriptor is left.
func TestChurn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it sends Unix signals")
	}
	for range 3 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { churn(t, seed) })
	}
}

func churn(t *testing.T, seed uint64) {
	dir, err := os.MkdirTemp("", "pp") //nolint:usetesting // the name of t.TempDir is too long for the address of a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	n := &node{t: t, dir: dir, random: rand.New(rand.NewPCG(seed, 0)), plugins: map[string]*exec.Cmd{}, want: map[string]string{}}
	defer n.killAll()
	// The first process and the first pipe open descriptors of the runtime.
	n.add(filepath.Join(dir, "warm up"))
	n.end(filepath.Join(dir, "warm up"), syscall.SIGTERM)

	before, descriptors := goleak.IgnoreCurrent(), countDescriptors(t)
	for i := range 10 {
		n.add(filepath.Join(dir, fmt.Sprintf("%d.sock", i)))
	}
	m, err := register.NewManager(register.Config{Roots: []scanner.Config{{Root: dir}}, Seed: seed | 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, pluginType := range record.Types {
		if err := m.AddHandler(pluginType, record.Handler{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()

	for range 60 {
		n.disturb()
		pause := time.NewTimer(time.Duration(n.random.IntN(30)) * time.Millisecond)
		<-pause.C
	}
	n.compare(m)

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	goleak.VerifyNone(t, before)
	n.killAll()
	if now := countDescriptors(t); now != descriptors {
		t.Errorf("%d descriptors are open, %d were before", now, descriptors)
	}
}

// disturb does one thing to one path: replace what is there, remove it in one of three ways, or add a plugin.
func (n *node) disturb() {
	path := filepath.Join(n.dir, fmt.Sprintf("%d.sock", n.random.IntN(10)))
	if n.plugins[path] == nil {
		n.add(path)
		return
	}
	switch n.random.IntN(5) {
	case 0: // stopped: it removes its socket
		n.end(path, syscall.SIGTERM)
	case 1: // the socket is removed, the process lives a little longer
		n.remove(path)
		n.end(path, syscall.SIGTERM)
	case 2: // replaced after a crash
		n.kill(n.plugins[path], syscall.SIGKILL)
		n.add(path)
	case 3: // replaced while the old one runs on
		n.remove(path)
		old := n.plugins[path]
		n.add(path)
		n.kill(old, syscall.SIGKILL)
	case 4: // crashed: its socket stays, and refuses
		n.end(path, syscall.SIGKILL)
		n.want[path] = leftBehind
	}
}

func (n *node) remove(path string) {
	if err := os.Remove(path); err != nil {
		n.t.Fatal(err)
	}
}

// add starts a plugin, and returns when it listens. Every second one keeps the name of the path.
func (n *node) add(path string) {
	n.started++
	name := fmt.Sprintf("p%s.example.com", strings.TrimSuffix(filepath.Base(path), ".sock"))
	if n.random.IntN(2) == 0 {
		name = fmt.Sprintf("n%d.example.com", n.started)
	}
	cmd := exec.Command("plugpoll", "plugin", "--socket", path, "--name", name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.plugins[path], n.want[path] = cmd, name
	if _, err := out.Read(make([]byte, 1)); err != nil {
		n.t.Fatalf("the plugin at %s does not listen: %v", path, err)
	}
	_ = out.Close() // it goes on without a reader
}

func (n *node) end(path string, s syscall.Signal) {
	n.kill(n.plugins[path], s)
	delete(n.plugins, path)
	delete(n.want, path)
}

func (n *node) kill(cmd *exec.Cmd, s syscall.Signal) {
	if err := cmd.Process.Signal(s); err != nil {
		n.t.Fatal(err)
	}
	_ = cmd.Wait()
}

func (n *node) killAll() {
	for path := range n.plugins {
		n.end(path, syscall.SIGKILL)
	}
}

// compare waits until the view is what is in the directory.
func (n *node) compare(m *register.Manager) {
	listed := map[string]string{}
	entries, err := os.ReadDir(n.dir)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(n.dir, e.Name())
		listed[path] = n.want[path]
	}
	difference := ""
	if !poll(func() bool {
		seen := map[string]string{}
		for _, s := range m.View().Sockets {
			seen[s.Path] = string(s.Phase)
			if s.Phase == state.Registered && s.Acknowledged == state.AckYes {
				seen[s.Path] = s.Plugin.Name
			}
			if n.want[s.Path] == leftBehind && (s.Phase == state.Unreachable || s.Phase == state.Backoff) {
				seen[s.Path] = leftBehind
			}
		}
		difference = cmp.Diff(listed, seen)
		return difference == ""
	}) {
		n.t.Errorf("the view is not the directory (-directory +view):\n%s", difference)
	}
}

// countDescriptors is 0 where the operating system does not list them.
func countDescriptors(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
