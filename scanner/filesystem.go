package scanner

// localFilesystems are those whose directory keys move with every change, by their magic number in statfs(2) of Linux. It is a list of those
// known to do so, not of those known not to: a filesystem that nobody thought of is read at every poll, which is slower but never wrong.
//
// Not among them, because the kernel or a server answers stat from a cache, or because somebody else changes the directory behind it: NFS
// (0x6969), 9p, also that of gVisor and of virtual machines (0x01021997), SMB (0xff534d42, 0xfe534d42), FUSE with sshfs, bindfs and virtiofs
// (0x65735546), Ceph (0x00c36400), AFS (0x5346414f, 0x6b414653), Coda, Lustre, OCFS2, GFS2, vboxsf, eCryptfs.
var localFilesystems = [...]struct {
	magic uint32
	name  string
}{
	{0xef53, "ext2, ext3, ext4"},
	{0x01021994, "tmpfs"},
	{0x58465342, "xfs"},
	{0x9123683e, "btrfs"},
	// An overlay's keys are those of the layer that a directory is in. What is changed in a layer behind the overlay, which its documentation
	// forbids, shows when FullEvery is over, if the overlay shows it at all.
	{0x794c7630, "overlay"},
	{0x858458f6, "ramfs"},
	{0xf2f52010, "f2fs"},
	{0x2fc12fc1, "zfs"},
	{0xca451a4e, "bcachefs"},
	{0x4d44, "vfat"},
}

func localFilesystem(magic uint32) bool {
	for _, f := range localFilesystems {
		if f.magic == magic {
			return true
		}
	}
	return false
}
