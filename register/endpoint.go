package register

import (
	"errors"
	"fmt"
	"strings"

	"github.com/plugpoll/plugpoll/scanner"
)

// endpointPath returns the path an endpoint of GetInfo names, or socket if it is empty (R1). Bare absolute paths, unix:path and unix:///path are understood,
// on Windows with a drive, as \\?\ form of such a path, or without a drive (R14); there the path comes in scanner.NormalPath's form. Another scheme, a relative path, and
// on Windows what is no file of this machine, is an error (X5). It takes the operating system as data.
func endpointPath(endpoint, socket, goos string) (string, error) {
	if endpoint == "" {
		return socket, nil
	}
	path, isURL := strings.CutPrefix(endpoint, "unix:")
	if isURL && strings.HasPrefix(path, "//") {
		// unix://authority/path is not a thing: what follows the slashes must be a path of its own.
		path = path[2:]
		if goos == "windows" && len(path) > 2 && path[0] == '/' && (drive(path[1:]) || path[1] == '\\') {
			path = path[1:] // unix:///C:/dir and unix:///\\?\C:\dir
		}
	}
	switch {
	case strings.ContainsRune(path, 0):
		return "", errors.New("endpoint holds a NUL byte")
	case goos == "windows" && (drive(path) || strings.HasPrefix(path, `\`) || strings.HasPrefix(path, "/")):
		if path = scanner.NormalPath(path, goos); !ofThisMachine(path) {
			return "", fmt.Errorf("endpoint %s is on another machine, a pipe or a device: name a path on a drive (C:\\path)", scanner.Quote(scanner.Clean(endpoint, 256)))
		}
		return path, nil
	case goos != "windows" && strings.HasPrefix(path, "/"):
		return path, nil
	}
	return "", fmt.Errorf("endpoint %s is not the absolute path of a unix socket (/path, unix:/path or unix:///path)", scanner.Quote(scanner.Clean(endpoint, 256)))
}

// ofThisMachine reports whether a path of Windows, absolute and in NormalPath's form, is on a drive. To dial another one could send our credentials to
// whatever machine a plugin names (X5).
func ofThisMachine(path string) bool {
	if drive(strings.TrimPrefix(path, `\\?\`)) {
		return true
	}
	return strings.HasPrefix(path, `\`) && !strings.HasPrefix(path, `\\`) && !strings.HasPrefix(path, `\?`)
}

// drive reports whether path begins with a drive and a separator, as C:\ or C:/ do.
func drive(path string) bool {
	if len(path) < 3 || path[1] != ':' || path[2] != '\\' && path[2] != '/' {
		return false
	}
	letter := path[0] | 0x20
	return 'a' <= letter && letter <= 'z'
}
