//go:build linux

package scanner

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Real filesystems are called what they are, and the coarse stamps of small inodes are seen.
func TestPollingOnMounts(t *testing.T) {
	for kind, want := range map[string]Polling{
		"tmpfs":     {Type: "tmpfs", SkipsUnchanged: true, Why: stampsMove, Settle: fineSettleTime},
		"ramfs":     {Type: "ramfs", SkipsUnchanged: true, Why: stampsMove, Settle: fineSettleTime},
		"ext4":      {Type: "ext4", SkipsUnchanged: true, Why: stampsMove, Settle: fineSettleTime},
		"ext2-128":  {Type: "ext4", SkipsUnchanged: true, Why: stampsMove, Settle: coarseSettleTime},
		"overlay":   {Type: "overlay", SkipsUnchanged: true, Why: stampsMove, Settle: fineSettleTime},
		"read-only": {Type: "tmpfs", SkipsUnchanged: true, Why: stampsMove, Settle: fineSettleTime},
	} {
		t.Run(kind, func(t *testing.T) {
			m := mounted(t, kind)
			got := pollingOf(t, Config{Root: m.dir})
			if stampedOnTheSecond(t, m.dir) {
				want.Settle = coarseSettleTime
			}
			if want.Interval = DefaultInterval; got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	t.Run("fuse", func(t *testing.T) {
		if got := pollingOf(t, Config{Root: newFaulty(t).dir}); got.Type != "fuse" || got.SkipsUnchanged || got.Why != served {
			t.Errorf("%+v", got)
		}
	})
	t.Run("proc", func(t *testing.T) {
		if got := pollingOf(t, Config{Root: "/proc/self/task"}); got.Type != "proc" || got.SkipsUnchanged || got.Why != generated {
			t.Errorf("%+v", got)
		}
	})
}

// stampedOnTheSecond: with 4 ms ticks one stamp of 250 has no part of a second, and is rightly taken for a coarse one.
func stampedOnTheSecond(t *testing.T, dir string) bool {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Ctim.Nsec)%int64(time.Second) == 0 //nolint:unconvert // Nsec has other types on other architectures
}

// The numbers are those of the kernel's headers, where these have them.
func TestMagicNumbers(t *testing.T) {
	for name, numbers := range map[string][]uint32{
		"ext4": {unix.EXT4_SUPER_MAGIC}, "tmpfs": {unix.TMPFS_MAGIC}, "xfs": {unix.XFS_SUPER_MAGIC}, "btrfs": {unix.BTRFS_SUPER_MAGIC},
		"overlay": {unix.OVERLAYFS_SUPER_MAGIC}, "ramfs": {unix.RAMFS_MAGIC}, "f2fs": {unix.F2FS_SUPER_MAGIC}, "bcachefs": {unix.BCACHEFS_SUPER_MAGIC},
		"vfat": {unix.MSDOS_SUPER_MAGIC}, "nfs": {unix.NFS_SUPER_MAGIC}, "cifs": {unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC},
		"smbfs": {unix.SMB_SUPER_MAGIC}, "ncpfs": {unix.NCP_SUPER_MAGIC}, "ceph": {unix.CEPH_SUPER_MAGIC}, "afs": {unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC},
		"coda": {unix.CODA_SUPER_MAGIC}, "9p": {unix.V9FS_MAGIC}, "fuse": {unix.FUSE_SUPER_MAGIC}, "hostfs": {unix.HOSTFS_SUPER_MAGIC},
		"ocfs2": {unix.OCFS2_SUPER_MAGIC}, "ecryptfs": {unix.ECRYPTFS_SUPER_MAGIC}, "proc": {unix.PROC_SUPER_MAGIC}, "sysfs": {unix.SYSFS_MAGIC},
		"cgroup": {unix.CGROUP_SUPER_MAGIC}, "cgroup2": {unix.CGROUP2_SUPER_MAGIC}, "debugfs": {unix.DEBUGFS_MAGIC}, "autofs": {unix.AUTOFS_SUPER_MAGIC},
		"exfat": {unix.EXFAT_SUPER_MAGIC}, "reiserfs": {unix.REISERFS_SUPER_MAGIC}, "nilfs2": {unix.NILFS_SUPER_MAGIC}, "jffs2": {unix.JFFS2_SUPER_MAGIC},
		"squashfs": {unix.SQUASHFS_MAGIC}, "erofs": {unix.EROFS_SUPER_MAGIC_V1}, "iso9660": {unix.ISOFS_SUPER_MAGIC}, "udf": {unix.UDF_SUPER_MAGIC},
		"hugetlbfs": {unix.HUGETLBFS_MAGIC},
	} {
		for _, n := range numbers {
			if got := filesystemOf(n).name; got != name {
				t.Errorf("%#x is called %s, want %s", n, got, name)
			}
		}
	}
}
