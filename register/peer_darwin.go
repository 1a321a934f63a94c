package register

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/state"
)

// peerOf is the PeerFunc of the operating system's unix sockets. The process is unknown: darwin tells its number, but not simply when it started.
func peerOf(conn net.Conn) (state.Peer, bool) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return state.Peer{}, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return state.Peer{}, false
	}
	var cred *unix.Xucred
	controlErr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) })
	if controlErr != nil || err != nil {
		return state.Peer{}, false
	}
	return state.Peer{UID: int(cred.Uid)}, true
}
