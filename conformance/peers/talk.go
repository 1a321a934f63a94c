package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clock is the time since boot, which means the same in every process.
func clock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// order is what a process is told, a line of JSON on its standard input. farm.obey, agent.obey and remote.obey say what each does.
type order struct {
	ID    int      `json:",omitempty"` // 0: nobody waits for the answer
	Do    string   `json:",omitempty"`
	Path  string   `json:",omitempty"`
	To    string   `json:",omitempty"`
	Name  string   `json:",omitempty"`
	Types []string `json:",omitempty"` // of plugins
	Seq   int      `json:",omitempty"` // of the call of a handler that is answered
	Error []byte   `json:",omitempty"` // its error; bytes, since JSON would change what is no UTF-8
	Panic bool     `json:",omitempty"` // it panicked
	All   []order  `json:",omitempty"`
}

// note is what a process says, a line of JSON on its standard output: the answer to the order ID, or something that happened.
type note struct {
	ID    int           `json:",omitempty"`
	At    time.Duration // by clock
	What  string        `json:",omitempty"`
	Path  string        `json:",omitempty"` // a plugin's socket, or the endpoint that a handler was given
	Name  string        `json:",omitempty"`
	Error string        `json:",omitempty"`
	Usage *usage        `json:",omitempty"`

	Call     string   `json:",omitempty"` // of a handler
	Seq      int      `json:",omitempty"` // its number
	Type     string   `json:",omitempty"` // of the plugin
	Versions []string `json:",omitempty"` // likewise
}

// usage is what a process takes.
type usage struct {
	CPU            time.Duration // of processors, since its start
	RSS, HighWater int64         // bytes
}

// mouthpiece writes notes.
type mouthpiece struct {
	mu  sync.Mutex
	enc *json.Encoder
}

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

// child is another process of this program, in a role.
type child struct {
	role string
	cmd  *exec.Cmd
	in   io.WriteCloser

	mu    sync.Mutex
	last  int // the number of the newest order
	notes []note
	more  chan struct{} // closed when there is one more note
	ended bool
}

// startProcess starts one, by way of a command if there is one.
func startProcess(role string, by ...string) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := append(by, exe)
	p := &child{role: role, cmd: exec.Command(command[0], command[1:]...), more: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	if os.Getenv("PEERS_DEBUG") != "" {
		p.cmd.Stderr = os.Stderr
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
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
	_ = p.cmd.Process.Kill()
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// mark is a moment in what the process says, for await.
func (p *child) mark() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.notes)
}

// since returns the notes after mark that are wanted.
func (p *child) since(mark int, wanted func(note) bool) (found []note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.notes[mark:] {
		if wanted(n) {
			found = append(found, n)
		}
	}
	return found
}

var errEnded = errors.New("its process has ended")

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
			return found, errEnded
		}
		select {
		case <-ctx.Done():
			return found, fmt.Errorf("%d of %d: %w", len(found), n, ctx.Err())
		case <-more:
		}
	}
}

// send has the process do something, and does not wait for it.
func (p *child) send(o order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return json.NewEncoder(p.in).Encode(o)
}

// order has the process do something, and returns when it is done.
func (p *child) order(ctx context.Context, o order) (note, error) {
	p.mu.Lock()
	p.last++
	o.ID = p.last
	mark := len(p.notes)
	err := json.NewEncoder(p.in).Encode(o)
	p.mu.Unlock()
	if err != nil {
		return note{}, fmt.Errorf("the %s takes no orders: %w", p.role, err)
	}
	n, err := p.awaitAll(ctx, mark, 1, func(n note) bool { return n.ID == o.ID })
	if err != nil {
		return note{}, fmt.Errorf("%s of %q by the %s: %w", o.Do, o.Path, p.role, err)
	}
	if n[0].Error != "" {
		return n[0], fmt.Errorf("%s of %q by the %s: %s", o.Do, o.Path, p.role, n[0].Error)
	}
	return n[0], nil
}
