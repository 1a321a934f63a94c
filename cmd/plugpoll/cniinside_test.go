package main

import (
	"context"
	"errors"
	"iter"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/register/cni"
)

// cniNode is a daemon's inside that follows CNI directories alone.
type cniNode struct {
	t     testing.TB
	site  *site
	url   string
	asker *asker
}

// follow serves what Syncers show, and runs them.
func follow(t testing.TB, syncers ...syncer) *cniNode {
	t.Helper()
	plugins := noPlugins{make(chan struct{})}
	f := followed{plugins: plugins, cni: syncers}
	n := &cniNode{t: t, site: newSite(plugins, 0, metricsOf(f.collectors()), syncers...)}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // t.Context ends before the cleanups
	var events []iter.Seq[cni.Event]
	for _, s := range syncers {
		events = append(events, s.Events(ctx))
	}
	var running sync.WaitGroup
	running.Go(func() { n.site.feed.run(plugins.Events(ctx), events...) })
	running.Go(func() { _ = plugins.Run(ctx) })
	for _, s := range syncers {
		running.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	server := httptest.NewServer(n.site.status(address{"tcp", "127.0.0.1:0"}))
	n.url = server.URL
	var err error
	if n.asker, err = newAsker(server.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
	})
	return n
}

// fake is a Syncer that shows what it is told.
type fake struct {
	mu      sync.Mutex
	view    cni.View
	retried int
	events  chan cni.Event
	err     error // of Run
}

// newFake shows a ready directory, and then what change makes of it.
func newFake(change func(*cni.View)) *fake {
	now := time.Now()
	f := &fake{view: cni.View{
		Version: "v1", Time: now, ConfDir: "/etc/cni/net.d", BinDirs: []cni.DirView{{Path: "/opt/cni/bin"}}, State: cni.Ready, Ready: true, Since: now,
		DefaultNetwork: "mynet", LastSuccess: now, LastScan: now, LastGoodScan: now, GoodScanAge: 0.1,
		Networks: []cni.NetworkView{{Name: "mynet", File: "/etc/cni/net.d/10-a.conflist", CNIVersion: "1.0.0", Interface: "eth0", Plugins: []cni.PluginView{{Type: "bridge"}, {Type: "portmap"}}}},
		Files:    []cni.FileView{{Path: "/etc/cni/net.d/10-a.conflist", State: cni.Used, Network: "mynet", CNIVersion: "1.0.0", Plugins: []string{"bridge", "portmap"}}},
	}, events: make(chan cni.Event, 10)}
	if change != nil {
		change(&f.view)
	}
	return f
}

func (f *fake) Run(ctx context.Context) error {
	if f.err == nil {
		<-ctx.Done()
	}
	return f.err
}

func (f *fake) View() cni.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.view
	v.Time = time.Now()
	return v
}

func (f *fake) Retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retried++
}

func (f *fake) Events(ctx context.Context) iter.Seq[cni.Event] {
	v := f.View()
	return func(yield func(cni.Event) bool) {
		for e := (cni.Event{Version: "v1", Time: v.Time, Kind: cni.EventView, ConfDir: v.ConfDir, View: &v}); yield(e); {
			select {
			case e = <-f.events:
			case <-ctx.Done():
				return
			}
		}
	}
}

// change shows something else, and says so.
func (f *fake) change(kind cni.EventKind, to func(*cni.View)) {
	f.mu.Lock()
	to(&f.view)
	v := f.view
	f.mu.Unlock()
	f.events <- cni.Event{Version: "v1", Time: time.Now(), Kind: kind, ConfDir: v.ConfDir, State: v.State, Error: v.LastError}
}

// Configurations, and plugins that say what STATUS wants to hear.
const (
	goodList  = `{"cniVersion": "1.1.0", "name": "mynet", "plugins": [{"type": "bridge"}, {"type": "portmap"}]}`
	withIPAM  = `{"cniVersion": "1.0.0", "name": "mynet", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}, {"type": "portmap"}]}`
	otherConf = `{"cniVersion": "1.0.0", "name": "other", "type": "bridge"}`
	comma     = "{\n  \"cniVersion\": \"1.1.0\",\n  \"name\": \"mynet\",\n  \"plugins\": [{\"type\": \"bridge\"},]\n}\n"

	pluginReady   = "#!/bin/sh\nexit 0\n"
	pluginFailing = "#!/bin/sh\necho '{\"cniVersion\": \"1.1.0\", \"code\": 50, \"msg\": \"the agent is away\"}'\nexit 1\n"
)

// cniDir is a directory with files and a directory of plugins below it, that a real Syncer follows.
type cniDir struct {
	t    testing.TB
	conf string
	cfg  cni.Config
}

func newCNIDir(t testing.TB) *cniDir {
	t.Helper()
	dir := t.TempDir()
	d := &cniDir{t: t, conf: filepath.Join(dir, "net.d"), cfg: cni.Config{ConfDir: filepath.Join(dir, "net.d"), BinDirs: []string{filepath.Join(dir, "bin")}, Interval: 5 * time.Millisecond}}
	if err := errors.Join(os.Mkdir(d.conf, 0o755), os.Mkdir(d.cfg.BinDirs[0], 0o755)); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *cniDir) write(name, content string) string {
	d.t.Helper()
	path := filepath.Join(d.conf, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d *cniDir) plugins(script string, types ...string) {
	d.t.Helper()
	for _, typ := range types {
		path := filepath.Join(d.cfg.BinDirs[0], typ)
		syscall.ForkLock.RLock() // as in copyOfPlugpoll
		err := os.WriteFile(path, []byte(script), 0o755)
		syscall.ForkLock.RUnlock()
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// follow runs a Syncer on it.
func (d *cniDir) follow() (*cniNode, *cni.Syncer) {
	d.t.Helper()
	s, err := cni.New(d.cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	return follow(d.t, s), s
}

// comes waits for a state.
func (d *cniDir) comes(s *cni.Syncer, want cni.State) {
	d.t.Helper()
	until(d.t, "the directory is "+string(want)+", not "+string(s.View().State)+" "+s.View().LastError, func() bool { return s.View().State == want })
}

func (n *cniNode) why(asked string) []finding {
	n.t.Helper()
	all, _, err := n.asker.cni(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return explain(noPlugins{}.View(), all.Directories, asked, diskFacts{n.t.Context()})
}

// get asks for a path and returns the status and the body.
func (n *cniNode) get(path string) (int, string) {
	n.t.Helper()
	code, body := fetch(n.t, n.url+path, nil)
	return code, strings.TrimSpace(body)
}
