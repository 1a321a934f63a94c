//go:build !linux

package scanner

import (
	"errors"
	"os"
	"testing"
)

func statAll(t testing.TB, list []string) {
	for _, path := range list {
		if _, err := os.Lstat(path); err != nil {
			t.Fatal(err)
		}
	}
}

func listAll(t testing.TB, list []string, _ []byte) {
	for _, path := range list {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Readdirnames(-1)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func onTmpfs(string) bool { return false }

func readAll(t testing.TB, list []string, _ []byte) {
	for _, path := range list {
		if _, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
}
