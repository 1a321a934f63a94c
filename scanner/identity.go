package scanner

import (
	"io/fs"
	"time"
)

// Identity tells one instance of a socket from another at the same path (I1). Two are compared with ==; any inequality is a change, and
// "newer" is never asked. What the filesystem cannot tell is zero. For a symbolic link the embedded Stamp is the target's and Link the link's own (D5).
type Identity struct {
	Stamp
	Link Stamp `json:"link,omitzero"`
}

// Stamp is what a filesystem tells about one file. Times are nanoseconds since 1970, as the filesystem gives them; they are compared with
// stamps of the same filesystem only, never with a clock.
type Stamp struct {
	Device     uint64      `json:"device,omitzero"`
	Inode      uint64      `json:"inode,omitzero"`
	ModTime    int64       `json:"mtime,omitzero"`
	ChangeTime int64       `json:"ctime,omitzero"`
	Type       fs.FileMode `json:"-"`
}

// Identifier is what FileInfo.Sys() of a filesystem that is not the operating system's may return, to tell device, inode and change time.
// Zero values mean "cannot tell".
type Identifier interface {
	Identity() (device, inode uint64, changeTime time.Time)
}

// Certain reports whether the filesystem can tell a socket that was bound anew from the one before: it gives an inode, and a change time with
// parts of a second. Where it cannot, an equal Identity may hide another instance, and only the connection tells (I3), and a differing one may be
// the same instance (I4: without an inode the peers of two connections must be compared).
//
// It is about what the values can express. A network filesystem that answers from a cache (9p, NFS with long attribute times) may give all of
// them and still show a new socket late, or as the old one. And a change time of whole seconds may happen to be a fine one, which is then
// uncertain once.
func (id Identity) Certain() bool {
	return id.certain() && (id.Link == Stamp{} || id.Link.certain())
}

func (s Stamp) certain() bool { return s.Inode != 0 && s.ChangeTime%int64(time.Second) != 0 }

// stampOf copies the values out of a FileInfo, which may be a live view of the file (I5: MemMapFs's is).
func stampOf(info fs.FileInfo) Stamp {
	s := Stamp{ModTime: unixNano(info.ModTime()), Type: info.Mode().Type()}
	switch sys := info.Sys().(type) {
	case nil:
	case Identifier:
		var changed time.Time
		s.Device, s.Inode, changed = sys.Identity()
		s.ChangeTime = unixNano(changed)
	default:
		osStamp(sys, &s)
	}
	return s
}

// known reports whether s has more than a type.
func (s Stamp) known() bool {
	s.Type = 0
	return s != Stamp{}
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// StampOf copies out of a FileInfo what a scan takes from it. What it does not tell is zero.
func StampOf(info fs.FileInfo) Stamp { return stampOf(info) }
