package scanner

import "syscall"

func osStamp(sys any, s *Stamp) {
	if st, ok := sys.(*syscall.Stat_t); ok {
		s.Device, s.Inode, s.ChangeTime = uint64(uint32(st.Dev)), st.Ino, st.Ctimespec.Nano()
	}
}

// osOwner returns the owner of what a FileInfo is of, if it says that.
func osOwner(sys any) (uid uint32, ok bool) {
	if st, ok := sys.(*syscall.Stat_t); ok {
		return st.Uid, true
	}
	return 0, false
}
