package register

import (
	"context"
	"net"
	"testing/synctest"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// shell is what carries out effects, without a core: a test gives it effects and takes the inputs that come of them.
type shell struct {
	*world
	l      *loop
	cancel context.CancelFunc
}

// shell makes one of the world's Manager, which must not run.
func (w *world) shell() *shell {
	ctx, cancel := context.WithCancel(w.Context())
	return &shell{w, &loop{Manager: w.m, ctx: ctx, running: map[state.EffectID]*work{}, looks: map[state.EffectID]*work{}}, cancel}
}

// do carries an effect out and returns the inputs that came of it, in order.
func (s *shell) do(e state.Effect) []state.Input {
	s.l.carryOut(e)
	return s.inputs()
}

// ask asks the plugin behind a name, as the effect with this number.
func (s *shell) ask(id state.EffectID, name string) state.Asked {
	s.Helper()
	in := s.do(state.Ask{Op: state.Op{ID: id, Path: at(name)}, Entry: scanner.Entry{Path: at(name)}})
	if len(in) != 1 {
		s.Fatalf("asking gave %+v", in)
	}
	return in[0].(state.Asked)
}

// inputs returns what the core would be given now.
func (s *shell) inputs() []state.Input {
	synctest.Wait()
	var inputs []state.Input
	for _, mail := range s.m.takeMail() {
		switch mail := mail.(type) {
		case done:
			s.l.running[mail.id].cancel()
			delete(s.l.running, mail.id)
			inputs = append(inputs, mail.input)
		case looked:
			s.l.looks[mail.result.ID].cancel()
			delete(s.l.looks, mail.result.ID)
			inputs = append(inputs, mail.result)
		case state.Input:
			inputs = append(inputs, mail)
		}
	}
	return inputs
}

// end closes what the test left open.
func (s *shell) end() {
	s.cancel()
	s.m.end()
	synctest.Wait()
}

// onShell runs f on the shell of a fresh world.
func onShell(w *world, f func(s *shell)) {
	s := w.shell()
	defer s.end()
	f(s)
}

// peerOf is the PeerFunc of the operating system.
func peerOf(conn net.Conn) (state.Peer, bool) {
	p, err := systemPeer(conn)
	if p == nil || err != nil {
		return state.Peer{}, false
	}
	return *p, true
}

// simPeer is the PeerFunc of simulated plugins.
func simPeer(conn net.Conn) (state.Peer, bool) {
	c, ok := conn.(interface {
		Peer() (uid, pid int, start uint64)
	})
	if !ok {
		return state.Peer{}, false
	}
	uid, pid, start := c.Peer()
	return state.Peer{UID: uid, PID: pid, Start: start}, true
}
