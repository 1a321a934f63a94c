package scanner

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/afero"
)

// This file is about how paths are written. The rules of Windows take the system as data, so that they are tested everywhere.

// NormalPath writes a path in the one form that serves as key, for people and for dialling: two ways to write a path of Windows must not make a
// socket two, or have its removal miss what its addition made. Elsewhere a path is taken as it is, because only the filesystem knows what it
// means: a link may lead anywhere.
//
// On Windows separators become backslashes, a drive's letter upper case, empty and "." elements vanish and ".." takes one away, as the system
// itself does it; \\?\C:\x and \??\C:\x become C:\x, and \\?\UNC\server\share becomes \\server\share. Case stays as it is: see Nested. What only
// the \\?\ form can express (an element that ends in a dot or blank, a volume's GUID) keeps it. A path without drive stays without: it is one
// of the current drive.
func NormalPath(path, goos string) string {
	if goos != "windows" || path == "" {
		return path
	}
	for {
		// A ".." may lay bare another prefix.
		normal := normalOnce(path)
		if normal == path {
			return path
		}
		path = normal
	}
}

func normalOnce(path string) string {
	p := strings.ReplaceAll(path, "/", `\`)
	if rest, ok := cutVerbatim(p); ok {
		switch unc := len(rest) > 4 && strings.EqualFold(rest[:4], `UNC\`) && rest[4] != '\\'; {
		case verbatimOnly(rest), !unc && (!drive(rest) || len(rest) == 2):
			return p
		case unc:
			p = `\\` + rest[4:]
		default:
			p = rest
		}
	}
	if strings.HasPrefix(p, `\\.\`) {
		return p
	}
	root, rest := splitVolume(p)
	elements := cleanElements(strings.Split(rest, `\`), strings.HasSuffix(root, `\`))
	switch {
	case elements != "" || root == "":
		if root == "" && elements == "" {
			return "."
		}
		return root + elements
	case strings.HasPrefix(root, `\\`):
		return strings.TrimSuffix(root, `\`)
	}
	return root
}

// cutVerbatim removes the prefix that has the system take a path as it is.
func cutVerbatim(p string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(p, `\\?\`); ok {
		return rest, true
	}
	return strings.CutPrefix(p, `\??\`)
}

// verbatimOnly reports whether the system would read a path differently without the prefix.
func verbatimOnly(rest string) bool {
	for element := range strings.SplitSeq(rest, `\`) {
		if strings.HasSuffix(element, ".") || strings.HasSuffix(element, " ") {
			return true
		}
	}
	return false
}

// splitVolume splits a path with backslashes into drive or share, with the separator behind it if there is one, and the rest.
func splitVolume(p string) (root, rest string) {
	switch {
	case strings.HasPrefix(p, `\\\`):
		return `\`, p[3:]
	case strings.HasPrefix(p, `\\`):
		elements := strings.SplitN(p[2:], `\`, 3)
		if len(elements) < 3 {
			return p, ""
		}
		return `\\` + elements[0] + `\` + elements[1] + `\`, elements[2]
	case len(p) >= 2 && p[1] == ':' && letter(p[0]):
		root, rest = strings.ToUpper(p[:2]), p[2:]
	default:
		rest = p
	}
	if strings.HasPrefix(rest, `\`) {
		return root + `\`, rest[1:]
	}
	return root, rest
}

func cleanElements(elements []string, absolute bool) string {
	var kept []string
	for _, e := range elements {
		switch {
		case e == "" || e == ".":
		case e != "..":
			kept = append(kept, e)
		case len(kept) > 0 && kept[len(kept)-1] != "..":
			kept = kept[:len(kept)-1]
		case !absolute:
			kept = append(kept, e)
		}
	}
	return strings.Join(kept, `\`)
}

// drive reports whether path begins with a drive, and is not relative to that drive's current directory.
func drive(path string) bool {
	return len(path) >= 2 && path[1] == ':' && letter(path[0]) && (len(path) == 2 || path[2] == '\\' || path[2] == '/')
}

func letter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// Nested reports whether of two clean paths one is the other or holds it. On Windows forms and case do not matter; a directory there may be
// told to heed case, but two roots that differ in nothing else are a mistake all the same.
func Nested(a, b, goos string) bool {
	separator := "/"
	if goos == "windows" {
		separator = `\`
		a, b = strings.ToLower(NormalPath(a, goos)), strings.ToLower(NormalPath(b, goos))
	}
	a, b = strings.TrimSuffix(a, separator)+separator, strings.TrimSuffix(b, separator)+separator
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// rootPath is how Config.Root begins the paths of entries.
func rootPath(c Config, goos string) string {
	switch c.FS.(type) {
	case nil, *afero.OsFs, afero.OsFs:
		return trimRoot(NormalPath(c.Root, goos))
	}
	return trimRoot(c.Root)
}

func trimRoot(root string) string {
	least := len(filepath.VolumeName(root)) + 1
	for len(root) > least && os.IsPathSeparator(root[len(root)-1]) {
		root = root[:len(root)-1]
	}
	return root
}

// join is filepath.Join without Clean: what a ".." in the root leads to is for the filesystem to say.
func join(dir, name string) string {
	if os.IsPathSeparator(dir[len(dir)-1]) {
		return dir + name
	}
	return dir + separator(runtime.GOOS, dir) + name
}

// separator is the system's, but on Windows the one the root is written with: it takes both, and a simulated filesystem perhaps only slashes.
func separator(goos, dir string) string {
	if goos == "windows" && (strings.Contains(dir, `\`) || !strings.Contains(dir, "/")) {
		return `\`
	}
	return "/"
}
