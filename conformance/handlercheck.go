package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/state"
)

// Each rule has plugins of its own: what one has left behind is none of the next one's.
const (
	nLives = iota * 100
	nValidates
	nObeys
	nLetsGo
	nFails
	nEqual
	nReports
	nAgain
	nTogether
	nInstances
	nConstant
)

// quiet is how long nothing must be reported for it to have stopped.
const quiet = 100 * time.Millisecond

func unheard(state.Report) {}

// register is Validate and Register, as a Manager calls them.
func (h handler) register(ctx context.Context, r state.Registration, report func(state.Report)) error {
	if err := h.Handler.Validate(ctx, r); err != nil {
		return fmt.Errorf("validate: %w", err)
	}
	if err := h.Handler.Register(ctx, r, report); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	return nil
}

func (h handler) deregister(ctx context.Context, r state.Registration) error {
	if err := h.Handler.Deregister(ctx, r); err != nil {
		return fmt.Errorf("deregister: %w", err)
	}
	return nil
}

// life is the whole of one plugin's.
func (h handler) life(ctx context.Context, r state.Registration) error {
	if err := h.register(ctx, r, unheard); err != nil {
		return err
	}
	return h.deregister(ctx, r)
}

func (h handler) held() int {
	if h.Held == nil {
		return 0
	}
	return h.Held()
}

// settled waits until no more than before is held: goroutines may take a moment to end.
func (h handler) settled(ctx context.Context, before int, when string) error {
	end := time.Now().Add(h.Patience)
	for h.held() > before && time.Now().Before(end) {
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	if n := h.held(); n > before {
		return fmt.Errorf("%s it holds %d, and %d before", when, n, before)
	}
	return nil
}

func (h handler) lives(ctx context.Context) error { return h.life(ctx, h.Registration(nLives)) }

func (h handler) validates(ctx context.Context) error {
	r, before := h.Registration(nValidates), h.held()
	first := h.Handler.Validate(ctx, r)
	for i := range 3 {
		if again := h.Handler.Validate(ctx, r); (again == nil) != (first == nil) {
			return fmt.Errorf("call %d of Validate for one plugin gives the error %w, the first %w", i+2, given(again), given(first))
		}
	}
	if n := h.held(); n > before {
		return fmt.Errorf("after four calls of Validate it holds %d, and %d before", n, before)
	}
	return nil
}

func (h handler) obeys(ctx context.Context) error {
	make := h.Registration
	if h.Hangs != nil {
		make = h.Hangs
	}
	r := make(nObeys)
	if err := h.Handler.Validate(ctx, r); err != nil {
		return fmt.Errorf("validate: %w", err)
	}
	registered := false
	err := h.within(ctx, "Register", func(ctx context.Context) {
		registered = h.Handler.Register(ctx, r, unheard) == nil
	})
	if err != nil || !registered {
		return err
	}
	return h.within(ctx, "Deregister", func(ctx context.Context) { _ = h.Handler.Deregister(ctx, r) }) // its error is shown, and no more (R5)
}

// obeyAfter is when the context of a call ends that is to obey it.
const obeyAfter = 20 * time.Millisecond

// within makes a call whose context ends soon. A call that does not return is left behind.
func (h handler) within(ctx context.Context, name string, call func(context.Context)) error {
	short, cancel := context.WithTimeout(ctx, obeyAfter)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			var err error
			if v := recover(); v != nil {
				err = fmt.Errorf("%s: %w", name, panicked(v))
			}
			done <- err
		}()
		call(short)
	}()
	late := time.NewTimer(obeyAfter + h.Patience)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("%s did not return within %v of the end of its context", name, h.Patience)
	}
}

func (h handler) letsGo(ctx context.Context) error {
	before := h.held()
	for i := range 3 {
		if err := h.life(ctx, h.Registration(nLetsGo+i)); err != nil {
			return err
		}
	}
	return h.settled(ctx, before, "after three plugins were registered and let go")
}

