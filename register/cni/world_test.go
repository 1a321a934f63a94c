package cni

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
)

const (
	confDir = "/net.d"
	binDir  = "/bin"
)

// settled is a time in which a change is seen and taken into use for certain: a poll until it is seen, another one until it has settled.
const settled = 2 * scanner.DefaultInterval

// world is a simulated node with a Syncer on its directory /net.d and the plugins bridge, portmap and ptp in /bin. It lives in a bubble: all time is simulated.
type world struct {
	*testing.T
	node   *simfs.FS
	s      *Syncer
	log    *output
	began  time.Time
	events []Event

	running bool
	cancel  context.CancelFunc
	ended   chan error

	mu     sync.Mutex
	answer func(ctx context.Context) error // of STATUS; nil: all is well
	asked  []time.Duration
	asking int
	most   int
}

// bubble runs f on a fresh world whose Syncer does not run yet. Fields of cfg that are set stay. Afterwards the Syncer is stopped.
func bubble(t *testing.T, cfg Config, f func(w *world)) {
	t.Helper()
	bubbleOn(t, simfs.Config{}, cfg, f)
}

// bubbleOn is bubble on a filesystem that behaves as node says.
func bubbleOn(t *testing.T, node simfs.Config, cfg Config, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, node: simfs.New(node), log: &output{}, began: time.Now(), ended: make(chan error, 1)}
		defer w.node.Close()
		w.must(w.node.MkdirAll(confDir, 0o755))
		w.must(w.node.MkdirAll(binDir, 0o755))
		for _, plugin := range []string{"bridge", "portmap", "ptp"} {
			w.install(plugin)
		}
		cfg.FS, cfg.Seed = w.node, 1
		if cfg.ConfDir == "" {
			cfg.ConfDir = confDir
		}
		cfg.BinDirs = []string{binDir}
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: w.log, DisableTime: true})
		s, err := New(cfg)
		w.must(err)
		s.status = w.status
		w.s = s
		defer func() {
			w.node.ClearFaults()
			if w.running {
				w.must(w.stop())
			}
			if w.most > 1 {
				t.Errorf("CN12: %d STATUS ran at once", w.most)
			}
			if t.Failed() {
				t.Log("log:\n" + w.log.String())
			}
		}()
		f(w)
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) status(ctx context.Context, _ []string, _ []network) error {
	w.mu.Lock()
	w.asked = append(w.asked, w.now())
	w.asking++
	w.most = max(w.most, w.asking)
	answer := w.answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.asking--
		w.mu.Unlock()
	}()
	if answer == nil {
		return nil
	}
	return answer(ctx)
}

// answers sets what STATUS says from now on.
func (w *world) answers(f func(ctx context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

// wasAsked returns when STATUS was asked so far, and forgets it.
func (w *world) wasAsked() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// run starts the Syncer and lets it do what it can without time passing.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.Context())
	w.running, w.cancel = true, cancel
	seq := w.s.Events(context.WithoutCancel(ctx))
	go func() {
		for e := range seq {
			w.mu.Lock()
			w.events = append(w.events, e)
			w.mu.Unlock()
		}
	}()
	go func() { w.ended <- w.s.Run(ctx) }()
	synctest.Wait()
}

// stop ends the Syncer and returns what Run did.
func (w *world) stop() error {
	w.Helper()
	w.cancel()
	err := <-w.ended
	w.running = false
	synctest.Wait()
	return err
}

// pass lets time pass, and then all that is due be done.
func (w *world) pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the bubble's time
	synctest.Wait()
}

func (w *world) now() time.Duration { return time.Since(w.began) }

// write makes a file of the directory, or another one if the name begins with a slash.
func (w *world) write(name, content string) {
	w.Helper()
	w.must(afero.WriteFile(w.node, at(name), []byte(content), 0o644))
}

func (w *world) remove(name string) {
	w.Helper()
	w.must(w.node.Remove(at(name)))
}

