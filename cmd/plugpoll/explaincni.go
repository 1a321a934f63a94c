package main

import (
	"cmp"
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

// cniSubject says which CNI directory a finding is about.
type cniSubject struct {
	Name          string    `json:"name"`
	ConfDir       string    `json:"conf_dir"`
	ConfDirBase64 string    `json:"conf_dir_base64,omitempty"`
	State         cni.State `json:"state"`
	Network       string    `json:"network,omitempty"`
}

// defaultHandler is how the runtime handler without a name can be asked for.
const defaultHandler = "default"

// toldCNI is a CNI directory with what is to be said of it.
type toldCNI struct {
	v     cni.View
	dir   string // as the filesystem has it
	cause cause
}

// unreadableDir is in what package cni says of a directory that cannot be opened; a test makes it happen.
const unreadableDir = " cannot be read: "

func tellCNI(v cni.View) toldCNI {
	return toldCNI{v: v, dir: rawPath(v.ConfDir, v.ConfDirBase64), cause: cniCause(v)}
}

// cniCause tells why a directory is as it is: as the core of package cni, the most important first.
func cniCause(v cni.View) cause {
	missing := slices.ContainsFunc(v.Networks, func(n cni.NetworkView) bool { return missingIn(n) != "" })
	switch why := cniReason(v); {
	case v.State == cni.Loading:
		return cniLoading
	case v.Error == nil && len(v.Files) == 0 && strings.Contains(why, unreadableDir):
		return cniUnreadable
	case !v.Ready && v.Error == nil && len(v.Files) == 0 && v.ScanError == "":
		return cniEmpty
	case !v.Ready && missing:
		return cniMissing
	case !v.Ready && v.Status.Error != "" && len(v.Networks) > 0:
		return cniStatus
	case v.Error != nil && v.Error.Kind == cni.KindNoPinned:
		return cniNoPinned
	case v.State == cni.Stale && len(v.Files) == 0:
		return cniEmpty
	case v.State == cni.Stale:
		return cniStale
	case v.Error != nil:
		return cniBroken
	case v.ScanError != "":
		return cniUnreadable
	case !v.Ready:
		return cniFailing
	case len(noIPAM(v)) > 0:
		return cniNoIPAM
	}
	return cniReady
}

func missingIn(n cni.NetworkView) string {
	for _, p := range n.Plugins {
		if p.Missing != "" {
			return p.Missing
		}
	}
	return ""
}

// explainCNI tells of everything in the CNI directories that a name or path may mean.
func explainCNI(dirs []cni.View, asked string) (findings []finding) {
	absolute, _ := asPath(asked)
	for _, v := range dirs {
		t, isPlugin := tellCNI(v), false
		if filepath.Clean(t.dir) == absolute || v.Name == asked || v.Name == "" && asked == defaultHandler {
			findings = append(findings, t.directory())
			continue
		}
		told := map[string]bool{} // the files
		for _, f := range v.Files {
			if path := rawPath(f.Path, f.PathBase64); path == asked || path == absolute || fileCalled(path, asked) || f.Network == asked {
				findings = append(findings, t.file(f))
				told[path] = true
			}
		}
		for _, n := range v.Networks {
			typ := asked
			for _, p := range n.Plugins {
				if p.Path != "" && rawPath(p.Path, p.PathBase64) == absolute {
					typ = p.Type
				}
			}
			needed := slices.ContainsFunc(n.Plugins, func(p cni.PluginView) bool { return p.Type == typ || p.IPAM == typ })
			switch path := rawPath(n.File, n.FileBase64); {
			case needed:
				isPlugin = true
				findings = append(findings, t.plugin(n, typ))
			case n.Name == asked && !told[path] || path == asked && !told[path]:
				findings = append(findings, t.network(n))
			}
		}
		for _, f := range v.Files { // a plugin that nothing in use needs
			if path := rawPath(f.Path, f.PathBase64); !isPlugin && !told[path] && slices.Contains(f.Plugins, asked) {
				findings = append(findings, t.file(f))
			}
		}
	}
	return findings
}

// fileCalled reports whether somebody who says asked may mean a file.
func fileCalled(path, asked string) bool {
	base := filepath.Base(path)
	return base == asked || strings.TrimSuffix(base, filepath.Ext(base)) == asked || scanner.Quote(path) == asked
}

func (t toldCNI) finding(c cause, path, network, seen, failed, do string) finding {
	return finding{
		Version: state.APIVersion, Cause: c, OK: slices.Contains(fine, c), Path: path, PathBase64: scanner.Base64(path),
		CNI:  &cniSubject{t.v.Name, t.v.ConfDir, t.v.ConfDirBase64, t.v.State, network},
		Seen: seen, Tried: t.tried(), Failed: failed, Do: do,
	}.loose()
}

func (t toldCNI) directory() finding {
	seen := fmt.Sprintf("%s is the CNI directory of %s, which has been %s for %s; it holds %s.", name(t.dir), handlerText(t.v.Name), t.v.State,
		spanText(t.v.Time.Sub(t.v.Since)), counted(len(t.v.Files), "configuration file", "configuration files"))
	return t.finding(t.cause, t.dir, "", seen, t.failed(), cniAdvice[t.cause](t))
}

// network tells of a network that is in use, though no file has it any more.
func (t toldCNI) network(n cni.NetworkView) finding {
	seen := fmt.Sprintf("%s is a network that %s; it was read from %s, which does not have it any more.", name(n.Name), t.does(),
		name(rawPath(n.File, n.FileBase64)))
	return t.finding(t.cause, rawPath(n.File, n.FileBase64), n.Name, seen, t.failed(), cniAdvice[t.cause](t))
}

// plugin tells of a plugin that a network in use needs.
func (t toldCNI) plugin(n cni.NetworkView, typ string) finding {
	what := "a plugin"
	if !slices.ContainsFunc(n.Plugins, func(p cni.PluginView) bool { return p.Type == typ }) {
		what = "the IPAM plugin"
	}
	seen := fmt.Sprintf("%s is %s of the network %s, which %s; it is looked for in %s", name(typ), what, name(n.Name), t.does(), t.binDirs())
	if i := slices.IndexFunc(n.Plugins, func(p cni.PluginView) bool { return p.Type == typ && p.Path != "" }); i >= 0 {
		seen += ", and is " + name(rawPath(n.Plugins[i].Path, n.Plugins[i].PathBase64))
	}
	seen += "."
	return t.finding(t.cause, rawPath(n.File, n.FileBase64), n.Name, seen, t.failed(), cniAdvice[t.cause](t))
}

// file tells of a configuration file.
func (t toldCNI) file(f cni.FileView) finding {
	path := rawPath(f.Path, f.PathBase64)
	seen := fmt.Sprintf("%s is a configuration file in the CNI directory of %s", name(path), handlerText(t.v.Name))
	if f.Network != "" {
		seen += fmt.Sprintf("; it has the network %s", name(f.Network))
	}
	if len(f.Plugins) > 0 {
		seen += " with " + pluginsText(f.Plugins)
	}
	seen += "."
	if f.Error != nil {
		c := cniBroken
		if f.State == cni.Duplicate {
			c = cniDuplicate
		}
		do := "To mend it: " + sentence(scanner.Clean(f.Error.Fix, maxComplaint)) + " It is read again by itself." + t.effect(f)
		return t.finding(c, path, f.Network, seen, "It is "+string(f.State)+": "+glue(mistakeAt(*f.Error))+": "+sentence(scanner.Clean(f.Error.Text, maxComplaint)), do)
	}
	if f.State == cni.NotUsed {
		c, do := cniNotUsed, "If this network is wanted, have its file come first by name, or remove the other; plugpoll run --cni-max-conf-num uses more than one file, and --cni-default-network chooses one by its network."
		if t.v.Error != nil {
			c, do = t.cause, cniAdvice[t.cause](t)
		}
		return t.finding(c, path, f.Network, seen, sentence("It is not used: "+scanner.Clean(f.Reason, maxComplaint)), do)
	}
	return t.finding(t.cause, path, f.Network, seen, t.failed(), cniAdvice[t.cause](t))
}

func pluginsText(types []string) string {
	names := make([]string, len(types))
	for i, typ := range types {
		names[i] = name(typ)
	}
	if len(names) == 1 {
		return "the plugin " + names[0]
	}
	return "the plugins " + strings.Join(names, ", ")
}

// effect says what a mistake in a file does.
func (t toldCNI) effect(f cni.FileView) string {
	switch {
	case f.State == cni.Duplicate || !sameFile(f, t.v.Error):
		return " It harms nothing as long as the files before it are there."
	case t.v.State == cni.Stale:
		return " Until then the last good configuration stays in use: pods can be set up and removed."
	}
	return " Until then no pod can be set up."
}

// tried says when the directory was read, and what is of its networks.
func (t toldCNI) tried() string {
	text := fmt.Sprintf("The daemon last read %s without an error %s.", name(t.dir), ago(t.v.GoodScanAge))
	if t.v.LastGoodScan.IsZero() {
		text = fmt.Sprintf("The daemon could never read %s without an error.", name(t.dir))
	}
	if len(t.v.Networks) == 0 {
		return text + " No network is in use."
	}
	var names []string
	for _, n := range t.v.Networks {
		names = append(names, name(n.Name))
	}
	all, since := strings.Join(names, ", "), spanText(t.v.Time.Sub(t.v.LastSuccess))
	switch networksAre(t.v) {
	case inUse:
		return fmt.Sprintf("%s In use for %s: %s.", text, since, all)
	case loaded:
		return fmt.Sprintf("%s Loaded %s ago: %s.", text, since, all)
	}
	verb := "is"
	if len(names) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s %s %s %s.", text, all, verb, kept)
}

// does is what a runtime handler does with the networks that the directory has loaded.
func (t toldCNI) does() string {
	switch handler := handlerText(t.v.Name); networksAre(t.v) {
	case inUse:
		return "is in use by " + handler
	case loaded:
		return handler + " has loaded"
	default:
		return handler + " keeps for pods that run"
	}
}

// failed says what is wrong with the directory.
func (t toldCNI) failed() string {
	if t.cause == cniReady {
		return "The network is ready."
	}
	why := cmp.Or(cniReason(t.v), t.v.ScanError, strings.Join(noIPAM(t.v), "; "))
	if why == "" {
		return ""
	}
	state := "It is " + string(t.v.State)
	if t.v.State == cni.Ready {
		state = "The network is ready, but"
	}
	return sentence(state + ": " + scanner.Clean(why, maxComplaint))
}

// explainConfFile tells of a file of a CNI directory that is in no verdict.
func explainConfFile(dirs []cni.View, asked string, f facts) (finding, bool) {
	absolute, isPath := asPath(asked)
	for _, v := range dirs {
		t := tellCNI(v)
		path := absolute
		if !isPath {
			path = filepath.Join(t.dir, asked)
		}
		dir := filepath.Clean(t.dir)
		inside := filepath.Dir(path) == dir || isPath && len(path) > len(dir) && scanner.Nested(dir, path, runtime.GOOS)
		if !inside {
			continue
		}
		there := f.look(path)
		if !isPath && there.err != nil {
			continue
		}
		return t.noVerdict(path, there), true
	}
	return finding{}, false
}

// noVerdict tells of a path in the directory that the daemon has no verdict on.
func (t toldCNI) noVerdict(path string, there pathFacts) finding {
	say := func(c cause, failed, do string) finding {
		return t.finding(c, path, "", seenAs(path, there), failed, do)
	}
	skipped, rename := skippedName(filepath.Base(path))
	switch inside := filepath.Dir(path) == filepath.Clean(t.dir); {
	case t.v.ScanError != "" || t.v.LastGoodScan.IsZero():
		return say(cniUnreadable, sentence("The daemon cannot read the directory as a whole: "+dash(scanner.Clean(t.v.ScanError, maxComplaint))), cniAdvice[cniUnreadable](t))
	case errors.Is(there.err, fs.ErrNotExist) && skipped != "":
		return say(cniNoFile, "Nor would a file there count. "+skipped, rename)
	case errors.Is(there.err, fs.ErrNotExist):
		return say(cniNoFile, "So there is no configuration in it.", "See that whoever installs the network writes the file under exactly this path. It is found by itself as soon as it is there.")
	case there.what == "directory" && inside:
		return say(cniIgnored, "A directory is no configuration file.", "Nothing is to be done: .conf files in it count if it is called as a network in use of cniVersion 1.1.0 or later that takes plugins from there.")
	case skipped != "":
		return say(cniIgnored, skipped, rename)
	case !inside:
		return say(cniIgnored, "It is in a subdirectory, of which only .conf files count, and only in one that is called as a network of cniVersion 1.1.0 or later that takes plugins from there.",
			"Move it to "+name(t.dir)+", or call the subdirectory as the network.")
	}
	return say(notSeen, "The daemon has not seen it there.", "If it was made this moment, ask again. Else the daemon sees another filesystem under this path than you do, in a container or another mount namespace, or the directory holds too many files.")
}

// skippedName says why a name is none of a configuration file, and what to do; nothing if it may be one.
func skippedName(base string) (skipped, rename string) {
	switch {
	case strings.HasPrefix(base, "."):
		return "Its name begins with a dot, and such names are skipped.", "Rename it to a name without the dot."
	case !slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(base)):
		return "Its name does not end in .conf, .conflist or .json, so it is no configuration file.", "Rename it if it is one: .conflist for a list of plugins, .conf for a single one."
	}
	return "", ""
}

func unknownToCNI(dirs []cni.View, asked string) finding {
	return file(cniUnknown, asked, fmt.Sprintf("No network, file, plugin or runtime handler of the network configuration in %s is called %s.", confDirsText(dirs), name(asked)),
		"", "", "`"+glue("plugpoll cni status")+"` lists what is known. The daemon watches no directory of sockets: start it with --dir for plugins that register.")
}

func confDirsText(dirs []cni.View) string {
	var names []string
	for _, v := range dirs {
		names = append(names, name(rawPath(v.ConfDir, v.ConfDirBase64)))
	}
	return strings.Join(names, " or ")
}

// cniNames are what a shell may offer of the CNI directories.
func cniNames(dirs []cni.View) (names []string) {
	for _, v := range dirs {
		offered := []string{v.Name}
		for _, f := range v.Files {
			offered = append(offered, filepath.Base(f.Path), f.Network)
		}
		for _, name := range offered {
			if name != "" && scanner.Quote(name) == name {
				names = append(names, name)
			}
		}
	}
	return names
}
