package simfs

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
)

const (
	maxName  = 255 // bytes in one name
	maxLinks = 40  // links followed in one path, as on Linux
)

// spot is where a path leads.
type spot struct {
	dir  *node  // the directory that holds, or would hold, the last name; nil for "/" and for paths that end in "." or ".."
	name string // the last name
	node *node  // what is there; nil: nothing
}

// clean is the key under which faults and counts of a path are kept.
func clean(name string) string { return path.Clean("/" + name) }

// walk resolves a path from the root. Only the last name may be missing. A link at the end is followed when follow is
// set or a slash stands behind it.
func (f *FS) walk(name string, follow bool) (spot, error) {
	if name == "" {
		return spot{}, syscall.ENOENT
	}
	if strings.ContainsRune(name, 0) {
		return spot{}, syscall.EINVAL
	}
	at, links := spot{node: f.root.top()}, 0
	rest := strings.TrimLeft(name, "/")
	for rest != "" {
		var part string
		var more bool
		part, rest, more = strings.Cut(rest, "/")
		rest = strings.TrimLeft(rest, "/")
		next, err := step(at, part)
		if err != nil {
			return spot{}, err
		}
		if next.node != nil && next.node.mode.Type() == fs.ModeSymlink && (more || follow) {
			if links++; links > maxLinks {
				return spot{}, syscall.ELOOP
			}
			if next.node.target[0] == '/' {
				at = spot{node: f.root.top()}
			}
			target := strings.TrimLeft(next.node.target, "/")
			if more {
				target += "/" + rest
			}
			rest = strings.TrimLeft(target, "/")
			continue
		}
		if at = next; more && at.node != nil && !at.node.mode.IsDir() {
			return spot{}, syscall.ENOTDIR
		}
	}
	return at, nil
}

func step(at spot, part string) (spot, error) {
	switch {
	case at.node == nil:
		return spot{}, syscall.ENOENT
	case !at.node.mode.IsDir():
		return spot{}, syscall.ENOTDIR
	case len(part) > maxName:
		return spot{}, syscall.ENAMETOOLONG
	case part == ".":
		return spot{node: at.node}, nil
	case part == "..":
		return spot{node: at.node.parent.top()}, nil
	}
	next := spot{dir: at.node, name: part}
	if e, ok := at.node.kids[part]; ok {
		next.node = e.node.top()
	}
	return next, nil
}

// find is walk for something that must be there.
func (f *FS) find(name string, follow bool) (*node, error) {
	at, err := f.walk(name, follow)
	if err != nil {
		return nil, err
	}
	if at.node == nil {
		return nil, syscall.ENOENT
	}
	return at.node, nil
}

// vacant is walk for a name about to be made.
func (f *FS) vacant(name string) (spot, error) {
	at, err := f.walk(name, false)
	if err == nil && at.node != nil {
		err = syscall.EEXIST
	}
	return at, err
}

// removable says what speaks against taking the name at a spot away.
func (f *FS) removable(at spot) error {
	switch {
	case at.node == nil:
		return syscall.ENOENT
	case at.dir == nil && at.node == f.root.top():
		return syscall.EBUSY
	case at.dir == nil:
		return syscall.EINVAL
	case at.dir.kids[at.name].node.cover != nil:
		return syscall.EBUSY
	}
	return nil
}
