//go:build unix

package cni

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// touch reads the beginning of a program that is to be started. From the start until the program has begun the runtime cannot stop that thread, not even to
// collect garbage (vfork): on a filesystem that does not answer, the whole process would hang. So it is this read that does, of what the start reads next. What
// is wrong with the program is for the start to say.
func touch(path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = unix.Read(fd, make([]byte, 4<<10))
	_ = unix.Close(fd)
}

// ownGroup puts a program in a process group of its own, which ends as a whole when the context does.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
