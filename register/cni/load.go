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
	// subdirs are the directories that the files that decide may have plugins in, whether they are there or not: while one of them cannot
	// be listed, the set is in doubt.
	subdirs []string
}

// network is one network that can be used.
type network struct {
	name, file, cniVersion string
	// list has everything in its Bytes, also what came from a subdirectory.
	list    *libcni.NetworkConfigList
	plugins []string // their types, in order
}

// conf is one file on its way through load.
type conf struct {
	path, rel string
	dir, base string // of rel; dir is empty for a file of the directory itself
	content   string
	problem   scanner.Problem
	detail    string

	network network // if err is nil
	merges  bool    // whether it takes plugins from a subdirectory
	subdir  string  // its name
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
	for _, c := range top {
		c.parse(bySubdir)
		wanted[c.subdir] = c.merges
	}
	below = slices.DeleteFunc(below, func(c *conf) bool { return !wanted[c.dir] })

	s := set{revision: revise(slices.Concat(top, below))}
	s.choose(dir, top, o)
	s.judgeBelow(top, below)
	for _, c := range slices.Concat(top, below) {
		s.files = append(s.files, c.view)
	}
	return s
}

func newConf(dir string, e scanner.Entry) *conf {
	f := fileOf(e)
	c := &conf{path: e.Path, rel: relative(dir, e.Path), content: f.Content, problem: f.Problem, detail: f.Detail}
	c.base = c.rel
	if i := strings.LastIndexFunc(c.rel, separator); i >= 0 {
		c.dir, c.base = c.rel[:i], c.rel[i+1:]
	}
	return c
}

func byName(a, b *conf) int { return strings.Compare(a.rel, b.rel) }

func separator(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }

// relative takes a directory's path off the path of what is in it.
func relative(dir, path string) string {
	rest, ok := strings.CutPrefix(path, dir)
	if !ok {
		return path
	}
	return strings.TrimLeftFunc(rest, separator)
}
