package scanner

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Limits of a Scanner that selects files (CN3).
const (
	// MaxFileSize is how many bytes a file may have to be read.
	MaxFileSize = 1 << 20
	// MaxFiles is how many files of a root are read in one scan.
	MaxFiles = 256
)

// Selector says what a scan looks for. The zero value selects sockets.
type Selector struct {
	files      bool
	extensions []string
}

// Files selects regular files by their extension, for directories of configuration: those for whose name filepath.Ext is exactly one of these, as ".conf".
// Each is read at every scan, and its content decides whether it has changed (CN1, CN2). See File for what an Entry then is.
//
// Names that begin with a dot are skipped (D3). What else has another name is counted as OtherName, and its coming and going is no Change. A directory is
// a directory whatever its name, and is read down to Config.MaxDepth. So is one that a symbolic link in the root leads to, unless the link has one of the
// extensions: then it is an entry with ProblemNotRegular. Links further down are not followed to directories, so none can lead in circles.
//
// The first MaxFiles in the order in which they are found are read, and the others are entries with ProblemTooMany. That order is: in each directory first its
// own files, byte-wise by name, then its subdirectories, byte-wise by name, each with all that is below it.
func Files(extensions ...string) Selector {
	return Selector{files: true, extensions: slices.Clone(extensions)}
}

func (s Selector) check() error {
	if s.files && len(s.extensions) == 0 {
		return errors.New(`scanner: Config.Select names no extension: name one, as in Files(".conf")`)
	}
	var errs []error
	for _, e := range s.extensions {
		if e == "" || filepath.Ext(e) != e {
			errs = append(errs, fmt.Errorf("scanner: Config.Select has the extension %q: it must begin with a dot and have no other", e))
		}
	}
	return errors.Join(errs...)
}

// matches reports whether a file of this name is a candidate.
func (s Selector) matches(name string) bool {
	return slices.Contains(s.extensions, filepath.Ext(name))
}

// follows reports whether a directory at this depth may be one that a link leads to. The root may always (D5).
func (s Selector) follows(depth int) bool {
	return depth == 0 || s.files && depth == 1
}
