//go:build !windows

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks the directory itself, which leaves no file and ends with the process. unlock is nil if somebody else has it locked.
func (p *place) tryLock() (unlock func(), err error) {
	d, err := os.Open(p.at("."))
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { _ = d.Close() }, nil
	}
	_ = d.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, err
}
