package scanner

import (
	"io/fs"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// dripping is a filesystem whose file a.conf comes byte by byte, one in three seconds.
type dripping struct{ afero.Fs }

type drippingFile struct{ afero.File }

func (d dripping) Open(name string) (afero.File, error) { return d.OpenFile(name, os.O_RDONLY, 0) }

func (d dripping) OpenFile(name string, flag int, perm fs.FileMode) (afero.File, error) {
	f, err := d.Fs.OpenFile(name, flag, perm)
	if err == nil && name == "/w/root/a.conf" {
		return drippingFile{f}, nil
	}
	return f, err
}

func (f drippingFile) Read(p []byte) (int, error) {
	time.Sleep(3 * time.Second) //nolint:forbidigo // the bubble's time
	return f.File.Read(p[:1])
}

// U4, CN3: the time of a call is that of a whole file. One that trickles in does not hold the scan up, and once its scan has given it up it is not read on.
func TestFileThatDrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		w.must(afero.WriteFile(w.sim, w.path("a.conf"), make([]byte, 1000), 0o644))
		w.must(afero.WriteFile(w.sim, w.path("b.conf"), []byte("b"), 0o644))
		s := newScanner(t, Config{FS: dripping{w.sim}, Root: w.root, Select: Files(".conf")})
		_, text := w.look(s, nil)
		if want := "5s: b.conf; read a.conf: no answer for 5s"; text != want {
			t.Errorf("%s\nwant %s", text, want)
		}
		w.wait(3 * time.Second)
		if stuck := s.Stuck(); len(stuck) > 0 {
			t.Errorf("it is still read: %v", stuck)
		}
	})
}
