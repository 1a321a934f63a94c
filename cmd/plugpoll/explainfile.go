package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// maxFindings bounds what one name brings up.
const maxFindings = 20

// explain tells of everything that a name or path may mean, at least of that there is nothing.
func explain(v state.View, ofCNI []cni.View, asked string, f facts) []finding {
	var findings []finding
	for _, s := range v.Sockets {
		if len(findings) < maxFindings && meant(s, asked) {
			findings = append(findings, explainSocket(v, s, f))
		}
	}
	findings = append(findings, explainCNI(ofCNI, asked)...)
	if len(findings) > 0 {
		return findings[:min(len(findings), maxFindings)]
	}
	if found, ok := explainConfFile(ofCNI, asked, f); ok {
		return []finding{found}
	}
	path, isPath := asPath(asked)
	if len(v.Roots) == 0 && len(ofCNI) > 0 {
		return []finding{unknownToCNI(ofCNI, asked)}
	}
	if !isPath && f.look(path).err != nil {
		if found := ignoredAs(v, asked); found != "" {
			return []finding{explainFile(v, found, f)}
		}
		for _, found := range f.find(asked, dirsOf(v)) {
			findings = append(findings, explainFile(v, found, f))
		}
		if len(findings) > 0 {
			return findings[:min(len(findings), maxFindings)]
		}
		return []finding{unknownName(v, ofCNI, asked)}
	}
	return []finding{explainFile(v, path, f)}
}

// meant reports whether somebody who says asked means the socket.
func meant(s state.SocketView, asked string) bool {
	path := rawPath(s.Path, s.PathBase64)
	if absolute, _ := asPath(asked); path == asked || path == absolute || called(filepath.Base(path), asked) || scanner.Quote(path) == asked {
		return true
	}
	p := s.Plugin
	return p != nil && (p.Name == asked || p.Type+"/"+p.Name == asked)
}

// called reports whether somebody who says asked may mean a file: node-driver-registrar makes DRIVER-reg.sock, others NAME.sock.
func called(file, asked string) bool {
	short := strings.TrimSuffix(file, ".sock")
	return file == asked || short == asked || strings.TrimSuffix(short, "-reg") == asked
}

// asPath is asked as an absolute path, and whether it was written as a path.
func asPath(asked string) (string, bool) {
	path, err := filepath.Abs(asked)
	if err != nil {
		path = asked
	}
	return path, strings.ContainsRune(asked, filepath.Separator) || strings.ContainsRune(asked, '/')
}

func dirsOf(v state.View) (dirs []string) {
	for _, r := range v.Roots {
		dirs = append(dirs, rawPath(r.Path, r.PathBase64))
	}
	return dirs
}

// ignoredAs finds an entry that the daemon ignores by its name, with or without the dot.
func ignoredAs(v state.View, asked string) string {
	for _, r := range v.Roots {
		for _, g := range r.Ignored {
			for _, file := range []string{asked, asked + ".sock", asked + "-reg.sock"} {
				for _, example := range []string{file, "." + file} {
					if slices.Contains(g.Examples, scanner.Quote(example)) {
						return filepath.Join(rawPath(g.Dir, g.DirBase64), example)
					}
				}
			}
		}
	}
	return ""
}

func unknownName(v state.View, ofCNI []cni.View, asked string) finding {
	seen := fmt.Sprintf("No socket in %s announces a plugin called %s, and no file of that name is there or near by.", dirsText(v), name(asked))
	if len(ofCNI) > 0 {
		seen += " No network, file or plugin of network configuration in " + confDirsText(ofCNI) + " is called so either."
	}
	return file(noSuchSocket, asked, seen,
		"", "", "See that the plugin runs, and that it makes its registration socket in "+dirsText(v)+
			" of this node (a container needs the directory mounted from the host). `"+glue("plugpoll status")+"` lists what is known; asked by the socket's path, why looks at the path itself.")
}

func dirsText(v state.View) string {
	var names []string
	for _, d := range dirsOf(v) {
		names = append(names, name(d))
	}
	return strings.Join(names, " or ")
}

func file(c cause, path, seen, tried, failed, do string) finding {
	return finding{
		Version: state.APIVersion, Cause: c, Path: path, PathBase64: scanner.Base64(path),
		Seen: seen, Tried: tried, Failed: failed, Do: do,
	}.loose()
}

// explainFile tells of a path at which the daemon knows no socket.
func explainFile(v state.View, path string, f facts) finding {
	there := f.look(path)
	root := rootOf(v, path)
	if root == nil {
		return outsideRoots(v, path, there)
	}
	dir := rawPath(root.Path, root.PathBase64)
	scanned := fmt.Sprintf("The daemon last read %s without an error %s.", name(dir), scanAge(*root))
	if dot := dotPart(dir, path); dot != "" && !errors.Is(there.err, fs.ErrNotExist) {
		return file(dotName, path, seenAs(path, there), scanned, fmt.Sprintf("%s begins with a dot, and such names are skipped: plugins use them for sockets that are not ready.", name(dot)),
			"Have the plugin make or rename its socket to a name without the dot.")
	}
	if root.Error != "" || root.LastGoodScan.IsZero() {
		return file(rootUnreadable, path, seenAs(path, there), scanned, "Since then: "+dash(scanner.Clean(root.Error, maxComplaint))+".", rootAdvice(v, dir))
	}
	for at := path; len(at) > len(dir); at = filepath.Dir(at) {
		for _, g := range root.Ignored {
			if filepath.Clean(rawPath(g.Dir, g.DirBase64)) == filepath.Dir(at) && slices.Contains(g.Examples, scanner.Quote(filepath.Base(at))) {
				return ignoredFile(at, f.look(at), g, scanned)
			}
		}
	}
	return unseenFile(path, there, dir, scanned)
}

