package main

import (
	"fmt"
	"os"
	"syscall"
)

// isJournal tells whether f is the stream that systemd connected to its journal: $JOURNAL_STREAM names its device and inode.
func isJournal(f *os.File) bool {
	stream := os.Getenv("JOURNAL_STREAM")
	if stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}
