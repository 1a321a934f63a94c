package register

import (
	"context"
	"fmt"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// work is an effect that is being carried out, in a goroutine of its own. How many there may be is the core's decision (R11).
type work struct {
	what   string
	cancel context.CancelFunc
}

// carryOut does one effect, or starts it.
func (l *loop) carryOut(e state.Effect) {
	switch e := e.(type) {
	case state.Ask:
		l.probe(e.Op, "dial and GetInfo", func(ctx context.Context) state.Input { return l.ask(ctx, e) })
	case state.Notify:
		l.probe(e.Op, "NotifyRegistrationStatus", func(ctx context.Context) state.Input { return l.notify(ctx, e) })
	case state.Validate:
		l.call(e.Op, "Validate", e.Registration, func(ctx context.Context, h Handler) error {
			return h.Validate(ctx, e.Registration)
		})
	case state.Register:
		l.call(e.Op, "Register", e.Registration, func(ctx context.Context, h Handler) error {
			return h.Register(ctx, e.Registration, func(r state.Report) { l.post(state.Reported{ID: e.ID, Report: r}) })
		})
	case state.Deregister:
		l.call(e.Op, "Deregister", e.Registration, func(ctx context.Context, h Handler) error {
			return h.Deregister(ctx, e.Registration)
		})
	case state.Cancel:
		if w := l.running[e.ID]; w != nil {
			w.cancel()
		}
	case state.Close:
		l.drop(e.Conn)
	case state.Emit:
		l.print(e)
	case state.Synced:
		close(l.synced)
	case state.Stopped:
		l.stopped = true
	}
}

func (l *loop) start(id state.EffectID, what string, ctx context.Context, cancel context.CancelFunc, f func(context.Context) state.Input) {
	l.running[id] = &work{what, cancel}
	go func() { l.post(done{id, f(ctx)}) }()
}

func (l *loop) probe(op state.Op, what string, f func(context.Context) state.Input) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.start(op.ID, what+" of "+scanner.Quote(op.Path), ctx, cancel, f)
}

// call starts a handler call. Only Deregister is called after Run's context has ended, with a fresh one (S1).
func (l *loop) call(op state.Op, verb string, r state.Registration, f func(context.Context, Handler) error) {
	limit := l.cfg.HandlerTimeout
	ctx := l.ctx
	if verb == "Deregister" {
		ctx = context.WithoutCancel(ctx)
		if l.stopping {
			limit = l.cfg.StopTimeout
		}
	}
	cancel := context.CancelFunc(nil)
	if limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	l.mu.Lock()
	h := l.handlers[r.Type]
	l.mu.Unlock()
	what := fmt.Sprintf("%s of %s", verb, scanner.Quote(op.Path))
	l.start(op.ID, what, ctx, cancel, func(ctx context.Context) state.Input {
		err := f(ctx, h)
		return state.Called{ID: op.ID, Err: err, Failure: failureOf(err)}
	})
}

func (l *loop) ask(ctx context.Context, e state.Ask) state.Input {
	started := time.Now()
	info, conn, err := l.client.ask(ctx, e.Entry)
	if conn != nil {
		l.keep(e.ID, conn)
	}
	l.printCall("asked", e.Path, err, "took", time.Since(started).Round(time.Millisecond))
	return state.Asked{ID: e.ID, Info: info, Connected: conn != nil, Err: err, Failure: failureOf(err)}
}

// notify uses the connection it is given, or opens one, which then takes the other's place.
func (l *loop) notify(ctx context.Context, n state.Notify) state.Input {
	var opened *connection
	conn := l.conn(n.Conn)
	if conn == nil {
		var err error
		if opened, err = l.client.open(ctx, n.Entry); err != nil {
			return state.Notified{ID: n.ID, Err: err, Failure: failureOf(err)}
		}
		conn = opened
	}
	err := l.client.notify(ctx, conn, n)
	failure := failureOf(err)
	if opened != nil {
		if err != nil && failure != state.Unsupported {
			_ = opened.Close()
			opened = nil
		} else {
			l.keep(n.ID, opened)
		}
	}
	l.printTold(n, err)
	return state.Notified{ID: n.ID, Connected: opened != nil, Err: err, Failure: failure}
}
