//go:build unix

package scanner

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spf13/afero"
)

// D2, D5: what took the place of a directory since it was listed is not opened: neither a FIFO, which would never return, nor a link.
func TestOpenWhatWasADirectory(t *testing.T) {
	dir := t.TempDir()
	system := afero.NewOsFs()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := openDir(system, fifo, true); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("opening a FIFO: %v", err)
	}
	if _, err := openDir(system, link, true); err == nil {
		t.Error("a link to a directory was followed below the root")
	}
	for path, below := range map[string]bool{link: false, dir: true} {
		f, err := openDir(system, path, below)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if names, err := f.Readdirnames(-1); err != nil || len(names) != 2 {
			t.Errorf("%s: %q, %v", path, names, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
