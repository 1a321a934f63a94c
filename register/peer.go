package register

import (
	"net"

	"github.com/plugpoll/plugpoll/state"
)

// PeerFunc says whose socket a connection leads to; false: that cannot be told. It is called once for each connection that was dialled, before anything is
// sent over it, and must not use it up.
type PeerFunc func(net.Conn) (state.Peer, bool)
