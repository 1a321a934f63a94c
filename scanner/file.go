package scanner

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"syscall"
)

// File is what was read at an Entry's path by a Scanner that selects files. It is immutable, and a file that has not changed keeps its *File.
//
// Its content is all there is to tell one instance from another: the Entry's ID is zero. New stamps, another owner, or another file with equal content are no
// change (CN2). A file that is written in place while it is read gives what was there at that moment, which may be half of it, or the old beginning and the new
// end; the next scan reads it again.
type File struct {
	// Content is the whole file. It is empty if Problem is set.
	Content string
	// Problem is why Content is not known; empty: it is.
	Problem Problem
	// Detail is the Problem in words, for people: one line without control characters, as "permission denied" or "1.2 MiB, the limit is 1 MiB".
	Detail string
}

// Problem is why the content of a file is not known. The texts may be added to, not changed.
type Problem string

// The problems (CN3).
const (
	// ProblemUnreadable is an error of the filesystem that is about this file, as "permission denied".
	ProblemUnreadable Problem = "unreadable"
	// ProblemTooLarge is more than MaxFileSize.
	ProblemTooLarge Problem = "too large"
	// ProblemNotRegular is a FIFO, a socket, a device, or a link to one of these or to a directory. It was not opened.
	ProblemNotRegular Problem = "not regular"
	// ProblemDangling is a link that leads to nothing, or back to itself.
	ProblemDangling Problem = "dangling link"
	// ProblemTooMany is one of those after the first MaxFiles. It was not read.
	ProblemTooMany Problem = "too many files"
)

func sameFile(a, b *File) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func sizeText(size int64) string {
	// Rounded up, so that what is too large is not shown as what the limit is.
	return strconv.FormatFloat(math.Ceil(float64(size)*10/(1<<20))/10, 'f', -1, 64) + " MiB"
}

func tooLargeText(size int64) string {
	if size <= MaxFileSize {
		return "it has grown beyond the limit of " + sizeText(MaxFileSize)
	}
	return sizeText(size) + ", the limit is " + sizeText(MaxFileSize)
}

func tooManyText() string { return fmt.Sprintf("only the first %d are read", MaxFiles) }

// typeText says what is in a file's place.
func typeText(typ fs.FileMode, link bool) string {
	what := "something of unknown type"
	if typ&fs.ModeIrregular == 0 {
		what = "a " + typeWord(typ)
	}
	if link {
		return "a link to " + what
	}
	return what
}

func danglingText(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "what it leads to does not exist"
	case errors.Is(err, syscall.ELOOP):
		return "it leads back to itself, or through too many links"
	}
	return errorText(err)
}

func errorText(err error) string { return Clean(cause(err).Error(), maxErrorText) }
