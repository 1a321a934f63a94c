//go:build linux

package register

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// D8: a root that cannot be made, because the filesystem is full or read-only, is an error that View shows. The Manager goes on, and recovers by itself.
func TestRootCannotBeMade(t *testing.T) {
	for name, test := range map[string]struct{ mount, want string }{
		"full":      {mount: "mount -t tmpfs -o size=64k,nr_inodes=3,mode=755 plugpoll dir; touch dir/1 dir/2", want: "no space left on device"},
		"read-only": {mount: "mount --bind back dir; mount -o remount,bind,ro dir", want: "read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, back := mounted(t, test.mount)
			root := filepath.Join(dir, "root")
			n := startEnvNode(t, scanner.Config{Root: root, Interval: 10 * time.Millisecond, MissingRoot: scanner.CreateRoot})
			n.awaitRoot("unhealthy", func(problem string) bool {
				return strings.HasPrefix(problem, "create "+root) && strings.HasSuffix(problem, test.want)
			})
			// Room is made, or somebody else makes the root.
			path := filepath.Join(root, "a.sock")
			if name == "full" {
				n.must(os.Remove(filepath.Join(dir, "1")))
				n.must(os.Remove(filepath.Join(dir, "2")))
				n.awaitRoot("healthy", func(problem string) bool { return problem == "" })
				n.acknowledged(n.serve(path, "a"))
			} else {
				n.must(os.Mkdir(filepath.Join(back, "root"), 0o755))
				n.acknowledged(n.serve(filepath.Join(back, "root", "a.sock"), "a"))
			}
			n.awaitRegistered(path)
		})
	}
}
