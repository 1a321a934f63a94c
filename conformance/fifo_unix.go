//go:build unix

package conformance

import (
	"errors"
	"os"
	"syscall"
)

func makeFIFO(path string) error { return syscall.Mkfifo(path, 0o644) }

// fifoIsRead reports whether somebody has a FIFO open for reading: only then it can be opened for writing at once.
func fifoIsRead(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}
