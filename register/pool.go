package register

import (
	"context"
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// work is an effect that is being carried out, in a goroutine of its own. How many there may be is the core's decision (R11).
type work struct {
	what, path string
	cancel     context.CancelFunc
}

// carryOut does one effect, or starts it.
func (l *loop) carryOut(e state.Effect) {
	switch e := e.(type) {
	case state.Ask:
		l.metrics.asked(e)
		l.ask(e.Op, e.Entry)
	case state.Look:
		l.look(e.Op)
	case state.Rescan:
		l.rescan(e.Root)
	case state.Notify:
		l.probe(e.Op, "NotifyRegistrationStatus", func(ctx context.Context) state.Input { return l.notify(ctx, e) })
	case state.Validate:
		l.call(e.Op, "Validate", e.Registration, Handler.Validate)
	case state.Register:
		l.call(e.Op, "Register", e.Registration, func(h Handler, ctx context.Context, r state.Registration) error {
			return h.Register(ctx, r, func(r state.Report) { l.post(state.Reported{ID: e.ID, Report: presentable(r)}) })
		})
	case state.Deregister:
		l.call(e.Op, "Deregister", e.Registration, Handler.Deregister)
	case state.Cancel:
		for _, w := range []*work{l.running[e.ID], l.looks[e.ID]} {
			if w != nil {
				w.cancel()
			}
		}
	case state.Close:
		l.drop(e.Conn)
	case state.Emit:
		l.metrics.happened(e.Event, l.typeLabel(e.Event))
		l.print(e)
	case state.Synced:
		close(l.synced)
	case state.Stopped:
		l.stopped = true
	}
}

func (l *loop) probe(op state.Op, what string, f func(context.Context) state.Input) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.running[op.ID] = &work{what, op.Path, cancel}
	go func() { l.post(done{op.ID, f(ctx)}) }()
}

// call starts a handler call. Only Deregister is called after Run's context has ended, with a fresh one (S1).
func (l *loop) call(op state.Op, verb string, r state.Registration, f func(Handler, context.Context, state.Registration) error) {
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
	r.Versions = slices.Clone(r.Versions) // the handler may do with it what it likes
	l.running[op.ID] = &work{verb, op.Path, cancel}
	go guarded(func() error {
		if err := ctx.Err(); err != nil { // it may have ended since the core decided
			return err
		}
		return f(h, ctx, r)
	}, func(stack []byte) {
		l.printPanic(verb, op.Path, stack)
	}, func(r result) {
		l.post(done{op.ID, state.Called{ID: op.ID, Err: r.err, Failure: r.failure}})
	})
}

// ask posts its own result, because the connection goes with it.
func (l *loop) ask(op state.Op, entry scanner.Entry) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.running[op.ID] = &work{"dial and GetInfo", op.Path, cancel}
	go func() {
		started := time.Now()
		info, conn, err := l.client.ask(ctx, entry)
		message := "GetInfo answered"
		if err != nil {
			message = "GetInfo failed"
		}
		l.printCall(message, op.Path, err, "took", time.Since(started).Round(time.Millisecond).String())
		asked := state.Asked{ID: op.ID, Info: info, Connected: conn != nil, Err: err, Failure: failureOf(err)}
		if conn == nil {
			l.post(done{op.ID, asked})
			return
		}
		asked.Peer = conn.peer
		l.bring(done{op.ID, asked}, conn)
	}()
}

func (l *loop) notify(ctx context.Context, n state.Notify) state.Input {
	err := errNoConnection
	if conn := l.conn(n.Conn); conn != nil {
		err = l.client.notify(ctx, conn, n)
	}
	l.printTold(n, err)
	return state.Notified{ID: n.ID, Err: err, Failure: failureOf(err)}
}