func (w *world) install(plugin string) {
	w.Helper()
	w.must(afero.WriteFile(w.node, path.Join(binDir, plugin), []byte("#!"), 0o755))
}

func at(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return confDir + "/" + name
}

// is checks where the Syncer stands, and that everything there is to see agrees on it.
func (w *world) is(want State, network string) {
	w.Helper()
	v := w.s.View()
	if v.State != want || v.DefaultNetwork != network {
		w.Errorf("at %v it is %s with network %q, want %s with %q; message %q, last error %q", w.now(), v.State, v.DefaultNetwork, want, network, v.Message, v.LastError)
	}
	w.agrees(v)
}

// agrees checks what must hold at any moment.
func (w *world) agrees(v View) {
	w.Helper()
	status := w.s.LastStatus()
	switch ready := v.State == Ready || v.State == Stale; {
	case v.Ready != ready, ready != (status == nil), ready != (v.Reason == ""), ready != (v.Message == ""):
		w.Errorf("CN13: state %s, ready %v, status %v, reason %q, message %q", v.State, v.Ready, status, v.Reason, v.Message)
	case !ready && (v.Reason != ReasonNotReady || v.Message != MessagePrefix+status.Error()):
		w.Errorf("CN13: reason %q, message %q, status %v", v.Reason, v.Message, status)
	case (v.Applied == "") != (w.s.CNI() == nil), v.Ready && w.s.CNI() == nil:
		w.Errorf("CN6: applied %q, instance %v", v.Applied, w.s.CNI())
	case scanner.Clean(v.Message, 2*maxLine) != v.Message, scanner.Clean(v.LastError, 2*maxLine) != v.LastError:
		w.Errorf("CN13: message %q, last error %q", v.Message, v.LastError)
	}
	if instance := w.s.CNI(); instance != nil {
		var names []string
		for _, n := range instance.GetConfig().Networks {
			names = append(names, n.Config.Name)
		}
		var shown []string
		for _, n := range v.Networks {
			shown = append(shown, n.Name)
		}
		if !slices.Equal(names, shown) {
			w.Errorf("CN6: the instance has networks %q, the View %q", names, shown)
		}
	}
}

// says checks that the View's message or last error has all these texts in it.
func (w *world) says(texts ...string) {
	w.Helper()
	v := w.s.View()
	for _, text := range texts {
		if !strings.Contains(v.Message, text) && !strings.Contains(v.LastError, text) {
			w.Errorf("at %v neither the message %q nor the last error %q says %q", w.now(), v.Message, v.LastError, text)
		}
	}
}

// happened checks the kinds of the events so far but the View, and forgets them.
func (w *world) happened(want ...EventKind) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []EventKind
	for _, e := range w.events {
		if e.Kind != EventView {
			got = append(got, e.Kind)
		}
	}
	w.events = nil
	if !slices.Equal(got, want) {
		w.Errorf("at %v the events were\n%q, want\n%q", w.now(), got, want)
	}
}

// list is a configuration of one network. Plugins default to bridge.
func list(name string, plugins ...string) string { return listOf("1.0.0", name, plugins...) }

func listOf(version, name string, plugins ...string) string {
	if plugins == nil {
		plugins = []string{"bridge"}
	}
	var all []string
	for _, p := range plugins {
		all = append(all, fmt.Sprintf(`{"type": %q}`, p))
	}
	return fmt.Sprintf("{\n  \"cniVersion\": %q,\n  \"name\": %q,\n  \"plugins\": [%s]\n}\n", version, name, strings.Join(all, ", "))
}

// broken is a list that ends too early.
const broken = "{\n  \"cniVersion\": \"1.0.0\",\n  \"name\": \"half\",\n"

// output is where a log goes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
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

// lines returns the lines of a level and louder ones.
func (o *output) lines(levels ...string) []string {
	var lines []string
	for line := range strings.Lines(o.String()) {
		if slices.ContainsFunc(levels, func(l string) bool { return strings.HasPrefix(line, "["+l+"]") }) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
