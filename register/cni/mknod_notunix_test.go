//go:build !unix

package cni

import (
	"errors"
	"io/fs"
)

func mknod(string, fs.FileMode) error { return errors.ErrUnsupported }
