package scanner

import "fmt"

// The reasons why directories on a filesystem are skipped or not. Each completes a sentence: "…, because its directory stamps move".
const (
	stampsMove = "its directory stamps move with every change"
	cached     = "a network filesystem answers from a cache"
	served     = "another system or program serves it, and answers may come from a cache"
	shared     = "other machines change it too"
	stacked    = "it lies over another filesystem, which may change behind it"
	generated  = "what it shows changes without its directory stamps"
	unmeasured = "nobody has measured whether its directory stamps move with every change"
)

// filesystems are those we know, by their magic number in statfs(2) of Linux. Trusted are those whose directory keys move with every change. These
// are a list of those known to do so, and the others are not of those known not to: a filesystem that nobody thought of is read at every poll,
// which is slower but never wrong. The others are here for their name, and to say why.
var filesystems = [...]filesystem{
	{0xef53, "ext4", stampsMove}, // ext2 and ext3 as well: they have one number
	{0x01021994, "tmpfs", stampsMove},
	{0x58465342, "xfs", stampsMove},
	{0x9123683e, "btrfs", stampsMove},
	// An overlay's keys are those of the layer that a directory is in. What is changed in a layer behind the overlay, which its documentation
	// forbids, shows when FullEvery is over, if the overlay shows it at all.
	{0x794c7630, "overlay", stampsMove},
	{0x858458f6, "ramfs", stampsMove},
	{0xf2f52010, "f2fs", stampsMove},
	{0x2fc12fc1, "zfs", stampsMove},
	{0xca451a4e, "bcachefs", stampsMove},
	{0x4d44, "vfat", stampsMove},

	{0x6969, "nfs", cached},
	{0xff534d42, "cifs", cached},
	{0xfe534d42, "cifs", cached}, // since SMB 2
	{0x517b, "smbfs", cached},
	{0x564c, "ncpfs", cached},
	{0x00c36400, "ceph", cached},
	{0x5346414f, "afs", cached}, // OpenAFS
	{0x6b414653, "afs", cached}, // the kernel's
	{0x73757245, "coda", cached},
	{0x0bd00bd0, "lustre", cached},
	{0x01021997, "9p", served},   // gVisor and virtual machines have it too
	{0x65735546, "fuse", served}, // sshfs, bindfs, virtiofs …
	{0x786f4256, "vboxsf", served},
	{0x00c0ffee, "hostfs", served}, // of User Mode Linux
	{0x7461636f, "ocfs2", shared},
	{0x01161970, "gfs2", shared},
	{0x47504653, "gpfs", shared},
	{0xf15f, "ecryptfs", stacked},
	{0x61756673, "aufs", stacked},
	{0x9fa0, "proc", generated},
	{0x62656572, "sysfs", generated},
	{0x0027e0eb, "cgroup", generated},
	{0x63677270, "cgroup2", generated},
	{0x64626720, "debugfs", generated},
	{0x0187, "autofs", generated},
	{0x2011bab0, "exfat", unmeasured},
	{0x7366746e, "ntfs3", unmeasured},
	{0x3153464a, "jfs", unmeasured},
	{0x52654973, "reiserfs", unmeasured},
	{0x3434, "nilfs2", unmeasured},
	{0x72b6, "jffs2", unmeasured},
	{0x24051905, "ubifs", unmeasured},
	{0x73717368, "squashfs", unmeasured},
	{0xe0f5e1e2, "erofs", unmeasured},
	{0x9660, "iso9660", unmeasured},
	{0x15013346, "udf", unmeasured},
	{0x958458f6, "hugetlbfs", unmeasured},
}

type filesystem struct {
	magic uint32
	name  string // as mount(8) calls it
	why   string // stampsMove: trusted
}

// filesystemOf returns one for every number.
func filesystemOf(magic uint32) filesystem {
	for _, f := range filesystems {
		if f.magic == magic {
			return f
		}
	}
	return filesystem{magic, fmt.Sprintf("%#x", magic), unmeasured}
}

// localFilesystem is on the way of every read of a directory.
func localFilesystem(magic uint32) bool {
	for i := range filesystems {
		if filesystems[i].magic == magic {
			return filesystems[i].why == stampsMove
		}
	}
	return false
}
