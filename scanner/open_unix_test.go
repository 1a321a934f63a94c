//go:build unix

package scanner

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// D2, D5: what took the place of a directory since it was listed is not opened: neither a FIFO, which would never return, nor a link.
func TestOpenWhatWasADirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Config{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(&directory{path: fifo, depth: 1}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("opening a FIFO: %v", err)
	}
	if _, err := s.open(&directory{path: link, depth: 1}); err == nil {
		t.Error("a link to a directory was followed below the root")
	}
	for _, d := range []directory{{path: link}, {path: dir, depth: 1}} {
		f, err := s.open(&d)
		if err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
		if names, err := f.Readdirnames(-1); err != nil || len(names) != 2 {
			t.Errorf("%+v: %q, %v", d, names, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
