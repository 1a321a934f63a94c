//go:build linux

package register

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var roles = map[string]func(){"farm": playFarm, "daemon": playDaemon}

// clock is the time since boot, which means the same in every process.
func clock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// order is what a test tells a process of its own, a line of JSON on its standard input. farm.obey and daemon.obey say what each does.
type order struct {
	ID       int           `json:",omitempty"`
	Do       string        `json:",omitempty"`
	Path     string        `json:",omitempty"`
	To       string        `json:",omitempty"`
	Type     string        `json:",omitempty"`
	Name     string        `json:",omitempty"`
	Endpoint string        `json:",omitempty"`
	Mode     string        `json:",omitempty"`
	Keep     bool          `json:",omitempty"`
	UID      int           `json:",omitempty"`
	All      []order       `json:",omitempty"`
	Daemon   *daemonConfig `json:",omitempty"`
}

// note is what such a process says, a line of JSON on its standard output: the answer to the order ID, or something that happened.
type note struct {
	ID    int           `json:",omitempty"`
	At    time.Duration // by clock
	What  string        `json:",omitempty"`
	Path  string        `json:",omitempty"`
	Name  string        `json:",omitempty"`
	Error string        `json:",omitempty"`
	// Of a plugin: how many connections it has accepted and how often it was asked.
	Accepts int64 `json:",omitempty"`
	Asked   int64 `json:",omitempty"`
	// Of a daemon.
	Usage   *usage            `json:",omitempty"`
	Sockets []glimpse         `json:",omitempty"`
	Held    map[string]string `json:",omitempty"` // the names that the handler holds, by path
}

// mouthpiece writes notes.
type mouthpiece struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newMouthpiece() *mouthpiece { return &mouthpiece{enc: json.NewEncoder(os.Stdout)} }

func (s *mouthpiece) say(n note) {
	if n.At == 0 {
		n.At = clock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.enc.Encode(n) // whoever does not listen has ended, and ends this process too
}

// obeyAll takes orders until there is nobody to give any more.
func obeyAll(s *mouthpiece, obey func(order) (note, error)) {
	orders := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return
		}
		n, err := obey(o)
		if err != nil {
			n.Error = err.Error()
		}
		n.ID, n.What = o.ID, "done"
		s.say(n)
	}
}

// child is another process of the test binary, in a role. It ends with the test at the latest, also with one that is killed.
type child struct {
	role string
	cmd  *exec.Cmd

	mu      sync.Mutex
	in      *json.Encoder
	last    int // the number of the newest order
	notes   []note
	more    chan struct{} // closed when there is one more note
	ended   bool
	ending  sync.Once
	closeIn func() error
}

// startProcess starts one. env comes on top of the test's own environment.
func startProcess(tb testing.TB, role string, env ...string) *child {
	tb.Helper()
	p, err := newProcess(role, env...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.kill)
	return p
}

func newProcess(role string, env ...string) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &child{role: role, cmd: exec.Command(exe), more: make(chan struct{})}
	// Under the race detector a process would sleep for a second at its end.
	p.cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0", roleVariable+"="+role), env...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.closeIn = json.NewEncoder(in), in.Close
	go p.listen(out)
	return p, nil
}

func (p *child) listen(out io.Reader) {
	notes := json.NewDecoder(out)
	for {
		var n note
		err := notes.Decode(&n)
		p.mu.Lock()
		if err != nil {
			p.ended = true
		} else {
			p.notes = append(p.notes, n)
		}
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// kill ends it with SIGKILL and waits for that. Its sockets stay.
func (p *child) kill() {
	p.ending.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.closeIn()
		p.reap()
	})
}

// dismiss has it end by itself, and returns how it did.
func (p *child) dismiss() (err error) {
	p.ending.Do(func() {
		err = p.closeIn()
		p.reap()
		if s := p.cmd.ProcessState; !s.Success() {
			err = errors.Join(err, errors.New(s.String()))
		}
	})
	return err
}

// reap waits until all that it has said is read: Wait would close the pipe before.
func (p *child) reap() {
	for {
		p.mu.Lock()
		ended, more := p.ended, p.more
		p.mu.Unlock()
		if ended {
			break
		}
		<-more
	}
	_ = p.cmd.Wait()
}

// mark is a moment in what the process says, for await.
func (p *child) mark() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.notes)
}

// await returns the first note after mark that is wanted.
func (p *child) await(ctx context.Context, mark int, wanted func(note) bool) (note, error) {
	found, err := p.awaitAll(ctx, mark, 1, wanted)
	if err != nil {
		return note{}, err
	}
	return found[0], nil
}

// awaitAll returns the first n notes after mark that are wanted.
func (p *child) awaitAll(ctx context.Context, mark, n int, wanted func(note) bool) (found []note, err error) {
	for {
		p.mu.Lock()
		notes, ended, more := p.notes[mark:], p.ended, p.more
		p.mu.Unlock()
		for _, one := range notes {
			if wanted(one) {
				found = append(found, one)
			}
		}
		if mark += len(notes); len(found) >= n {
			return found[:n], nil
		}
		if ended {
			return found, fmt.Errorf("the %s process has ended", p.role)
		}
		select {
		case <-ctx.Done():
			return found, fmt.Errorf("%d of %d were seen: %w", len(found), n, ctx.Err())
		case <-more:
		}
	}
}

// order has the process do something, and returns when it is done.
func (p *child) order(ctx context.Context, o order) (note, error) {
	p.mu.Lock()
	p.last++
	o.ID = p.last
	mark := len(p.notes)
	err := p.in.Encode(o)
	p.mu.Unlock()
	if err != nil {
		return note{}, fmt.Errorf("the %s process takes no orders: %w", p.role, err)
	}
	n, err := p.await(ctx, mark, func(n note) bool { return n.ID == o.ID })
	if err == nil && n.Error != "" {
		err = errors.New(n.Error)
	}
	if err != nil {
		return n, fmt.Errorf("%s of %s: %w", o.Do, o.Path, err)
	}
	return n, nil
}

// happened tells notes of something that happened to a path.
func happened(what, path string) func(note) bool {
	return func(n note) bool { return n.What == what && n.Path == path }
}

// descriptors counts the open ones of this process.
func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(open) - 1 // the listing has one itself
}

// statusBytes returns a line of /proc/self/status in bytes.
func statusBytes(key string) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		var kB int64
		if _, err := fmt.Sscanf(line, key+": %d kB", &kB); err == nil {
			return kB << 10
		}
	}
	return 0
}
