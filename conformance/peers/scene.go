package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// fault is an error of ours, not of a registrar.
type fault struct{ error }

// scene is a directory, a registrar that does not run yet, and a farm. Its methods panic with a fault.
type scene struct {
	ctx        context.Context
	dir        string // of this scene
	root       string // that the registrar watches
	farm, peer *child
}

// newScene starts the processes of one; the registrar's by way of a command, if there is one.
func newScene(ctx context.Context, peer string, by ...string) (s *scene, end func(), err error) {
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		return nil, nil, err
	}
	s = &scene{ctx: ctx, dir: dir, root: filepath.Join(dir, "root")}
	end = func() {
		for _, c := range []*child{s.farm, s.peer} {
			if c != nil {
				c.kill()
			}
		}
		_ = os.RemoveAll(dir)
	}
	err = os.Mkdir(s.root, 0o755)
	if err == nil {
		s.farm, err = startProcess("farm")
	}
	if err == nil {
		s.peer, err = startProcess(peer, by...)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return s, end, nil
}

func must(err error) {
	if err != nil {
		panic(fault{err})
	}
}

// run starts the registrar and gives it time to watch.
func (s *scene) run() {
	s.order(s.peer, order{Do: "run", Path: s.root})
	s.pause(time.Second)
}

func (s *scene) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
		must(s.ctx.Err())
	}
}

func (s *scene) order(c *child, o order) note {
	n, err := c.order(s.ctx, o)
	must(err)
	return n
}

func (s *scene) path(name string) string { return filepath.Join(s.root, name) }

// start has a plugin listen at a path below the root, and returns when it does.
func (s *scene) start(path, name string) time.Duration {
	return s.tell(order{Do: "start", Path: s.path(path), Name: name})
}

// tell orders something of the farm, and returns when the first thing came of it.
func (s *scene) tell(o order) time.Duration {
	mark := s.farm.mark()
	s.order(s.farm, o)
	happened := s.farm.since(mark, func(n note) bool { return n.What == "listening" || n.What == "removed" })
	if len(happened) == 0 {
		must(fmt.Errorf("nothing came of %s", o.Do))
	}
	return happened[0].At
}

// what tells notes of something that happened to a name.
func what(happened, name string) func(note) bool {
	return func(n note) bool { return n.What == happened && n.Name == name }
}

// within waits until a process has said something n times since mark, and returns the last of them.
func within(s *scene, c *child, mark, n int, happened, name string, limit time.Duration) (note, error) {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	found, err := c.awaitAll(ctx, mark, n, what(happened, name))
	must(s.ctx.Err())
	if errors.Is(err, errEnded) {
		return note{}, fmt.Errorf("the %s ended", c.role)
	}
	if err != nil {
		text := fmt.Sprintf("no %q of %q within %v", happened, name, limit)
		if n > 1 {
			text += fmt.Sprintf(", but %d", len(found))
		}
		return note{}, errors.New(text)
	}
	return found[n-1], nil
}

// told waits until a plugin is told that it is registered.
func (s *scene) told(name string, limit time.Duration) (note, error) {
	return within(s, s.farm, 0, 1, "told", name, limit)
}