// seenAs says what is at a path, as seen from here.
func seenAs(path string, there pathFacts) string {
	switch {
	case errors.Is(there.err, fs.ErrNotExist):
		return "There is nothing at " + name(path) + "."
	case there.err != nil:
		return fmt.Sprintf("%s cannot be looked at from here (%s).", name(path), scanner.Clean(bare(there.err).Error(), maxReason))
	}
	return fmt.Sprintf("%s is a %s.", name(path), there.what)
}

func rootOf(v state.View, path string) *state.RootView {
	for i, r := range v.Roots {
		if dir := filepath.Clean(rawPath(r.Path, r.PathBase64)); path != dir && scanner.Nested(dir, path, runtime.GOOS) && len(path) > len(dir) {
			return &v.Roots[i]
		}
	}
	return nil
}

func outsideRoots(v state.View, path string, there pathFacts) finding {
	watched := "The daemon watches " + strings.ReplaceAll(dirsText(v), " or ", " and ") + " only."
	if errors.Is(there.err, fs.ErrNotExist) {
		return file(noSuchSocket, path, seenAs(path, there), watched, "", "See that the plugin runs, and have it make its registration socket in "+dirsText(v)+".")
	}
	also := " as well."
	if slices.ContainsFunc(dirsOf(v), func(d string) bool { return scanner.Nested(filepath.Dir(path), d, runtime.GOOS) }) {
		also = ", which holds the others, in place of them."
	}
	do := "Have the plugin make its registration socket in " + dirsText(v) + ", or start the daemon with " + command("--dir", filepath.Dir(path)) + also
	if there.err == nil && there.what != "socket" {
		do = "A plugin is found by its registration socket in " + dirsText(v) + "."
	}
	return file(wrongDirectory, path, seenAs(path, there), watched, "So it was not tried.", do)
}

// dotPart is the first part of path below dir that begins with a dot.
func dotPart(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return ""
	}
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		if strings.HasPrefix(part, ".") {
			return part
		}
	}
	return ""
}

// ignoredFile tells of what the daemon has seen and passed over.
func ignoredFile(path string, there pathFacts, g state.IgnoredView, scanned string) finding {
	switch g.Reason {
	case scanner.NotSocket:
		return file(notSocket, path, seenAs(path, there), scanned, "It is not a socket, so it was not tried.",
			"A plugin makes a unix socket (listens at the path). If the plugin should have made one here, see its log; else leave the file, or remove it: "+command("rm", path)+".")
	case scanner.TooDeep:
		return file(tooDeep, path, seenAs(path, there), scanned, "It is deeper than --max-depth allows.", "Have the plugin make its socket higher up, or start the daemon with a larger --max-depth.")
	case scanner.LinkToDirectory:
		return file(notSocket, path, seenAs(path, there), scanned, "It is a link to a directory, and such are not followed.",
			"Start the daemon with that directory as another --dir, or have the plugin make its socket in a real directory.")
	case scanner.DanglingLink:
		return file(notSocket, path, seenAs(path, there), scanned, "The link leads to nothing.", "See that the plugin that makes the socket it leads to runs, or correct the link: "+command("ls -l", path)+".")
	}
	return file(unreadable, path, seenAs(path, there), scanned, "The daemon cannot look at it: "+dash(scanner.Clean(g.Detail, maxComplaint))+".",
		"See what the daemon's user may do there ("+command("namei -l", path)+"), and whether the filesystem works.")
}

// unseenFile tells of a path in a directory that was read, where the daemon has nothing.
func unseenFile(path string, there pathFacts, dir, scanned string) finding {
	switch {
	case errors.Is(there.err, fs.ErrNotExist):
		return file(noSuchSocket, path, seenAs(path, there), scanned, "So there is no socket to try.",
			"See that the plugin runs and has not ended with an error; that it makes its socket under exactly this path; and, in a container, that "+name(dir)+
				" is mounted from the host. It is found by itself as soon as it is there.")
	case there.err != nil:
		return file(unreadable, path, seenAs(path, there), scanned, "", "Ask as root, or as the user that the daemon runs as.")
	case there.what == "directory":
		return file(notSocket, path, seenAs(path, there), scanned, "Sockets in it are found, it is none itself.", "Name a socket in it; "+command("plugpoll scan", path)+" lists what is there.")
	case there.what != "socket":
		return file(notSocket, path, seenAs(path, there), scanned, "It is not a socket, so it was not tried.", "A plugin makes a unix socket (listens at the path): see the plugin's log.")
	}
	return file(notSeen, path, seenAs(path, there), scanned, "The daemon has not seen it there.",
		"If it was made this moment, ask again. Else the daemon sees another filesystem under this path than you do (it runs in a container or another mount namespace: compare with "+
			command("plugpoll scan", dir)+" run there), or the directory holds more names than --max-entries.")
}
