//go:build linux

package scanner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mount is a fresh filesystem, mounted on dir.
type mount struct {
	dir string
	// back is where the same files can be changed behind the mount: what a read-only mount shows, or the upper layer of an overlay. Empty: nowhere.
	back string
}

// kinds says how to make each filesystem. The script runs in a fresh directory in which dir, back and rest exist. It mounts on dir what is tested; what it
// needs for that goes on back or rest.
var kinds = map[string]string{
	"tmpfs": "mount -t tmpfs -o mode=755 plugpoll dir",
	"ramfs": "mount -t ramfs plugpoll dir",
	"ext4":  "truncate -s 32M disk; mkfs.ext4 -q -F disk; mount -o loop disk dir",
	// 128-byte inodes have no room for fractions of a second.
	"ext2-128": "truncate -s 16M disk; mkfs.ext2 -q -F -I 128 disk; mount -o loop disk dir",
	"overlay": "mount -t tmpfs -o mode=755 plugpoll rest; mkdir rest/lower rest/upper rest/work; mount --bind rest/upper back;" +
		"mount -t overlay -o lowerdir=rest/lower,upperdir=rest/upper,workdir=rest/work plugpoll dir",
	"read-only": "mount -t tmpfs -o mode=755 plugpoll back; mount --bind back dir; mount -o remount,bind,ro dir",
	"full":      "mount -t tmpfs -o size=64k,nr_inodes=8,mode=755 plugpoll dir",
}

// janitor waits until its input ends, and then takes away every mount below a directory, and the directory. It is a process of its own, so that it also
// cleans up after a test binary that was killed. A mount that is in use is detached, and complained about.
const janitor = `
read -r _
mounts() { awk -v base="$1/" 'index($5, base) == 1 { print $5 }' /proc/self/mountinfo | tac; }
for m in $(mounts "$1"); do umount "$m" || umount -l "$m"; done
[ -z "$(mounts "$1")" ] && rm -rf "$1"
`

// mounted makes a fresh filesystem of a kind, which is gone when the test has ended.
func mounted(t testing.TB, kind string) mount {
	t.Helper()
	base := mountable(t)
	script := "set -e; cd " + base + "; mkdir dir back rest; " + kinds[kind]
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
		lacking(t, fmt.Sprintf("no %s: %v: %s", kind, err, out))
	}
	m := mount{dir: filepath.Join(base, "dir")}
	if kind == "overlay" || kind == "read-only" {
		m.back = filepath.Join(base, "back")
	}
	return m
}

// mountable returns a fresh directory for mounts, with a janitor. The test is skipped where nothing can be mounted.
func mountable(t testing.TB) string {
	t.Helper()
	if os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		t.Skip("nothing can be mounted in the user namespace of noinotify.sh")
	}
	// t.TempDir has the test's name in it, which makes it too long for a socket's path.
	base, err := os.MkdirTemp("", "m") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", janitor, "janitor", base) // without a context: only the end of its input ends it
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}        // nor does Ctrl-C
	var complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &complaints, &complaints
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = os.Remove(base)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			t.Errorf("cleaning up: %v: %s", err, complaints.String())
		}
		if _, err := os.Lstat(base); err == nil {
			t.Errorf("%s is still there", base)
		}
	})
	return base
}

// lacking ends a test for which the machine lacks something: CI has to have everything.
func lacking(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// thorough says that there is time: `make test-real` runs with it.
func thorough() bool { return os.Getenv("PLUGPOLL_REAL") != "" }

// bindAt makes a socket as a plugin does that crashes at once: nobody listens.
func bindAt(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
}

// TestMounted has each kind be what it is called.
func TestMounted(t *testing.T) {
	types := map[string]int64{
		"tmpfs": unix.TMPFS_MAGIC, "ramfs": unix.RAMFS_MAGIC, "ext4": unix.EXT4_SUPER_MAGIC, "ext2-128": unix.EXT4_SUPER_MAGIC,
		"overlay": unix.OVERLAYFS_SUPER_MAGIC, "read-only": unix.TMPFS_MAGIC, "full": unix.TMPFS_MAGIC,
	}
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			m := mounted(t, kind)
			var stat unix.Statfs_t
			if err := unix.Statfs(m.dir, &stat); err != nil || stat.Type != types[kind] {
				t.Errorf("it is a filesystem of type %#x, %v", stat.Type, err)
			}
			err := bindAt(filepath.Join(m.dir, "s"))
			if readOnly := kind == "read-only"; (err != nil) != readOnly {
				t.Errorf("bind: %v", err)
			}
		})
	}
}
