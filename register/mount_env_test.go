//go:build linux

package register

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// janitor takes away the mounts below a directory, and the directory, when its input ends: also after the test binary was killed.
const janitor = `
read -r _
mounts() { awk -v base="$1/" 'index($5, base) == 1 { print $5 }' /proc/self/mountinfo | tac; }
for m in $(mounts "$1"); do umount "$m" || umount -l "$m"; done
[ -z "$(mounts "$1")" ] && rm -rf "$1"
`

// mounted runs a shell script in a fresh directory, where it makes the mount dir of the directory back.
func mounted(t *testing.T, script string) (dir, back string) {
	t.Helper()
	if os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		t.Skip("nothing can be mounted in the user namespace of noinotify.sh")
	}
	base, err := os.MkdirTemp("", "e") //nolint:usetesting // short
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", janitor, "janitor", base) // without a context: only the end of its input ends it
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	var complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &complaints, &complaints
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			t.Errorf("cleaning up: %v: %s", err, complaints.String())
		}
	})
	made := exec.CommandContext(t.Context(), "sh", "-c", "set -e; cd "+base+"; mkdir dir back; "+script)
	if out, err := made.CombinedOutput(); err != nil {
		lacking(t, "no mount: "+err.Error()+": "+string(out))
	}
	return filepath.Join(base, "dir"), filepath.Join(base, "back")
}

// lacking ends a test for which the machine lacks something: CI has to have everything.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// otherSides are mounts whose files can be reached beside the mount. On an overlay and on FUSE a socket that was bound on one side is another one than the
// socket that is seen on the other: it is seen there, and refuses to connect. On a bind mount it is the same.
var otherSides = map[string]struct {
	mount    string
	connects bool
}{
	"bind":      {mount: "mount --bind back dir", connects: true},
	"read-only": {mount: "mount --bind back dir; mount -o remount,bind,ro dir", connects: true},
	"overlay": {mount: "mount -t tmpfs -o mode=755 plugpoll back; mkdir back/lower back/upper back/work;" +
		"mount -t overlay -o lowerdir=back/lower,upperdir=back/upper,workdir=back/work plugpoll dir; mount --bind back/upper back"},
	"FUSE": {},
}

// A socket bound on the other side of a mount is found. Where it refuses to connect, that is a quiet state: tried again at growing intervals, one line in the
// log, nobody told, and once a plugin binds on our side all is well.
func TestOtherSide(t *testing.T) {
	for name, side := range otherSides {
		t.Run(name, func(t *testing.T) {
			dir, back := mounted(t, side.mount)
			if name == "FUSE" {
				loopback(t, back, dir)
			}
			n := startEnvNode(t, scanner.Config{Root: dir, Interval: 10 * time.Millisecond})
			p := n.serve(filepath.Join(back, "a.sock"), "a")
			path := n.at("a.sock")
			if side.connects {
				n.acknowledged(p)
				n.awaitRegistered(path)
				return
			}
			s := n.await(path, "retried", func(s state.SocketView) bool { return s.Phase == state.Backoff && s.Tries >= 3 })
			if s.LastError != "dial: connect: connection refused" || s.NextTry.IsZero() {
				t.Errorf("View shows %+v", s)
			}
			// The first refusal is let pass.
			if got := n.dialled("a.sock"); got != s.Tries+1 {
				t.Errorf("%d connects for %d tries", got, s.Tries)
			}
			n.calls()
			if lines := n.log.lines("[WARN]"); len(lines) != 1 {
				t.Errorf("it is not quiet: %q", lines)
			}
			// Replaced on our side: the same path, and a plugin that can be reached.
			n.must(os.Remove(path))
			n.awaitGone(path)
			n.acknowledged(n.serve(path, "a"))
			n.awaitRegistered(path)
			n.calls("Validate a", "Register a")
		})
	}
}

// loopback shows back at dir through FUSE, by a process of its own, which it returns.
func loopback(t *testing.T, back, dir string) *os.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLoopbackServer$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "PLUGPOLL_LOOPBACK_DIR="+dir, "PLUGPOLL_LOOPBACK_BACK="+back)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close(); _ = cmd.Wait() })
	timer := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	answer := make([]byte, 200)
	if n, err := output.Read(answer); err != nil || string(answer[:n]) != "mounted\n" {
		lacking(t, "no FUSE: "+string(answer[:n]))
	}
	return cmd.Process
}

// TestLoopbackServer is no test but the server of loopback. It ends with its standard input, so with the process that started it.
func TestLoopbackServer(t *testing.T) {
	dir := os.Getenv("PLUGPOLL_LOOPBACK_DIR")
	if dir == "" {
		return
	}
	root, err := fs.NewLoopbackRoot(os.Getenv("PLUGPOLL_LOOPBACK_BACK"))
	if err == nil {
		_, err = fs.Mount(dir, root, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "plugpoll", Name: "plugpoll"}})
	}
	if err != nil {
		_, _ = os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("mounted\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}
