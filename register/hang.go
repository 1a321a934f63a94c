package register

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/state"
)

// This file is about dials that do not return (R10, U4). A dial makes calls of a filesystem, which nothing can cancel, and a Dialer of somebody else's may not obey its
// context. So each runs in a goroutine of its own. Once its context has ended it is given up; its path is left alone until it has returned, and then what it brings is closed.

const (
	// dialGrace is how long a dial may take to return after its context has ended.
	dialGrace = 100 * time.Millisecond
	// maxHungDials is how many may be given up at once: each may be a thread of the system, of which a process has 10,000.
	maxHungDials = 256
)

var (
	errHung       = errors.New("the call does not return, as on a filesystem that hangs, and until it does there is no other one")
	errManyHung   = fmt.Errorf("%d calls do not return, as on a filesystem that hangs, and until one does there is no other one", maxHungDials)
	errDialGoexit = errors.New("the Dialer ended its goroutine (runtime.Goexit)")
)

// dialled is what a dial brings.
type dialled struct {
	raw  *plain
	peer *state.Peer // nil: unknown
}

// dials are those that have not returned. The zero value is ready.
type dials struct {
	freed func() // called when one that was given up has returned, and all it left is closed; nil: nobody wants to know

	mu     sync.Mutex
	byPath map[string]*dialling
	hung   int
}

// dialling is one dial. The mutex of dials guards over and left.
type dialling struct {
	returned, abandoned chan struct{}
	over, left          bool // it has returned; it was given up

	brought dialled
	err     error
}

// do calls f for as long as ctx lets it. There is one call for a path at a time.
func (d *dials) do(ctx context.Context, path string, f func() (dialled, error)) (dialled, error) {
	one, err := d.begin(ctx, path)
	if err != nil {
		return dialled{}, err
	}
	go func() {
		defer d.end(path, one)
		one.err = errDialGoexit
		one.brought, one.err = f()
	}()
	select {
	case <-one.returned:
		return one.brought, one.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(dialGrace)
	defer grace.Stop()
	select {
	case <-one.returned:
		return one.brought, one.err
	case <-grace.C:
	}
	if d.giveUp(one) {
		return dialled{}, errHung
	}
	<-one.returned
	return one.brought, one.err
}

// begin waits for a call for the same path whose context has just ended, and fails if that one was given up.
func (d *dials) begin(ctx context.Context, path string) (*dialling, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other := d.byPath[path]; other != nil; other = d.byPath[path] {
		if other.left {
			return nil, errHung
		}
		d.mu.Unlock()
		select {
		case <-other.returned:
		case <-other.abandoned:
		case <-ctx.Done():
		}
		d.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if d.hung >= maxHungDials {
		return nil, errManyHung
	}
	if d.byPath == nil {
		d.byPath = map[string]*dialling{}
	}
	one := &dialling{returned: make(chan struct{}), abandoned: make(chan struct{})}
	d.byPath[path] = one
	return one, nil
}

// giveUp reports false if the call has returned.
func (d *dials) giveUp(one *dialling) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one.over {
		return false
	}
	one.left = true
	d.hung++
	close(one.abandoned)
	return true
}

func (d *dials) end(path string, one *dialling) {
	d.mu.Lock()
	one.over = true
	late := one.left
	d.mu.Unlock()
	if late && one.brought.raw != nil {
		_ = one.brought.raw.shut()
	}
	d.mu.Lock()
	delete(d.byPath, path)
	if late {
		d.hung--
	}
	d.mu.Unlock()
	close(one.returned)
	if late && d.freed != nil {
		d.freed()
	}
}

// stuck returns the paths of the calls that were given up and have not returned, sorted.
func (d *dials) stuck() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	paths := slices.Sorted(maps.Keys(d.byPath))
	return slices.DeleteFunc(paths, func(path string) bool { return !d.byPath[path].left })
}

// count is how many were given up and have not returned.
func (d *dials) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hung
}
