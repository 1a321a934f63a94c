package conformance_test

import (
	"cmp"
	"context"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/conformance"
	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

type handlers = map[string]register.KubeletHandler

// runManager runs a Manager as a registrar.
func runManager(ctx context.Context, cfg register.Config, dir string, hs handlers, added <-chan handlers) error {
	cfg.Roots = []scanner.Config{{Root: dir}}
	m, err := register.NewManager(cfg)
	if err != nil {
		return err
	}
	add := func(hs handlers) {
		for pluginType, h := range hs {
			if err := m.AddHandler(pluginType, register.Kubelet(h, false)); err != nil {
				panic(err)
			}
		}
	}
	add(hs)
	over := make(chan error, 1)
	go func() { over <- m.Run(ctx) }()
	for {
		select {
		case more := <-added:
			add(more)
		case err := <-over:
			return err
		}
	}
}

const testGrace = 2 * time.Second

// brokenRun is one run of a Manager that is to break a rule. What it does in its own way is set by an entry of brokenRegistrars; it knows the names that the suite uses.
type brokenRun struct {
	ctx    context.Context
	cancel context.CancelFunc // ends the Manager, and not the run
	dir    string
	h      register.KubeletHandler // the suite's
	work   sync.WaitGroup          // waited for when all rules were checked

	cfg         register.Config
	others      handlers
	takesNone   bool // none of the handlers that are added
	passesEmpty bool // endpoints that are the socket's own path are given as empty ones
	validate    func(next func() error, name, endpoint string) error
	register    func(next func() error, name, endpoint string) error
	deregister  func(next func(), name, endpoint string)
	versions    func([]string) []string
	beside      func()       // runs until ctx ends
	instead     func() bool  // reports whether the run does nothing
	after       func() error // once the Manager has ended
}

// given is the endpoint that the suite's handler is given.
func (r *brokenRun) given(endpoint string) string {
	if r.passesEmpty && strings.HasPrefix(endpoint, r.dir) {
		return ""
	}
	return endpoint
}

func (r *brokenRun) ValidatePlugin(ctx context.Context, name, endpoint string, versions []string) error {
	if r.versions != nil {
		versions = r.versions(versions)
	}
	endpoint = r.given(endpoint)
	next := func() error { return r.h.ValidatePlugin(ctx, name, endpoint, versions) }
	if r.validate != nil {
		return r.validate(next, name, endpoint)
	}
	return next()
}

func (r *brokenRun) RegisterPlugin(ctx context.Context, name, endpoint string, versions []string, timeout *time.Duration) error {
	endpoint = r.given(endpoint)
	next := func() error { return r.h.RegisterPlugin(ctx, name, endpoint, versions, timeout) }
	if r.register != nil {
		return r.register(next, name, endpoint)
	}
	return next()
}

func (r *brokenRun) DeRegisterPlugin(ctx context.Context, name, endpoint string) {
	endpoint = r.given(endpoint)
	next := func() { r.h.DeRegisterPlugin(ctx, name, endpoint) }
	if r.deregister != nil {
		r.deregister(next, name, endpoint)
		return
	}
	next()
}

// run is the whole of it.
func (r *brokenRun) run(ctx context.Context, added <-chan handlers) error {
	var managing context.Context
	managing, r.cancel = context.WithCancel(ctx)
	defer r.cancel()
	if r.instead != nil && r.instead() {
		<-ctx.Done()
		return nil
	}
	if r.beside != nil {
		r.work.Go(r.beside)
	}
	if r.takesNone {
		added = nil
	}
	hs := maps.Clone(r.others)
	if hs == nil {
		hs = handlers{}
	}
	hs["CSIPlugin"] = r
	err := runManager(managing, r.cfg, r.dir, hs, added)
	<-ctx.Done()
	if r.after != nil {
		return r.after()
	}
	return err
}

// brokenSubject is a registrar that is broken in one way.
type brokenSubject struct {
	breaks func(*brokenRun)
	mu     sync.Mutex
	runs   []*brokenRun
}

func (s *brokenSubject) start(ctx context.Context, dir string, hs handlers, added <-chan handlers) error {
	r := &brokenRun{ctx: ctx, dir: dir, h: hs["CSIPlugin"], cfg: register.Config{LivenessGrace: testGrace}}
	s.breaks(r)
	s.mu.Lock()
	s.runs = append(s.runs, r)
	s.mu.Unlock()
	return r.run(ctx, added)
}

func (s *brokenSubject) subject(patience time.Duration) conformance.RegistrarSubject {
	run := func(ctx context.Context, dir string, hs handlers) error { return s.start(ctx, dir, hs, nil) }
	return conformance.RegistrarSubject{Run: run, Adding: s.start, NoInotify: run, Grace: testGrace, Patience: patience, Quiet: brokenQuiet}
}

const (
	brokenQuiet = 500 * time.Millisecond
	// A rule that is to be broken has no more time than that takes; the others have as much as a Manager on a busy machine may need.
	brokenPatience = 3 * time.Second
	busyPatience   = 40 * time.Second
)

// "none" is a Manager as it is: it keeps all rules.
func TestRegistrarBites(t *testing.T) {
	complete(t, conformance.Registrar(conformance.RegistrarSubject{}), slices.Collect(maps.Keys(brokenRegistrars)))
	var all sync.WaitGroup
	places := make(chan struct{}, 8) // they mostly wait
	for id, breaks := range brokenRegistrars {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			t.Run(cmp.Or(id, "none"), func(t *testing.T) { registrarBites(t, id, breaks) })
		})
	}
	all.Wait()
}

func registrarBites(t *testing.T, id string, breaks func(*brokenRun)) {
	s := &brokenSubject{breaks: breaks}
	rules := conformance.Registrar(s.subject(busyPatience))
	if !mayMount(t) {
		if id == "D7-mounted" {
			t.Skip("nothing can be mounted here")
		}
		rules = slices.DeleteFunc(rules, func(r conformance.Rule) bool { return r.ID == "D7-mounted" })
	}
	short := s.subject(brokenPatience)
	short.Quiet *= 3
	if id == "D1-inotify" {
		short.NoInotify = func(ctx context.Context, _ string, _ handlers) error {
			<-ctx.Done()
			return nil
		}
	}
	for _, r := range conformance.Registrar(short) {
		if r.ID == ruleOf(id) {
			rules[slices.IndexFunc(rules, func(other conformance.Rule) bool { return other.ID == r.ID })] = r
		}
	}
	bites(t, rules, ruleOf(id))
	for _, r := range s.runs {
		r.work.Wait()
	}
}

// mayMount reports whether something can be mounted here. Where CI is set it must be.
func mayMount(t *testing.T) bool {
	t.Helper()
	if os.Getenv("CI") != "" {
		return true
	}
	dir := t.TempDir()
	if runtime.GOOS != "linux" || exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "tmpfs", dir).Run() != nil {
		return false
	}
	if err := exec.CommandContext(t.Context(), "umount", dir).Run(); err != nil {
		t.Error(err)
	}
	return true
}
