package simfs

import (
	"io/fs"
	"path"
)

// past is what a path was at some moment, for Fault.Stale.
type past struct {
	lstat, stat seen
	list        []dirEntry // of stat.node
}

// seen is what a look at a path gives.
type seen struct {
	info info
	err  error
	node *node // nil: there was none
}

// as is the answer to a caller who wrote the path in his way.
func (a seen) as(name string) (fs.FileInfo, error) {
	if a.err != nil {
		return nil, a.err
	}
	a.info.name = path.Base(name)
	return a.info, nil
}

// at looks at a path now. The filesystem is locked.
func (f *FS) at(name string, follow bool) (a seen) {
	if a.node, a.err = f.find(name, follow); a.err == nil {
		a.info = f.info(name, a.node)
	}
	return a
}

func (f *FS) remember(name string) *past {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := &past{lstat: f.at(name, false), stat: f.at(name, true)}
	if n := was.stat.node; n != nil && n.mode.IsDir() {
		was.list = f.entries(name, n)
	}
	return was
}

// statOf is what an open file was; false: another file was at the path.
func (p *past) statOf(n *node) (seen, bool) {
	if p == nil || p.stat.node != n {
		return seen{}, false
	}
	return p.stat, true
}

// listOf is what was in an open directory, for who wrote its path in his way; false: another file was at the path.
func (p *past) listOf(dir *node, name string) ([]dirEntry, bool) {
	if p == nil || p.stat.node != dir {
		return nil, false
	}
	list := make([]dirEntry, len(p.list))
	for i, e := range p.list {
		e.dir = name
		list[i] = e
	}
	return list, true
}
