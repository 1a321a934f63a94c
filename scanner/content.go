package scanner

import (
	"errors"
	"io"
	"io/fs"
	"runtime"

	"github.com/spf13/afero"
)

// leastContent is the buffer for files; larger ones get a larger one.
const leastContent = 16 << 10

// source is an open file.
type source interface {
	io.ReadCloser
	stat() (typ fs.FileMode, size int64, err error)
}

// reading is what came of reading a file. The content is the caller's buffer, good until its next call.
type reading struct {
	content []byte
	typ     fs.FileMode // not regular: it was not read
	size    int64       // more than MaxFileSize: it was not read, or not to its end
	err     error
}

func (r reading) tooLarge() bool { return r.size > MaxFileSize || len(r.content) > MaxFileSize }

// read reads the file that path leads to. What is there was seen to be a regular file a moment before, and need not be one any more: it is opened without
// blocking, and looked at again once it is open (CN3).
func (c *caller) read(path string) (r reading) {
	f, typ, err := c.source(path)
	if f == nil {
		return reading{typ: typ, err: err}
	}
	defer c.closeAs(f, "read", path)
	c.enter("stat", path)
	r.typ, r.size, r.err = f.stat()
	c.leave()
	if r.err != nil || !r.typ.IsRegular() || r.tooLarge() {
		return r
	}
	if need := int(max(r.size, 0)) + 1; len(c.content) < need { // one more, to see the end
		c.content = make([]byte, max(need, leastContent))
	}
	// One call for the whole file, and not one for each part: the time is for all of them (U4).
	c.enter("read", path)
	defer c.leave()
	n := 0
	for n <= MaxFileSize && !c.abandoned() {
		if n == len(c.content) {
			c.content = append(c.content, make([]byte, n)...)
		}
		more, err := f.Read(c.content[n:min(len(c.content), MaxFileSize+1)])
		n += more
		if errors.Is(err, io.EOF) || err == nil && more <= 0 {
			break
		}
		if err != nil {
			r.err = err
			return r
		}
	}
	r.content = c.content[:n]
	return r
}

// source opens a file to read it. There is none, and no error, if what is there has another type. Where the filesystem is the system's, and the system has
// a way to open that never blocks, the type is for the open file to tell. Everywhere else the path is asked before.
func (c *caller) source(path string) (f source, typ fs.FileMode, err error) {
	switch c.fs.(type) {
	case *afero.OsFs, afero.OsFs:
		if opensUnblocked {
			f, err = c.opened(path, func() (source, error) { return osOpen(path) })
			return f, 0, err
		}
	}
	info, err := c.stat(path)
	if err != nil || !info.Mode().IsRegular() {
		if err == nil {
			typ = info.Mode().Type()
		}
		return nil, typ, err
	}
	f, err = c.opened(path, func() (source, error) {
		file, err := c.fs.Open(path)
		if err != nil {
			return nil, err
		}
		return aferoSource{file}, nil
	})
	return f, 0, err
}

func (c *caller) opened(path string, open func() (source, error)) (source, error) {
	c.enter("open", path)
	f, err := open()
	if !c.left() {
		if err == nil {
			_ = f.Close()
		}
		runtime.Goexit()
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

type aferoSource struct{ afero.File }

func (f aferoSource) stat() (typ fs.FileMode, size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	return info.Mode().Type(), info.Size(), nil
}
