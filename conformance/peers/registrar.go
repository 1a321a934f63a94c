package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

// Registrar registers the plugins of a directory. What its handlers see of it is what it is judged by.
type Registrar interface {
	// Start has it watch dir and give the plugins of each type to a handler, until Stop. It does not wait for the first look.
	Start(dir string, handlers map[string]cache.PluginHandler) error
	// Add gives it another handler while it runs.
	Add(pluginType string, h cache.PluginHandler) error
	// Stop ends it.
	Stop() error
}

// registrars are the peers, by the name of their column.
var registrars = map[string]func() Registrar{
	"plugpoll": func() Registrar { return &plugpoll{} },
	"kubelet":  func() Registrar { return &kubelet{} },
}

// plugpoll is a Manager with its default settings, at the log level of `plugpoll run`.
type plugpoll struct {
	*register.Manager
	stop  context.CancelFunc
	ended chan error
}

func (p *plugpoll) Start(dir string, handlers map[string]cache.PluginHandler) error {
	m, err := register.NewManager(register.Config{
		Roots:  []scanner.Config{{Root: dir}},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: io.Discard}),
	})
	if err != nil {
		return err
	}
	p.Manager = m
	for pluginType, h := range handlers {
		if err := p.Add(pluginType, h); err != nil {
			return err
		}
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.ended = make(chan error, 1)
	go func() { p.ended <- m.Run(ctx) }()
	return nil
}

func (p *plugpoll) Add(pluginType string, h cache.PluginHandler) error {
	return p.AddHandler(pluginType, register.Kubelet(h, false))
}

func (p *plugpoll) Stop() error {
	p.stop()
	return <-p.ended
}

// kubelet is the kubelet's plugin manager, with all sources of pods ready.
type kubelet struct {
	pluginmanager.PluginManager
	cancel context.CancelFunc
	stop   chan struct{}
	ended  chan struct{}
}

func (k *kubelet) Start(dir string, handlers map[string]cache.PluginHandler) error {
	k.PluginManager = pluginmanager.NewPluginManager(dir, nil) // it keeps the recorder of events and never uses it
	for pluginType, h := range handlers {
		k.AddHandler(pluginType, h)
	}
	var ctx context.Context
	ctx, k.cancel = context.WithCancel(context.Background())
	k.stop, k.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(k.ended)
		k.Run(ctx, config.NewSourcesReady(func(sets.Set[string]) bool { return true }), k.stop)
	}()
	return nil
}

func (k *kubelet) Add(pluginType string, h cache.PluginHandler) error {
	k.AddHandler(pluginType, h)
	return nil
}

func (k *kubelet) Stop() error {
	k.cancel()
	close(k.stop)
	<-k.ended
	return nil
}

// agent is a process with a Registrar and one handler of its own, or handlers that are a remote's. It says "validate" and "deregister" when these calls begin, and "register" when that ends without an error.
type agent struct {
	*mouthpiece
	peer Registrar

	*remote
}

func playAgent(say *mouthpiece, peer Registrar) {
	a := &agent{mouthpiece: say, peer: peer, remote: newRemote(say, peer)}
	obeyAll(say, a.obey)
}

func (a *agent) obey(o order) (note, error) {
	switch o.Do {
	case "run": // the Registrar, on the directory Path
		return note{}, a.peer.Start(o.Path, map[string]cache.PluginHandler{testType: a})
	case "stop":
		return note{}, a.peer.Stop()
	case "usage":
		return note{Usage: measure()}, nil
	}
	return a.remote.obey(o)
}

// ValidatePlugin is one of the handler's calls.
func (a *agent) ValidatePlugin(_ context.Context, name, endpoint string, _ []string) error {
	a.say(note{What: "validate", Path: endpoint, Name: name})
	return nil
}

// RegisterPlugin is one of the handler's calls.
func (a *agent) RegisterPlugin(_ context.Context, name, endpoint string, _ []string, _ *time.Duration) error {
	a.say(note{What: "register", Path: endpoint, Name: name})
	return nil
}

// DeRegisterPlugin is one of the handler's calls.
func (a *agent) DeRegisterPlugin(_ context.Context, name, endpoint string) {
	a.say(note{What: "deregister", Path: endpoint, Name: name})
}

func measure() *usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return &usage{
		CPU:       time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		RSS:       statusBytes("VmRSS"),
		HighWater: statusBytes("VmHWM"),
	}
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