func (h handler) cleansUp(ctx context.Context) error {
	before := h.held()
	for i := range 3 {
		r := h.Fails(nFails + i)
		if err := h.Handler.Validate(ctx, r); err != nil {
			return fmt.Errorf("validate refuses a plugin on which Register is to fail: %w", err)
		}
		if err := h.Handler.Register(ctx, r, unheard); err == nil {
			return errors.Join(errors.New("register gave no error for a plugin on which it is to fail"), h.deregister(ctx, r))
		}
	}
	return h.settled(ctx, before, "after Register has failed three times")
}

// twin is an equal Registration that shares nothing with r.
func twin(r state.Registration) state.Registration {
	r.Versions = slices.Clone(r.Versions)
	return r
}

func (h handler) takesEqual(ctx context.Context) error {
	r := h.Registration(nEqual)
	same := twin(r)
	if err := h.register(ctx, r, unheard); err != nil {
		return err
	}
	if !slices.Equal(r.Versions, same.Versions) {
		return errors.Join(fmt.Errorf("its versions are %q after Register, and were %q", r.Versions, same.Versions), h.deregister(ctx, same))
	}
	return h.deregister(ctx, same)
}

func (h handler) stopsReporting(ctx context.Context) error {
	reports := make(chan struct{}, 1)
	heard := func(state.Report) {
		select {
		case reports <- struct{}{}:
		default:
		}
	}
	r := h.Registration(nReports)
	if err := errors.Join(h.register(ctx, r, heard), pause(ctx, quiet/10)); err != nil {
		return err
	}
	if err := h.deregister(ctx, r); err != nil {
		return err
	}
	end := time.Now().Add(h.Patience)
	for time.Now().Before(end) {
		silence := time.NewTimer(quiet)
		select {
		case <-silence.C:
			return nil
		case <-reports:
			silence.Stop()
		}
	}
	return fmt.Errorf("it still reports %v after Deregister", h.Patience)
}

func (h handler) again(ctx context.Context) error {
	r := h.Registration(nAgain)
	for i := range 5 {
		if err := h.life(ctx, twin(r)); err != nil {
			return fmt.Errorf("time %d: %w", i+1, err)
		}
	}
	return nil
}

func (h handler) together(ctx context.Context) error {
	const plugins = 8
	errs := make([]error, plugins)
	var work sync.WaitGroup
	for i := range plugins {
		r := h.Registration(nTogether + i)
		work.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					errs[i] = panicked(v)
				}
			}()
			errs[i] = h.life(ctx, r)
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("with %d plugins at once: %w", plugins, err)
	}
	return nil
}

func (h handler) instances(ctx context.Context) error {
	a, b := h.Registration(nInstances), h.Registration(nInstances+1)
	b.Name = a.Name
	if err := h.register(ctx, a, unheard); err != nil {
		return err
	}
	if err := h.register(ctx, b, unheard); err != nil {
		return errors.Join(fmt.Errorf("a second socket of one name: %w", err), h.deregister(ctx, a))
	}
	before := h.held()
	if err := h.deregister(ctx, a); err != nil {
		return errors.Join(err, h.deregister(ctx, b))
	}
	var err error
	if n := h.held(); n < before/2 {
		err = fmt.Errorf("with two sockets of one name it holds %d, and when one was let go %d", before, n)
	}
	return errors.Join(err, h.deregister(ctx, b))
}

func (h handler) constant(ctx context.Context) error {
	if _, says := h.Handler.(interface{ Exclusive() bool }); !says {
		return nil
	}
	first := h.exclusive()
	r := h.Registration(nConstant)
	for range 3 {
		if h.exclusive() != first {
			return fmt.Errorf("a call of Exclusive gives %v, and gave %v", !first, first)
		}
	}
	_ = h.life(ctx, r) // how that goes is another rule's
	if h.exclusive() != first {
		return fmt.Errorf("a call of Exclusive gives %v after a Register, and gave %v", !first, first)
	}
	return nil
}
