package scanner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// rootSDDL: protected from inheritance; full access, inherited by what is made inside, for SYSTEM and Administrators and nobody else. Without
// it a root below ProgramData would be open to every user of the node, who could then register a plugin.
const rootSDDL = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

// mkdirAll makes a root, and what is missing above it, with rootSDDL (D8).
func mkdirAll(path string) error {
	sd, err := windows.SecurityDescriptorFromString(rootSDDL)
	if err != nil {
		return err
	}
	sa := windows.SecurityAttributes{SecurityDescriptor: sd}
	sa.Length = uint32(unsafe.Sizeof(sa))
	return mkdirSecured(path, &sa)
}

func mkdirSecured(path string, sa *windows.SecurityAttributes) error {
	info, err := os.Stat(path)
	if err == nil {
		if !info.IsDir() {
			return errNotDirectory
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent := filepath.Dir(path); parent != path {
		if err := mkdirSecured(parent, sa); err != nil {
			return err
		}
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	if err := windows.CreateDirectory(name, sa); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
