package register

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/state"
)

// systemPeer tells of the operating system's unix sockets who called listen; nil: that is not known. The uid is right in every namespace; the process
// is unknown where it has no number in ours. An error is a lack on our side (L1): not to know the process then would be to take the plugin for another instance.
func systemPeer(conn net.Conn) (*state.Peer, error) {
	cred, err := credentials(conn)
	if err != nil {
		return nil, nil //nolint:nilerr // it is not one of the system's
	}
	p := state.Peer{UID: int(cred.Uid)}
	// The process may have ended, as it has where a plugin has made itself a daemon, and its number may be another's by now. If that one ends too, the plugin counts
	// as another instance at the next connection, which costs one registration (L1). Another instance is never taken for the same: no two processes have had
	// one number and one start.
	start, err := startOf(int(cred.Pid))
	if err != nil {
		return nil, err
	}
	if start != 0 {
		p.PID, p.Start = int(cred.Pid), start
	}
	return &p, nil
}

var errNoSocket = errors.New("not a socket of the operating system")

func credentials(conn net.Conn) (cred *unix.Ucred, err error) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errNoSocket
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return cred, errors.Join(controlErr, err)
}

// startOf returns when a process started, in clock ticks since the system did. 0: not known, as in a namespace whose /proc is another one's. An error is a
// lack on our side.
func startOf(pid int) (uint64, error) {
	if self, err := os.Readlink("/proc/self"); pid <= 0 || err != nil || self != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	switch {
	case isOurs(err):
		return 0, err
	case err != nil:
		return 0, nil
	}
	return startIn(stat), nil
}

// startIn reads field 22 of /proc/PID/stat. Field 2 is the program's name in parentheses, which may hold anything, parentheses and blanks too.
func startIn(stat []byte) uint64 {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const start = 22 - 3 // what follows the name begins with field 3
	if len(fields) <= start {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[start]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
