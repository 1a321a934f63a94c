//go:build unix

package cni

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

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
