package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// listenerAt returns by which path a process of this machine, in this network namespace, listens at a socket with the file name of path: the same path if
// there is one, and the name alone if the path is not known.
func listenerAt(path string) string {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	return listenerIn(f, path)
}

// accepting is the flag of a socket that listens, in /proc/net/unix.
const accepting = "00010000"

func listenerIn(table io.Reader, path string) (found string) {
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// Num RefCount Protocol Flags Type St Inode Path, and the path may hold blanks.
		at, flags := lines.Text(), ""
		for i := range 7 {
			var field string
			field, at, _ = strings.Cut(strings.TrimLeft(at, " "), " ")
			if i == 3 {
				flags = field
			}
		}
		switch {
		case flags != accepting || at == "":
		case at == path:
			return path
		case filepath.Base(at) == filepath.Base(path) && at[0] != '@':
			found = at
			if strings.HasPrefix(at, "/proc/self/fd/") { // bound through a descriptor of its own, which says nothing to others
				found = filepath.Base(at)
			}
		}
	}
	return found
}
