//go:build !linux && !darwin

package register

import (
	"net"

	"github.com/plugpoll/plugpoll/state"
)

// peerOf tells nothing: Windows does not say who listens.
func peerOf(net.Conn) (state.Peer, bool) { return state.Peer{}, false }
