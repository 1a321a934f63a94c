package scanner

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// nextRaw is next on a directory of the operating system. os.File.ReadDir makes two objects of each name and one call more for each directory, which
// is a sixth of the time of a first scan.
func (c *caller) nextRaw(names []dirent, f *os.File, path string) (_ []dirent, ok bool, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return names, true, err
	}
	if c.buffer == nil {
		c.buffer = make([]byte, 8<<10)
	}
	// The buffer is the caller's and not the scan's: the system may write to it after the call was given up.
	n, errno := 0, error(unix.EINTR)
	c.enter("list", path)
	for err == nil && errors.Is(errno, unix.EINTR) {
		err = conn.Control(func(fd uintptr) { n, errno = unix.Getdents(int(fd), c.buffer) })
	}
	c.leave()
	switch {
	case err != nil:
		return names, true, err
	case errno != nil:
		return names, true, &fs.PathError{Op: "readdirent", Path: path, Err: errno}
	case n <= 0:
		return names, true, io.EOF
	}
	return appendDirents(names, c.buffer[:n]), true, nil
}

// appendDirents appends the names in what getdents64(2) has written. They share one string: what is kept of them longer than for a scan is to
// be cloned.
func appendDirents(names []dirent, records []byte) []dirent {
	const length, typ, name = 16, 18, 19 // offsets in struct linux_dirent64
	for text := string(records); len(records) > name; {
		n := int(binary.NativeEndian.Uint16(records[length:]))
		if n <= name || n > len(records) {
			break
		}
		d := dirent{typ: direntType(records[typ])}
		if d.name, _, _ = strings.Cut(text[name:n], "\x00"); d.name != "." && d.name != ".." {
			names = append(names, d)
		}
		records, text = records[n:], text[n:]
	}
	return names
}

func direntType(typ byte) fs.FileMode {
	switch typ {
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_REG:
		return 0
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	}
	return typeUnknown
}
