//go:build !windows

package main

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readerPoll is how long one look for a reader takes; one that goes away ends it at once.
const readerPoll = 250 * time.Millisecond

// whenUnread calls gone, once, when nobody reads w any more: who has nothing to write would not notice. It returns at once and looks until ctx ends.
// Pipes, sockets and terminals lose their readers; of anything else, gone is never called.
func whenUnread(ctx context.Context, w io.Writer, gone func()) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	raw, err := f.SyscallConn() // its Fd would make writes uninterruptible
	if err != nil {
		return
	}
	go func() {
		for ctx.Err() == nil {
			var events int16
			err := raw.Control(func(fd uintptr) {
				fds := []unix.PollFd{{Fd: int32(fd)}}
				_, _ = unix.Poll(fds, int(readerPoll.Milliseconds())) // one that a signal has ended is repeated
				events = fds[0].Revents
			})
			switch {
			case err != nil || events&unix.POLLNVAL != 0: // it was closed
				return
			case events != 0:
				gone()
				return
			}
		}
	}()
}
