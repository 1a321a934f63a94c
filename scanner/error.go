package scanner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// maxErrors is how many errors of one scan are kept: a dead filesystem fails once per directory.
const maxErrors = 20

// maxErrorText bounds the cause in the text of an Error; filesystems in user space say what they like.
const maxErrorText = 512

var (
	errNotDirectory    = errors.New("not a directory")
	errOtherFilesystem = errors.New("another filesystem is in its place")
	// The disagreements of U2.
	errOnlyLstat   = errors.New("lstat finds it, the listing does not")
	errOnlyListing = errors.New("the listing has it, lstat does not find it")
	errOtherType   = errors.New("listing and lstat disagree on its type")
)

// Error is one call of a scan that failed, or two that contradict each other.
type Error struct {
	// Op is what was tried: "list", "lstat", "stat", "open", "read" or "create".
	Op string
	// Path is what it was tried on, raw.
	Path string
	// Err is the cause as the filesystem gave it.
	Err error
}

// Error returns one line; the path is in it once, through Quote (D10).
func (e *Error) Error() string {
	return e.Op + " " + Quote(e.Path) + ": " + Clean(cause(e.Err).Error(), maxErrorText)
}

// Unwrap returns Err, so that errors.Is finds the errno.
func (e *Error) Unwrap() error { return e.Err }

// cause removes what repeats the path, raw, in front of the errno.
func cause(err error) error {
	for {
		switch e := err.(type) { //nolint:errorlint // only the outermost layers print the path first
		case *fs.PathError:
			err = e.Err
		case *os.LinkError:
			err = e.Err
		default:
			return err
		}
	}
}

// faults collects the errors of one scan.
type faults struct {
	errs []error
	more int
}

func (f *faults) add(err error) {
	if n := len(f.errs); n > 0 && f.errs[n-1] == err { //nolint:errorlint // one fault that bars a whole tree is one
		return
	}
	if len(f.errs) == maxErrors {
		f.more++
		return
	}
	f.errs = append(f.errs, err)
}

func (f *faults) count() int { return len(f.errs) + f.more }

func (f *faults) join() error {
	errs := f.errs
	if f.more > 0 {
		errs = append(errs, fmt.Errorf("and %d more errors", f.more))
	}
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return joined(errs)
}

// joined is what errors.Join makes of several errors, in one line.
type joined []error

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j joined) Unwrap() []error { return j }
