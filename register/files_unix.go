//go:build linux || darwin

package register

import (
	"math"

	"golang.org/x/sys/unix"
)

// fileLimit is how many files the process may have open. 0: any number.
func fileLimit() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur > math.MaxInt32 {
		return 0
	}
	return int(l.Cur)
}
