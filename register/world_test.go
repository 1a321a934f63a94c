package register

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

const (
	root     = "/plugins"
	testType = "TestPlugin"
)

// slow is for tests of hours, which would scan too often otherwise.
var slow = Config{Roots: []scanner.Config{{Root: root, Interval: time.Minute}}}

// world is a simulated node with a Manager on its directory /plugins. It lives in a bubble: all time is simulated.
type world struct {
	*testing.T
	node    *simfs.FS
	m       *Manager
	h       *taker // of testType
	takers  []*taker
	log     *output
	began   time.Time
	servers []*simfs.Server

	running bool
	cancel  context.CancelFunc
	ended   chan error

	mu    sync.Mutex
	dials []time.Duration // when each dial was, of whatever path
}

// bubble runs f on a fresh world whose Manager has a taker for TestPlugin and does not run yet. Fields of cfg that are set stay. Afterwards the Manager is
// stopped, and whatever f did: no connection is open (S3), and what is registered is what the handler holds (R5).
func bubble(t *testing.T, cfg Config, f func(w *world)) {
	t.Helper()
	bubbleOn(t, simfs.Config{}, cfg, f)
}

func bubbleOn(t *testing.T, sim simfs.Config, cfg Config, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, node: simfs.New(sim), log: &output{}, began: time.Now(), ended: make(chan error, 1)}
		defer w.node.Close()
		w.must(w.node.MkdirAll(root, 0o755))
		if cfg.Roots == nil {
			cfg.Roots = []scanner.Config{{FS: w.node, Root: root}}
		}
		cfg.Roots = slices.Clone(cfg.Roots)
		for i := range cfg.Roots {
			if cfg.Roots[i].FS == nil {
				cfg.Roots[i].FS = w.node
			}
		}
		if cfg.Dial == nil {
			cfg.Dial = w.dial
		}
		if cfg.Peer == nil {
			cfg.Peer = simPeer
		}
		if cfg.Logger == nil {
			cfg.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: w.log, DisableTime: true})
		}
		cfg.Seed = 1
		m, err := NewManager(cfg)
		w.must(err)
		w.m = m
		w.h = w.handler(testType)
		defer func() {
			if w.running {
				w.must(w.stop())
			}
			for _, s := range w.servers {
				if r := s.Record(); r.Conns != 0 {
					t.Errorf("S3: %d connections are open after the end", r.Conns)
				}
			}
			if t.Failed() {
				t.Log("log:\n" + w.log.String())
			}
		}()
		f(w)
	})
}

func (w *world) dial(ctx context.Context, e scanner.Entry) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, w.now())
	w.mu.Unlock()
	return w.node.Dial(ctx, e.Path)
}

// dialled returns when the dials so far were, and forgets them.
func (w *world) dialled() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	dials := w.dials
	w.dials = nil
	return dials
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// handler adds a taker for a type.
func (w *world) handler(pluginType string) *taker {
	w.Helper()
	h := newTaker()
	w.takers = append(w.takers, h)
	w.must(w.m.AddHandler(pluginType, h))
	return h
}

// run starts the Manager and lets it do what it can without time passing.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.Context())
	w.running, w.cancel = true, cancel
	go func() { w.ended <- w.m.Run(ctx) }()
	synctest.Wait()
}

// stop ends the Manager and returns what Run did.
func (w *world) stop() error {
	w.Helper()
	w.cancel()
	err := <-w.ended
	w.running = false
	synctest.Wait()
	var held []string
	for _, h := range w.takers {
		held = append(held, h.holds()...)
	}
	slices.Sort(held)
	shown := w.registered()
	if err == nil && w.takers != nil && !slices.Equal(held, shown) {
		w.Errorf("R5: the handler holds %q, the View shows %q registered", held, shown)
	}
	return err
}

// pass lets time pass, and then all that is due be done.
func (w *world) pass(d time.Duration) {
	w.sleep(d)
	synctest.Wait()
}

func (w *world) sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the bubble's time
}

// now is the time since the world began.
func (w *world) now() time.Duration { return time.Since(w.began) }

// bind starts a plugin. Without a type it is a TestPlugin named as its socket.
func (w *world) bind(name string, p simfs.Plugin) *simfs.Server {
	w.Helper()
	if p.Type == "" {
		p.Type = testType
	}
	if p.Name == "" {
		p.Name = strings.TrimSuffix(path.Base(name), ".sock")
	}
	s, err := w.node.Bind(at(name), p)
	w.must(err)
	w.servers = append(w.servers, s)
	return s
}

func (w *world) remove(name string) {
	w.Helper()
	w.must(w.node.Remove(at(name)))
}

// at is the full path of a name in the directory.
func at(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return root + "/" + name
}

