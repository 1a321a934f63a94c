//go:build !linux

package scanner

import (
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
