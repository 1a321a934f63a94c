package cni

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"

	"github.com/plugpoll/plugpoll/scanner"
)

// FileState is what becomes of a file. The texts are part of the JSON interface.
type FileState string

// The states of a file.
const (
	Used      FileState = "used"      // it is a network of the set, or a part of one
	NotUsed   FileState = "not used"  // it is fine, and Reason says what comes before it
	Duplicate FileState = "duplicate" // an earlier file has a network of the same name
	Broken    FileState = "broken"    // Error says why
)

// FileView is one file of a directory and the verdict on it.
type FileView struct {
	Path       string    `json:"path"`
	PathBase64 string    `json:"path_base64,omitempty"`
	State      FileState `json:"state"`
	// Reason says why, in words. Empty: it is used, and there is nothing to say.
	Reason string `json:"reason,omitempty"`
	// Network, CNIVersion and Plugins are what the file says, if it is not broken. CNIVersion is the one in force; empty stands for 0.1.0.
	Network    string     `json:"network,omitempty"`
	CNIVersion string     `json:"cni_version,omitempty"`
	Plugins    []string   `json:"plugins,omitempty"`
	Error      *ConfError `json:"error,omitempty"`
}

// choose says which files of a directory decide.
type choose struct {
	// max is how many networks are wanted. 0 and less: all.
	max int
	// pin is the name of the network that comes first, whatever its file is called (CN9). Empty: the first file's.
	pin string
	// done, once it is closed, says that nobody waits for the set any more: what load returns then is nothing. nil: somebody does.
	done <-chan struct{}
	// before is the set of the same directory before. What has not changed since is not parsed again. nil: there is none.
	before *set
}

func (o choose) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// set is what a directory's files come to.
type set struct {
	revision Revision
	// files are the verdicts: those of the directory itself in the order of their names, then those of its subdirectories.
	files []FileView
	// networks are the chosen ones, in order. nil if err is set, or if there are no files.
	networks []network
	// err is why the set cannot be used. nil: it can, or there is nothing.
	err *ConfError
	// parsed are the directory's own files by path, for the set after this one.
	parsed map[string]*conf
	// subdirs are the names of the subdirectories that the files that decide may have plugins in, whether they are there or not: while one of them cannot
	// be listed, the set is in doubt.
	subdirs []string
}

// network is one network that can be used.
type network struct {
	name, file, cniVersion string
	// list has everything in its Bytes, also what came from a subdirectory.
	list    *libcni.NetworkConfigList
	plugins []string // their types, in order
	ipam    []string // the types of their IPAM plugins, raw: the one of each, or empty
}

// conf is one file on its way through load.
type conf struct {
	path, rel string
	file      *scanner.File // nil: it was not read
	dir, base string        // of rel; dir is empty for a file of the directory itself
	content   string
	problem   scanner.Problem
	detail    string

	network network // if err is nil
	merges  bool    // whether it takes plugins from a subdirectory
	subdir  string  // its name
	taken   int     // how many
	note    string
	err     *ConfError
	view    FileView
}

// load works out what a directory's files come to. It looks at nothing but its arguments.
func load(dir string, files []scanner.Entry, o choose) set {
	var top, below []*conf
	for _, e := range files {
		c := newConf(dir, e)
		switch {
		case c.dir == "":
			top = append(top, c)
		case filepath.Ext(c.base) == ".conf":
			below = append(below, c)
		}
	}
	slices.SortStableFunc(top, byName)
	slices.SortStableFunc(below, byName)
	bySubdir := map[string][]*conf{}
	for _, c := range below {
		bySubdir[c.dir] = append(bySubdir[c.dir], c)
	}

	wanted := map[string]bool{} // the subdirectories that some file takes plugins from
	for i, c := range top {
		if o.over() { // 256 files of a mebibyte take half a minute
			return set{}
		}
		if !c.known(o.before, bySubdir) {
			c.parse(bySubdir)
		}
		wanted[c.subdir] = c.merges
		if o.max > 0 && i >= o.max && c.taken == 0 {
			c.network.list = nil // as if it were known: 256 of them take a gibibyte, and mostly none is used
		}
	}
	below = slices.DeleteFunc(below, func(c *conf) bool { return !wanted[c.dir] })

	s := set{revision: revise(slices.Concat(top, below)), parsed: map[string]*conf{}}
	s.choose(dir, top, o)
	for _, c := range top {
		c.network.list = nil // those that are used are in networks, and the others would be kept for nothing
		s.parsed[c.path] = c
	}
	s.judgeBelow(top, below)
	for _, c := range slices.Concat(top, below) {
		s.files = append(s.files, c.view)
	}
	return s
}

// known takes over what was made of a file before, if neither it nor what it takes plugins from can have changed, and reports whether it did. The list is left
// out: choose parses the files that are used.
func (c *conf) known(before *set, bySubdir map[string][]*conf) bool {
	if before == nil || c.file == nil {
		return false
	}
	old := before.parsed[c.path]
	if old == nil || old.file != c.file || old.taken > 0 || len(bySubdir[old.subdir]) > 0 {
		return false
	}
	c.network, c.merges, c.subdir, c.note, c.err = old.network, old.merges, old.subdir, old.note, old.err
	return true
}

func newConf(dir string, e scanner.Entry) *conf {
	f := fileOf(e)
	c := &conf{path: e.Path, file: e.File, rel: relative(dir, e.Path), content: f.Content, problem: f.Problem, detail: f.Detail}
	c.dir, c.base = place(dir, e.Path)
	return c
}

func byName(a, b *conf) int { return strings.Compare(a.rel, b.rel) }

func separator(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }

// place takes the path of what is in a directory apart: the subdirectory that it is in, empty for the directory itself, and its name.
func place(dir, path string) (sub, name string) {
	name = relative(dir, path)
	if i := strings.LastIndexFunc(name, separator); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

// relative takes a directory's path off the path of what is in it.
func relative(dir, path string) string {
	rest, ok := strings.CutPrefix(path, dir)
	if !ok {
		return path
	}
	return strings.TrimLeftFunc(rest, separator)
}