// socket returns what View shows of a socket, nothing if it does not show it.
func (w *world) socket(name string) state.SocketView {
	return find(w.m.View(), at(name))
}

func find(v state.View, path string) state.SocketView {
	for _, s := range v.Sockets {
		if s.Path == path {
			return s
		}
	}
	return state.SocketView{}
}

// phase checks where a socket stands. The empty phase: it is not there.
func (w *world) phase(name string, want state.Phase) {
	w.Helper()
	if got := w.socket(name).Phase; got != want {
		w.Errorf("at %v the phase of %s is %q, want %q", w.now(), name, got, want)
	}
}

func (w *world) registered() []string {
	paths := []string{}
	for _, s := range w.m.View().Sockets {
		if s.Phase == state.Registered {
			paths = append(paths, s.Path)
		}
	}
	return paths
}

// calls checks the handler's calls so far, each as "verb name", and forgets them.
func (w *world) calls(want ...string) {
	w.Helper()
	if got := w.h.take(); !slices.Equal(got, want) {
		w.Errorf("at %v the handler's calls were\n%q, want\n%q", w.now(), got, want)
	}
}

// told checks what a plugin was told so far.
func (w *world) told(s *simfs.Server, want ...simfs.Notice) {
	w.Helper()
	if got := s.Record().Notices; !slices.Equal(got, want) {
		w.Errorf("at %v the plugin was told\n%+v, want\n%+v", w.now(), got, want)
	}
}

var yes = simfs.Notice{Registered: true}

func no(text string) simfs.Notice { return simfs.Notice{Error: text} }

// taker is a Handler that notes its calls. It answers as the test says, else well.
type taker struct {
	mu    sync.Mutex
	notes []string
	held  map[string]state.Registration
	faces map[string]func(context.Context, state.Registration) error // by verb
	busy  map[string]string                                          // by name and by path: the verb that runs
	last  func(state.Report)
}

func newTaker() *taker {
	return &taker{held: map[string]state.Registration{}, faces: map[string]func(context.Context, state.Registration) error{}, busy: map[string]string{}}
}

// on sets what a verb does from now on.
func (h *taker) on(verb string, f func(context.Context, state.Registration) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faces[verb] = f
}

func (h *taker) fails(verb string, err error) {
	h.on(verb, func(context.Context, state.Registration) error { return err })
}

func (h *taker) takes(verb string, d time.Duration) {
	h.on(verb, func(ctx context.Context, _ state.Registration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	})
}

func (h *taker) call(ctx context.Context, verb string, r state.Registration) error {
	h.mu.Lock()
	h.notes = append(h.notes, verb+" "+r.Name)
	for _, key := range []string{"name " + r.Name, r.Entry.Path} {
		if other := h.busy[key]; other != "" {
			panic(fmt.Sprintf("R7: %s while %s of %s runs", verb, other, key))
		}
		h.busy[key] = verb
	}
	f := h.faces[verb]
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.busy, "name "+r.Name)
		delete(h.busy, r.Entry.Path)
		h.mu.Unlock()
	}()
	if f == nil {
		return nil
	}
	return f(ctx, r)
}

func (h *taker) Validate(ctx context.Context, r state.Registration) error {
	return h.call(ctx, "Validate", r)
}

func (h *taker) Register(ctx context.Context, r state.Registration, report func(state.Report)) error {
	h.mu.Lock()
	h.last = report
	h.mu.Unlock()
	if err := h.call(ctx, "Register", r); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, twice := h.held[r.Entry.Path]; twice {
		return errors.New("R5: registered twice")
	}
	h.held[r.Entry.Path] = r
	return nil
}

func (h *taker) Deregister(ctx context.Context, r state.Registration) error {
	h.mu.Lock()
	have, ok := h.held[r.Entry.Path]
	delete(h.held, r.Entry.Path)
	h.mu.Unlock()
	if !ok || fmt.Sprint(have) != fmt.Sprint(r) {
		panic(fmt.Sprintf("R5: Deregister of %v, but registered is %v", r, have))
	}
	return h.call(ctx, "Deregister", r)
}

func (h *taker) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	notes := h.notes
	h.notes = nil
	return notes
}

// holding is what is registered of a socket, the zero value if nothing is.
func (h *taker) holding(name string) state.Registration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[at(name)]
}

func (h *taker) holds() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	paths := []string{}
	for p := range h.held {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// output collects a log.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// lines are those of one level: "[INFO]", "[WARN]", "[DEBUG]".
func (o *output) lines(level string) []string {
	var lines []string
	for line := range strings.Lines(o.String()) {
		if text, ok := strings.CutPrefix(line, level); ok {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
	return lines
}
