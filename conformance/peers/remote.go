package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"

	"github.com/plugpoll/plugpoll/register"
)

// linger is how long the process of a registrar lives after it was stopped: what it does then is to be seen.
const linger = 15 * time.Second

// serve runs a peer in a process of its own, by way of a command if there is one, with handlers of this process.
func serve(ctx context.Context, peer, dir string, handlers map[string]register.KubeletHandler, added <-chan map[string]register.KubeletHandler, by ...string) error {
	c, err := startProcess(peer, by...)
	if err != nil {
		return err
	}
	time.AfterFunc(time.Minute, c.kill) // longer than any rule takes
	known := maps.Clone(handlers)
	var mu sync.Mutex
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.answerAll(ctx, func(pluginType string) register.KubeletHandler {
			mu.Lock()
			defer mu.Unlock()
			return known[pluginType]
		})
	}()
	if _, err := c.order(ctx, order{Do: "serve", Path: dir, Types: slices.Collect(maps.Keys(handlers))}); err != nil {
		c.kill()
		return err
	}
	for {
		select {
		case more := <-added:
			mu.Lock()
			maps.Copy(known, more)
			mu.Unlock()
			if _, err := c.order(ctx, order{Do: "add", Types: slices.Collect(maps.Keys(more))}); err != nil {
				return err
			}
		case <-ended:
			return errEnded
		case <-ctx.Done():
			_, err := c.order(context.WithoutCancel(ctx), order{Do: "stop"})
			time.AfterFunc(linger, c.kill)
			return err
		}
	}
}

// answerAll carries out the calls of handlers that the process asks for, until it has ended.
func (p *child) answerAll(ctx context.Context, handler func(pluginType string) register.KubeletHandler) {
	for mark := 0; ; mark++ {
		notes, err := p.awaitAll(context.WithoutCancel(ctx), mark, 1, func(note) bool { return true })
		if err != nil {
			return
		}
		if n := notes[0]; n.What == "call" {
			go func() { _ = p.send(answer(ctx, handler(n.Type), n)) }() // a process that is gone needs none
		}
	}
}

// answer carries out one.
func answer(ctx context.Context, h register.KubeletHandler, n note) (o order) {
	o = order{Do: "answer", Seq: n.Seq}
	defer func() {
		if recover() != nil {
			o.Panic = true
		}
	}()
	var err error
	switch n.Call {
	case "validate":
		err = h.ValidatePlugin(ctx, n.Name, n.Path, n.Versions)
	case "register":
		err = h.RegisterPlugin(ctx, n.Name, n.Path, n.Versions, nil)
	case "deregister":
		h.DeRegisterPlugin(ctx, n.Name, n.Path)
	}
	if err != nil {
		o.Error = []byte(err.Error())
	}
	return o
}

// remote is a Registrar whose handlers are in the process that started this one.
type remote struct {
	*mouthpiece
	peer Registrar

	mu      sync.Mutex
	last    int                // number of a call
	pending map[int]chan order // that wait for their answers
}

func newRemote(say *mouthpiece, peer Registrar) *remote {
	return &remote{mouthpiece: say, peer: peer, pending: map[int]chan order{}}
}

func (r *remote) obey(o order) (note, error) {
	switch o.Do {
	case "serve": // the Registrar on the directory Path, with handlers for Types
		handlers := map[string]cache.PluginHandler{}
		for _, pluginType := range o.Types {
			handlers[pluginType] = far{r, pluginType}
		}
		return note{}, r.peer.Start(o.Path, handlers)
	case "add": // handlers for Types
		for _, pluginType := range o.Types {
			if err := r.peer.Add(pluginType, far{r, pluginType}); err != nil {
				return note{}, err
			}
		}
		return note{}, nil
	case "answer": // of the call Seq
		r.mu.Lock()
		waiting := r.pending[o.Seq]
		delete(r.pending, o.Seq)
		r.mu.Unlock()
		if waiting != nil {
			waiting <- o
		}
		return note{}, nil
	}
	return note{}, fmt.Errorf("an agent cannot do %q", o.Do)
}

// far is one of its handlers.
type far struct {
	*remote
	pluginType string
}

func (f far) call(ctx context.Context, n note) error {
	answer := make(chan order, 1)
	f.mu.Lock()
	f.last++
	n.What, n.Type, n.Seq = "call", f.pluginType, f.last
	f.pending[n.Seq] = answer
	f.mu.Unlock()
	f.say(n)
	select {
	case o := <-answer:
		if o.Panic {
			panic("the handler was told to")
		}
		if o.Error != nil {
			return errors.New(string(o.Error))
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ValidatePlugin is one of the handler's calls.
func (f far) ValidatePlugin(ctx context.Context, name, endpoint string, versions []string) error {
	return f.call(ctx, note{Call: "validate", Name: name, Path: endpoint, Versions: versions})
}

// RegisterPlugin is one of the handler's calls.
func (f far) RegisterPlugin(ctx context.Context, name, endpoint string, versions []string, _ *time.Duration) error {
	return f.call(ctx, note{Call: "register", Name: name, Path: endpoint, Versions: versions})
}

// DeRegisterPlugin is one of the handler's calls.
func (f far) DeRegisterPlugin(ctx context.Context, name, endpoint string) {
	_ = f.call(ctx, note{Call: "deregister", Name: name, Path: endpoint})
}
