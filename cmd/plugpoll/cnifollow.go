package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/state"
)

// manager is what a daemon needs of a register.Manager.
type manager interface {
	source
	Run(ctx context.Context) error
	Events(ctx context.Context) iter.Seq[state.Event]
	Retry(path string) error
	Collector() prometheus.Collector
}

// syncer is what a daemon needs of a cni.Syncer.
type syncer interface {
	Run(ctx context.Context) error
	View() cni.View
	Events(ctx context.Context) iter.Seq[cni.Event]
	Retry()
}

// followed is all that a daemon follows.
type followed struct {
	plugins manager
	cni     []syncer
	// interval is the longest pause between two looks at a directory. 0: the default.
	interval time.Duration
}

// collectors are of the numbers of all that, and of the process. No label has the text of a plugin or a path (O5).
func (f followed) collectors() []prometheus.Collector {
	var syncers []*cni.Syncer
	for _, s := range f.cni {
		if s, ok := s.(*cni.Syncer); ok {
			syncers = append(syncers, s)
		}
	}
	return []prometheus.Collector{
		f.plugins.Collector(), cni.Collector(syncers...), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
}

// noPlugins stands for the Manager of a daemon that watches no directory of sockets.
type noPlugins struct{ ended chan struct{} }

// Run waits.
func (n noPlugins) Run(ctx context.Context) error {
	<-ctx.Done()
	close(n.ended)
	return nil
}

// View is empty: there is nothing to wait for.
func (noPlugins) View() state.View {
	return state.View{Version: state.APIVersion, Time: time.Now(), Synced: true, Types: []string{}, Roots: []state.RootView{}, Sockets: []state.SocketView{}}
}

// Events are a View alone. They end with ctx or with Run.
func (n noPlugins) Events(ctx context.Context) iter.Seq[state.Event] {
	v := n.View()
	return func(yield func(state.Event) bool) {
		if !yield(state.Event{Version: v.Version, Time: v.Time, Kind: state.EventView, View: &v}) {
			return
		}
		select {
		case <-ctx.Done():
		case <-n.ended:
		}
	}
}

// Retry has nothing to do.
func (noPlugins) Retry(string) error { return nil }

// Collector has no numbers.
func (noPlugins) Collector() prometheus.Collector { return prometheus.NewRegistry() }

// cniPrefix begins the kinds of a CNI directory's events where those of sockets are beside them.
const cniPrefix = "cni_"

// cniEvent is an event of a CNI directory in the stream of all events.
type cniEvent struct {
	cni.Event
	Kind string `json:"kind"`
	// Directory is the event's View, under another name: a View of the stream is one of the sockets.
	Directory *cni.View `json:"cni_view,omitempty"`
}

func cniEventOf(e cni.Event) cniEvent {
	out := cniEvent{Event: e, Kind: cniPrefix + string(e.Kind), Directory: e.View}
	out.View = nil
	return out
}

func isCNI(kind string) bool { return strings.HasPrefix(kind, cniPrefix) }

func cniViews(syncers []syncer) []cni.View {
	views := make([]cni.View, 0, len(syncers))
	for _, s := range syncers {
		views = append(views, s.View())
	}
	return views
}

func pathsOf(dirs []cni.DirView) (paths []string) {
	for _, d := range dirs {
		paths = append(paths, rawPath(d.Path, d.PathBase64))
	}
	return paths
}
