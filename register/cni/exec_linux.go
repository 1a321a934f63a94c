package cni

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// endGroup waits for a program to end and then ends what it has left of its group. The program is not reaped yet, so that its number, which is the
// group's, is nobody else's.
func endGroup(cmd *exec.Cmd) {
	pid := cmd.Process.Pid
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	if err == nil { // else it may still run, or be reaped: where SIGCHLD is ignored the kernel does that
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
}
