package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/register"
)

// The plugin types of the suite: one that has a handler, one that has none, and one whose handler comes later.
const (
	pluginType = "CSIPlugin"
	otherType  = "OtherPlugin"
	lateType   = "LatePlugin"
)

// stage is a directory, a registrar that watches it, the handler that is given its plugins, and the plugins: what one rule needs. What the suite itself cannot do
// there is a fault that its methods panic with.
type stage struct {
	*diary
	RegistrarSubject
	ctx  context.Context
	dir  string // of this stage
	root string // that the registrar is told to watch

	mu     sync.Mutex
	calls  map[[2]string]func(context.Context) error // what the handler does in a call for a name
	actors []*actor
	stop   context.CancelFunc // nil: the registrar was not started
	leave  chan struct{}      // closed by clear: no call of the handler goes on
	undo   []func()           // done by clear
}

// on makes of what one rule does on a stage the check of that rule.
func (r registrar) on(act func(*stage) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (seen string, err error) {
		defer func() {
			switch v := recover().(type) {
			case nil:
			case fault:
				err = v
			default:
				panic(v)
			}
		}()
		dir, err := os.MkdirTemp(r.Dir, "pr")
		if err != nil {
			return "", fault{err}
		}
		s := &stage{
			diary: newDiary(), RegistrarSubject: r.RegistrarSubject, ctx: ctx, dir: dir, root: filepath.Join(dir, "root"),
			calls: map[[2]string]func(context.Context) error{}, leave: make(chan struct{}),
		}
		defer s.clear()
		must(os.Mkdir(s.root, 0o755))
		return act(s)
	}
}

func must(err error) {
	if err != nil {
		panic(fault{err})
	}
}

// clear ends everything. A registrar that does not end is left behind.
func (s *stage) clear() {
	close(s.leave)
	_, _ = s.end()
	s.mu.Lock()
	actors := s.actors
	s.mu.Unlock()
	for _, a := range actors {
		a.die()
	}
	for _, undo := range s.undo {
		undo()
	}
	_ = os.RemoveAll(s.dir)
}

// start has the registrar watch the root by one of the subject's functions.
func (s *stage) start(run runFunc) {
	handlers := map[string]register.KubeletHandler{pluginType: takes{s}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx)) // clear ends it
	s.stop = cancel
	go func() {
		err := errGoexit
		defer func() {
			if v := recover(); v != nil {
				err = panicked(v)
			}
			s.err = err
			close(s.over)
		}()
		err = run(ctx, s.root, handlers)
	}()
}

// run starts the registrar, and returns when it has registered a first plugin: then it watches.
func (s *stage) run() error { return s.runBy(s.Run) }

func (s *stage) runBy(run runFunc) error {
	s.start(run)
	s.play(&actor{name: "first"})
	_, err := s.soon(told, "first")
	return err
}

// end has the registrar end, and returns how long that took, and an error if it does not end within the subject's Patience or Run has failed.
func (s *stage) end() (time.Duration, error) {
	if s.stop == nil {
		return 0, nil
	}
	began := time.Now()
	s.stop()
	late := time.NewTimer(s.Patience)
	defer late.Stop()
	select {
	case <-s.over:
	case <-late.C:
		return 0, fmt.Errorf("its Run did not return within %v of the end of its context", s.Patience)
	}
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		return 0, fmt.Errorf("its Run returned the error %w", s.err)
	}
	return time.Since(began), nil
}

func (s *stage) path(name string) string { return filepath.Join(s.root, name) }

func (s *stage) rename(from, to string) time.Time {
	must(os.Rename(s.path(from), s.path(to)))
	return time.Now()
}

func (s *stage) pause(d time.Duration) { must(pause(s.ctx, d)) }

// registered runs the registrar and has a plugin registered, at its name below the root.
func (s *stage) registered(a *actor) error {
	if err := s.run(); err != nil {
		return err
	}
	s.play(a)
	_, err := s.soon(told, a.name)
	return err
}

// whenever has the handler do something in each call of a kind for a name.
func (s *stage) whenever(call, name string, do func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[[2]string{call, name}] = do
}

// times fails so often, and then never again.
func times(n int, fail func() error) func(context.Context) error {
	var mu sync.Mutex
	return func(context.Context) error {
		mu.Lock()
		n--
		over := n < 0
		mu.Unlock()
		if over {
			return nil
		}
		return fail()
	}
}

var errToday = errors.New("not today")

func notToday() error { return errToday }

// takes is the handler.
type takes struct{ *stage }

func (t takes) call(ctx context.Context, what, name string) error {
	t.mu.Lock()
	do := t.calls[[2]string{what, name}]
	t.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(ctx)
}

func (t takes) ValidatePlugin(ctx context.Context, name, endpoint string, versions []string) error {
	t.note(event{what: validated, name: name, path: endpoint, versions: versions})
	return t.call(ctx, validated, name)
}

func (t takes) RegisterPlugin(ctx context.Context, name, endpoint string, versions []string, _ *time.Duration) error {
	if err := t.call(ctx, registered, name); err != nil {
		return err
	}
	t.note(event{what: registered, name: name, path: endpoint, versions: versions})
	return nil
}

func (t takes) DeRegisterPlugin(ctx context.Context, name, endpoint string) {
	t.note(event{what: deregistered, name: name, path: endpoint})
	_ = t.call(ctx, deregistered, name)
}
