package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// inside is a daemon's inside with what it serves, on real sockets.
type inside struct {
	t       testing.TB
	dir     string
	manager *register.Manager
	site    *site
	url     string
	asker   *asker
}

// shortDir is a directory whose sockets have addresses: that of t.TempDir is too long.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pp") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// newInside starts one on a fresh directory, with a record.Handler for each type that handlers does not name.
func newInside(t testing.TB, cfg register.Config, handlers map[string]register.Handler) *inside {
	t.Helper()
	n := &inside{t: t}
	if len(cfg.Roots) == 0 {
		cfg.Roots = []scanner.Config{{Root: shortDir(t), Interval: 20 * time.Millisecond}}
	}
	n.dir = cfg.Roots[0].Root
	var err error
	if n.manager, err = register.NewManager(cfg); err != nil {
		t.Fatal(err)
	}
	for _, typ := range record.Types {
		h := handlers[typ]
		if h == nil {
			h = record.Handler{}
		}
		if err := n.manager.AddHandler(typ, h); err != nil {
			t.Fatal(err)
		}
	}
	n.site = newSite(n.manager, 0, metricsOf(followed{plugins: n.manager}.collectors()))
	events := n.manager.Events(context.Background()) //nolint:usetesting // they end with Run
	followed := make(chan struct{})
	go func() { n.site.feed.run(events); close(followed) }()
	server := httptest.NewServer(n.site.status(address{"tcp", "127.0.0.1:0"}))
	n.url = server.URL
	if n.asker, err = newAsker(server.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // t.Context ends before the cleanups
	ended := make(chan error, 1)
	go func() { ended <- n.manager.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		err := <-ended
		if _, stuck := errors.AsType[*register.StuckError](err); err != nil && !stuck {
			t.Error(err)
		}
		<-followed
		server.CloseClientConnections()
		server.Close()
	})
	return n
}

// plugin serves a real registration socket under a name in the directory.
func (n *inside) plugin(file string, o pluginOptions) (path string, stop func()) {
	n.t.Helper()
	o.socket = filepath.Join(n.dir, file)
	if o.typ == "" {
		o.typ = registerapi.CSIPlugin
	}
	if o.name == "" {
		o.name = standards[registerapi.CSIPlugin].name
	}
	if o.versions == nil {
		o.versions = []string{"1.0.0"}
	}
	listens := make(chan struct{})
	log := &pluginLog{w: &firstWrite{done: listens}, path: o.socket, plugin: o.plugin()}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // t.Context ends before the cleanups
	ended := make(chan error, 1)
	go func() { ended <- o.serve(ctx, log) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-ended; err != nil {
				n.t.Error(err)
			}
		}
	}
	n.t.Cleanup(stop)
	select {
	case <-listens:
	case err := <-ended:
		n.t.Fatal(err)
	}
	return o.socket, stop
}

// firstWrite tells of the first line.
type firstWrite struct{ done chan struct{} }

func (w *firstWrite) Write(p []byte) (int, error) {
	select {
	case <-w.done:
	default:
		close(w.done)
	}
	return len(p), nil
}

// listener is a socket at which the test does what it likes.
func (n *inside) listener(file string) (string, *net.UnixListener) {
	n.t.Helper()
	path := filepath.Join(n.dir, file)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		n.t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	n.t.Cleanup(func() { _ = l.Close() })
	return path, l
}

// dead makes a socket that refuses. It is hidden until nobody listens.
func (n *inside) dead(file string) string {
	n.t.Helper()
	hidden, l := n.listener(".dead")
	path := filepath.Join(n.dir, file)
	if err := errors.Join(l.Close(), os.Rename(hidden, path)); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// until waits for what must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("it does not come about: %s", what)
	}
}

// phase waits until the socket at path is in a phase.
func (n *inside) phase(path string, want state.Phase) {
	n.t.Helper()
	until(n.t, path+" is "+string(want), func() bool {
		s, ok := socketAt(n.manager.View(), path)
		return ok && s.Phase == want
	})
}

func socketAt(v state.View, path string) (state.SocketView, bool) {
	for _, s := range v.Sockets {
		if rawPath(s.Path, s.PathBase64) == path {
			return s, true
		}
	}
	return state.SocketView{}, false
}

// get asks for a path and returns the status and the body.
func (n *inside) get(path string) (int, string) {
	n.t.Helper()
	return fetch(n.t, n.url+path, nil)
}

func fetch(t testing.TB, url string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
