//go:build !windows

package main

import (
	"os/exec"
	"syscall"
)

// become has cmd run as another user.
func become(cmd *exec.Cmd, user uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, NoSetGroups: false}}
}
