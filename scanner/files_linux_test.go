package scanner

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// CN3: errors of real files are entries: EIO as /proc has it, EACCES as another user gets it. A size that the system does not tell is no obstacle.
func TestFilesProc(t *testing.T) {
	if _, err := os.Stat("/proc/self/mem"); err != nil {
		t.Skip("no /proc:", err)
	}
	w := osWorld(t)
	for _, op := range []string{"link /proc/self/mem a.conf", "link /proc/sys/kernel/ostype b.conf"} {
		w.must(w.op(strings.Fields(op)))
	}
	s := newScanner(t, Config{FS: w.fs, Root: w.root, Select: Files(".conf")})
	last := scanOK(t, s, nil)
	if got, want := filesText(w, last), `a.conf unreadable: input/output error, b.conf "Linux\n"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if scanOK(t, s, last) != last {
		t.Error("nothing changed, and the Snapshot did")
	}
}

func TestFilesPermission(t *testing.T) {
	w := osWorld(t)
	w.must(os.WriteFile(w.path("a.conf"), []byte("secret"), 0))
	got := make(chan error)
	go func() {
		// The goroutine ends with its thread locked, and so the thread does too.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			_ = unix.Setfsuid(65534)
		}
		got <- (&caller{fs: w.fs}).read(w.path("a.conf")).err
	}()
	err := <-got
	if err == nil || errorText(err) != "permission denied" {
		t.Error(err)
	}
}
