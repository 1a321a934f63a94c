//go:build !windows

package scanner

import "os"

// mkdirAll makes a root (D8).
func mkdirAll(path string) error { return os.MkdirAll(path, 0o755) }
