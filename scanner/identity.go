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
