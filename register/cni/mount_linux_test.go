//go:build linux

package cni

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// janitor takes away the mounts below a directory, and the directory, when its input ends: also after the test binary was killed.
const janitor = `
read -r _
mounts() { awk -v base="$1/" 'index($5, base) == 1 { print $5 }' /proc/self/mountinfo | tac; }
for m in $(mounts "$1"); do umount "$m" || umount -l "$m"; done
[ -z "$(mounts "$1")" ] && rm -rf "$1"
`

// mountable returns a fresh directory for mounts, which are gone when the test has ended. The test is skipped where nothing can be mounted.
func mountable(t *testing.T) string {
	t.Helper()
	if os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		t.Skip("nothing can be mounted in the user namespace of noinotify.sh")
	}
	if os.Geteuid() != 0 {
		lacking(t, "only root can mount")
	}
	base, err := os.MkdirTemp("", "m") //nolint:usetesting // the janitor removes it
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
		_ = os.Remove(base)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			t.Errorf("cleaning up: %v: %s", err, complaints.String())
		}
	})
	return base
}

// mounted runs a shell script in a fresh directory with the directories dir and back.
func mounted(t *testing.T, script string) (base string) {
	t.Helper()
	base = mountable(t)
	made := exec.CommandContext(t.Context(), "sh", "-c", "set -e; cd "+base+"; mkdir dir back; "+script)
	if out, err := made.CombinedOutput(); err != nil {
		lacking(t, "no mount: "+err.Error()+": "+string(out))
	}
	return base
}

// lacking ends a test for which the machine lacks something: CI has to have everything.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}
