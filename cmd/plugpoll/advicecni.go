package main

import (
	"strings"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
)

// cniAdvice says for each cause of a CNI directory what to do, to the person who can.
var cniAdvice = map[cause]func(toldCNI) string{
	cniReady:   func(toldCNI) string { return "Nothing is to be done." },
	cniLoading: func(toldCNI) string { return "That takes a moment: ask again in a second." },
	cniEmpty: func(t toldCNI) string {
		return "Have the network installed: whoever does that (a DaemonSet, a package) writes its file to " + name(t.dir) + ", and its plugins to " + t.binDirs() +
			". Pods that run can be removed meanwhile. The file is found by itself; if it is elsewhere, correct --cni-conf-dir."
	},
	cniStale: func(t toldCNI) string {
		return t.mend() + " Until then the last good configuration stays in use: pods can be set up and removed."
	},
	cniBroken: func(t toldCNI) string { return t.mend() + " Until then no pod can be set up." },
	cniNoPinned: func(t toldCNI) string {
		return "The daemon was started with --cni-default-network: add a file with that network, or correct the flag."
	},
	cniMissing: func(t toldCNI) string {
		return "The network's plugins must be in " + t.binDirs() + " (--cni-bin-dir) and be executable. One that arrives is found by itself within a second."
	},
	cniNoIPAM: func(t toldCNI) string {
		return "Install it in " + t.binDirs() + " (--cni-bin-dir): most plugins run it from there, and without it each pod fails. It is looked for again by itself. A plugin that looks for it elsewhere works without."
	},
	cniStatus: func(toldCNI) string {
		return "The plugin itself says so, or does not answer its STATUS: see the log of what it belongs to (its daemon on this node, if it has one). It is asked again by itself, and at once when the daemon gets SIGHUP."
	},
	cniUnreadable: func(t toldCNI) string {
		switch why := cniReason(t.v) + t.v.ScanError; {
		case strings.Contains(why, "permission denied"):
			return "The daemon's user may not read it: run the daemon as root, or give its user read and search permission (" + command("namei -l", t.dir) + ")." + t.kept()
		case strings.Contains(why, "not a directory"):
			return "There is a file in the directory's place: move it away, or correct --cni-conf-dir."
		}
		return "Look at the directory as the daemon's user: " + command("ls -l", t.dir) + "." + t.kept()
	},
	cniFailing: func(toldCNI) string {
		return "It is tried again by itself. See the daemon's log, in the lines named cni."
	},
}

// mend is what to do about the file that makes a directory's configuration unusable.
func (t toldCNI) mend() string {
	e := t.v.Error
	if e == nil {
		return "See the daemon's log, in the lines named cni."
	}
	return "Mend " + name(rawPath(e.Path, e.PathBase64)) + ": " + sentence(scanner.Clean(e.Fix, maxComplaint)) + " It is read again by itself."
}

// kept says what comes of the networks in use while the directory cannot be read, if there are any.
func (t toldCNI) kept() string {
	if len(t.v.Networks) == 0 {
		return ""
	}
	return " What was in use stays so meanwhile."
}

func (t toldCNI) binDirs() string {
	var names []string
	for _, d := range t.v.BinDirs {
		names = append(names, name(rawPath(d.Path, d.PathBase64)))
	}
	if len(names) == 0 {
		return name(cni.DefaultBinDir)
	}
	return strings.Join(names, " or ")
}

// sentence ends a text with a full stop.
func sentence(text string) string { return strings.TrimRight(text, ". ;") + "." }
