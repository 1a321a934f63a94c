package scanner

import "syscall"

func osStamp(sys any, s *Stamp) {
	if st, ok := sys.(*syscall.Stat_t); ok {
		s.Device, s.Inode, s.ChangeTime = uint64(st.Dev), st.Ino, st.Ctim.Nano() //nolint:unconvert // Dev has other types on other architectures
	}
}
