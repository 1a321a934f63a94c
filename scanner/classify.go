package scanner

import (
	"errors"
	"io/fs"
	"syscall"
)

// class is what an entry is taken for, or what has to be asked to know.
type class int

const (
	askLstat class = iota + 1
	askStat
	classSocket
	classMaybe
	classDirectory
	classNotSocket
	classLinkToDirectory
	classDangling
	classUnreadable
	classVanished
	// Of a Scanner that selects files: a candidate, and a name that is none.
	classFile
	classOtherName
)

// answer is what a filesystem said to Lstat or Stat. The zero value: not asked yet.
type answer struct {
	asked bool
	typ   fs.FileMode
	err   error
}

// classify says what to make of a listed entry (D2, D5). listed is its type in the listing, fs.ModeIrregular if the listing does not tell.
// goos is data, so that the rules of Windows are tested everywhere.
func classify(goos string, listed fs.FileMode, lstat, stat answer) class {
	switch {
	case !lstat.asked:
		return classifyListed(listed)
	case lstat.err != nil:
		switch {
		case errors.Is(lstat.err, fs.ErrNotExist):
			return classVanished
		case refused(goos, lstat.err):
			return classMaybe
		}
		return classUnreadable
	case lstat.typ&fs.ModeSymlink == 0 && !reparsePoint(goos, lstat.typ):
		return classifyType(lstat.typ, classDirectory)
	case !stat.asked:
		return askStat
	case stat.err == nil:
		return classifyType(stat.typ, classLinkToDirectory)
	case lstat.typ&fs.ModeSymlink != 0 && leadsNowhere(stat.err):
		return classDangling
	case goos == "windows":
		return classMaybe
	}
	return classUnreadable
}

// leadsNowhere says of a link whose Stat failed that something on its way is missing, is a file, or leads back to it: nothing that a retry mends.
func leadsNowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

func classifyListed(typ fs.FileMode) class {
	switch {
	case typ.IsDir():
		return classDirectory
	case typ&(fs.ModeSocket|fs.ModeSymlink|fs.ModeIrregular) != 0:
		return askLstat
	}
	return classNotSocket
}

func classifyType(typ fs.FileMode, directory class) class {
	switch {
	case typ.IsDir():
		return directory
	case typ&fs.ModeSocket != 0:
		return classSocket
	case typ&fs.ModeIrregular != 0:
		return classMaybe
	}
	return classNotSocket
}

// refused tells an entry that is there but may not be looked at from one that cannot be read. On Windows Stat fails with many codes on
// reparse points that it does not know, and AF_UNIX sockets are such (golang/go#33357).
func refused(goos string, err error) bool {
	return goos == "windows" || errors.Is(err, fs.ErrPermission)
}

// reparsePoint reports whether a type is what Go says of a reparse point that it does not know or that stands for another place, since Go 1.23
// (golang/go#61893). One that leads to a directory, as a junction does, is a link to a directory: followed, it could lead in circles. Those that
// are directories themselves, as a container's layers and synchronised folders, have fs.ModeDir as well, and are read.
func reparsePoint(goos string, typ fs.FileMode) bool {
	return goos == "windows" && typ&fs.ModeIrregular != 0 && !typ.IsDir()
}

// listable reports whether something of this type may be a root. A reparse point is tried.
func listable(goos string, typ fs.FileMode) bool { return typ.IsDir() || reparsePoint(goos, typ) }

func typeWord(typ fs.FileMode) string {
	switch {
	case typ.IsDir():
		return "directory"
	case typ&fs.ModeSymlink != 0:
		return "link"
	case typ&fs.ModeSocket != 0:
		return "socket"
	case typ&fs.ModeNamedPipe != 0:
		return "fifo"
	case typ&fs.ModeDevice != 0:
		return "device"
	case typ&fs.ModeIrregular != 0:
		return "unknown"
	}
	return "file"
}
