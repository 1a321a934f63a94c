package register

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/state"
)

// systemPeer tells of the operating system's unix sockets; nil: it cannot. The process is unknown: darwin tells its number, but not simply when it started.
func systemPeer(conn net.Conn) (*state.Peer, error) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil, nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, nil
	}
	var cred *unix.Xucred
	controlErr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) })
	if controlErr != nil || err != nil {
		return nil, nil
	}
	return &state.Peer{UID: int(cred.Uid)}, nil
}
