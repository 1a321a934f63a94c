//go:build unix

package cni

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const (
	listA  = `{"cniVersion":"1.0.0","name":"a","plugins":[{"type":"bridge"},{"type":"portmap","capabilities":{"portMappings":true}}]}`
	listB  = `{"cniVersion":"1.0.0","name":"b","plugins":[{"type":"macvlan"}]}`
	plainC = `{"cniVersion":"0.3.1","name":"c","type":"ptp","ipam":{"type":"host-local"}}`
)

// files makes a map of names and contents.
func files(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// padded is one plugin of 600 KiB.
var padded = `{"type":"tuning","x":"` + strings.Repeat("x", 600<<10) + `"}`

// many is a list of n plugins.
func many(n int) string {
	return `{"cniVersion":"1.0.0","name":"a","plugins":[` + strings.Repeat(`{"type":"x"},`, n-1) + `{"type":"x"}]}`
}

func one(content string) map[string]string { return files("10-a.conflist", content) }

func oneConf(content string) map[string]string { return files("10-a.conf", content) }

// utf16 is ASCII text in UTF-16, with the low byte first or last.
func utf16(s string, low bool) string {
	var b strings.Builder
	for i := range len(s) {
		if low {
			b.WriteString(s[i:i+1] + "\x00")
		} else {
			b.WriteString("\x00" + s[i:i+1])
		}
	}
	return b.String()
}

func try(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// differences are all intended ones between what we say of a directory and what go-cni's Load does, with the reason. That "every ADD would fail" is
// shown by a test; of the versions it holds for plugins that answer in the version they were asked in, as they must.
var differences = map[string]string{
	"a dot file":                   "dot files are skipped: editors and installers write them on the way to the real ones (CN1)",
	"only a dot file":              "dot files are skipped (CN1)",
	"a dot file in a subdirectory": "dot files are skipped (CN1)",

	"two of one name":                       "the first wins (CN11): by the specification a name is one network of a host",
	"two of one name, the first two wanted": "the first wins, and the second does not count (CN11)",

	"pinned":                             "go-cni knows no pin (CN9)",
	"pinned, and all are wanted":         "go-cni knows no pin (CN9)",
	"pinned behind a broken one":         "go-cni knows no pin (CN9); the first broken file ends its Load",
	"pinned and not there":               "go-cni knows no pin (CN9)",
	"a subdirectory of a pinned network": "go-cni knows no pin (CN9)",

	"257 files, and all are wanted":       "256 files are read at most (CN3)",
	"more than a mebibyte":                "a file has a mebibyte at most (CN3)",
	"a pipe":                              "a pipe is an error, not a hang (CN3)",
	"a file with the subdirectory's name": "a file is no directory with plugins: it is as if there were none",

	"an empty name":           "every ADD would fail: libcni keeps no result without a name, and plugins refuse it",
	"no name in a .conf":      "every ADD would fail: libcni keeps no result without a name, and plugins refuse it",
	"a name with a path":      "every ADD would fail: libcni checks the name then",
	"a name with blanks":      "every ADD would fail: libcni checks the name then",
	"a name that is no UTF-8": "every ADD would fail: libcni checks the name then",

	"a cniVersion that is none":        "every ADD would fail: libcni reads no result in it",
	"a cniVersion that is not there":   "every ADD would fail: libcni reads no result in it",
	"a cniVersion in short":            "every ADD would fail: plugins and libcni compare versions as text",
	"a newer cniVersion":               "every ADD would fail, after the plugin has done its work: libcni reads no result in it",
	"a newer cniVersion in a .conf":    "every ADD would fail, after the plugin has done its work: libcni reads no result in it",
	"cniVersions with newer ones only": "libcni would go on with 0.1.0, which is none of them; the specification says the highest supported one",

	"a path in a subdirectory":                     "every ADD would fail: libcni refuses to run it",
	"a type with a path":                           "every ADD would fail: libcni refuses to run it",
	"a type that is a directory":                   "every ADD would fail: it can be no file",
	"a type with a line break":                     "no binary is called so, and everything that shows the type would have to quote it",
	"a number that is too large in a subdirectory": "every ADD would fail: libcni reads it then",
	"65 plugins":                                   "each is a process for each ADD: nobody has that many (CN3)",
	"65 plugins with its subdirectory":             "each is a process for each ADD: nobody has that many (CN3)",
	"more than a mebibyte with its subdirectory":   "a network is bounded as a file is (CN3)",
}

var loadCases = []loadCase{
	// What is chosen.
	{
		name: "an empty directory",
		want: "nothing",
		peer: "nothing",
	},
	{
		name: "no directory", make: func(t *testing.T, dir string) { try(t, os.Remove(dir)) },
		want: "nothing",
		peer: "nothing",
	},
	{
		name: "one list", files: one(listA),
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "one plugin in a .conf", files: oneConf(plainC),
		want: "uses c(0.3.1 ptp)",
		peer: "uses c(0.3.1 ptp)",
	},
	{
		name: "one plugin in a .json", files: files("10-c.json", plainC),
		want: "uses c(0.3.1 ptp)",
		peer: "uses c(0.3.1 ptp)",
	},
	{
		name: "the first of three", files: files("10-a.conflist", listA, "20-b.conflist", listB, "30-c.conf", plainC), o: choose{max: 1},
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "two of three", files: files("10-a.conflist", listA, "20-b.conflist", listB, "30-c.conf", plainC), o: choose{max: 2},
		want: "uses a(1.0.0 bridge portmap), b(1.0.0 macvlan)",
		peer: "uses a(1.0.0 bridge portmap), b(1.0.0 macvlan)",
	},
	{
		name: "all of three", files: files("10-a.conflist", listA, "20-b.conflist", listB, "30-c.conf", plainC),
		want: "uses a(1.0.0 bridge portmap), b(1.0.0 macvlan), c(0.3.1 ptp)",
		peer: "uses a(1.0.0 bridge portmap), b(1.0.0 macvlan), c(0.3.1 ptp)",
	},
	{
		name: "bytes decide the order", files: files("9-a.conflist", listA, "10-b.conflist", listB), o: choose{max: 1},
		want: "uses b(1.0.0 macvlan)",
		peer: "uses b(1.0.0 macvlan)",
	},
	{
		name: "capitals come first", files: files("a.conflist", listA, "Z.conflist", listB), o: choose{max: 1},
		want: "uses b(1.0.0 macvlan)",
		peer: "uses b(1.0.0 macvlan)",
	},
	{
		name: "other extensions", files: files("10-a.conflist.bak", "{", "a.yaml", "a: b", "README", "", "a.CONF", "{", "20-b.conflist", listB),
		want: "uses b(1.0.0 macvlan)",
		peer: "uses b(1.0.0 macvlan)",
	},
	{
		name: "only other extensions", files: files("10-a.conflist~", listA, "kubeconfig", "x"),
		want: "nothing",
		peer: "nothing",
	},
	{
		name: "a dot file", files: files(".10-a.conflist.swp", "{", ".00-hidden.conflist", listB, "10-a.conflist", listA), o: choose{max: 1},
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses b(1.0.0 macvlan)",
	},
	{
		name: "only a dot file", files: files(".conflist", listA),
		want: "nothing",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "a directory with the name of a file", files: files("10-a.conflist", listA, "00.conflist/x.conf", "{"),
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "broken behind the first", files: files("10-a.conflist", listA, "20-b.conflist", "{"), o: choose{max: 1},
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "broken behind the first, and all are wanted", files: files("10-a.conflist", listA, "20-b.conflist", "{"),
		want: "[incomplete] 20-b.conflist:1:2: the file ends in the middle: the { of line 1 is not closed; add what is missing, or write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "broken before a good one", files: files("10-a.conflist", "{", "20-b.conflist", listB), o: choose{max: 1},
		want: "[incomplete] 10-a.conflist:1:2: the file ends in the middle: the { of line 1 is not closed; add what is missing, or write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "two of one name", files: files("10-a.conflist", listA, "20-a.conf", strings.Replace(plainC, `"c"`, `"a"`, 1), "30-b.conflist", listB),
		want: "uses a(1.0.0 bridge portmap), b(1.0.0 macvlan)",
		peer: "uses a(1.0.0 bridge portmap), a(0.3.1 ptp), b(1.0.0 macvlan)",
	},
	{
		name: "two of one name, the first two wanted", files: files("10-a.conflist", listA, "20-a.conflist", listA, "30-b.conflist", listB), o: choose{max: 2},
		want: "uses a(1.0.0 bridge portmap), b(1.0.0 macvlan)",
		peer: "uses a(1.0.0 bridge portmap), a(1.0.0 bridge portmap)",
	},
	{
		name: "names that differ in case", files: files("10-a.conflist", listA, "20-A.conflist", strings.Replace(listA, `"a"`, `"A"`, 1)),
		want: "uses a(1.0.0 bridge portmap), A(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap), A(1.0.0 bridge portmap)",
	},
	{
		name: "pinned", files: files("10-a.conflist", listA, "20-b.conflist", listB), o: choose{max: 1, pin: "b"},
		want: "uses b(1.0.0 macvlan)",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "pinned, and all are wanted", files: files("10-a.conflist", listA, "20-b.conflist", listB), o: choose{pin: "b"},
		want: "uses b(1.0.0 macvlan), a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap), b(1.0.0 macvlan)",
	},
	{
		name: "pinned behind a broken one", files: files("10-a.conflist", "{", "20-b.conflist", listB), o: choose{max: 1, pin: "b"},
		want: "uses b(1.0.0 macvlan)",
		peer: "error",
	},
	{
		name: "pinned and not there", files: files("10-a.conflist", listA, "20-b.conflist", "{"), o: choose{max: 1, pin: "no\nsuch"},
		want: `[no such network] DIR: there is no network "no\nsuch"; there are a; it may be in what is broken: 20-b.conflist; add it, or ask for another default network`,
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "pinned in an empty directory", o: choose{max: 1, pin: "b"},
		want: "nothing",
		peer: "nothing",
	},
	{
		name: "257 files", make: func(t *testing.T, dir string) { manyFiles(t, dir, 257) }, o: choose{max: 1},
		want: "uses n0( x)",
		peer: "uses n0( x)",
	},
	{
		name: "257 files, and all are wanted", make: func(t *testing.T, dir string) { manyFiles(t, dir, 257) },
		want: "[too many files] 256.conf: there are too many files before it: only the first 256 are read; remove those that are not needed",
		peer: usedOrNothing(manyNetworks(257)),
	},

	// Subdirectories of CNI 1.1.
	{
		name: "plugins from a subdirectory", files: files("10-a.conflist", listA, "a/20-x.conf", `{"type":"firewall","x":1}`, "a/10-y.conf", `{"type":"tuning","name":"other"}`),
		want: "uses a(1.0.0 bridge portmap tuning firewall)",
		peer: "uses a(1.0.0 bridge portmap tuning firewall)",
	},
	{
		name: "all plugins from a subdirectory", files: files("10-a.conflist", `{"cniVersion":"1.1.0","name":"a"}`, "a/1.conf", `{"type":"tuning","big":9007199254740993}`),
		want: "uses a(1.1.0 tuning)",
		peer: "uses a(1.1.0 tuning)",
	},
	{
		name: "inlined plugins only", files: files("10-a.conflist", `{"name":"a","loadOnlyInlinedPlugins":true,"plugins":[{"type":"x"}]}`, "a/1.conf", `{"type":"tuning"}`),
		want: "uses a( x)",
		peer: "uses a( x)",
	},
	{
		name: "another network's subdirectory", files: files("10-a.conflist", listA, "b/1.conf", "{", "a/1.conflist", "{", "a/1.json", "{", "a/x/1.conf", "{"),
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "a broken file in a subdirectory", files: files("10-a.conflist", listA, "a/1.conf", "{\"type\":\"tuning\",\n}"),
		want: "[trailing comma] a/1.conf:1:17: there is a comma before '}'; remove the comma",
		peer: "error",
	},
	{
		name: "no type in a subdirectory", files: files("10-a.conflist", listA, "a/1.conf", `{"typ":"tuning"}`),
		want: `[no type] a/1.conf:1:1: the plugin has no type; add a "type", the name of the plugin's binary`,
		peer: "error",
	},
	{
		name: "a list in a subdirectory", files: files("10-a.conflist", listA, "a/1.conf", listB),
		want: "[list in a .conf] a/1.conf:1:34: this is a list of plugins, and a .conf file holds one plugin; put each plugin in a file of its own",
		peer: "error",
	},
	{
		name: "a path in a subdirectory", files: files("10-a.conflist", listA, "a/1.conf", `{"type":"../tuning"}`),
		want: `[bad type] a/1.conf:1:2: the plugin's type "../tuning" is a path; write the name of the plugin's binary, without its directory`,
		peer: "uses a(1.0.0 bridge portmap ../tuning)",
	},
	{
		name: "a dot file in a subdirectory", files: files("10-a.conflist", listA, "a/.1.conf", `{"type":"tuning"}`),
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap tuning)",
	},
	{
		name:  "a subdirectory that is a link",
		want:  "uses a(1.0.0 bridge portmap tuning)",
		peer:  "uses a(1.0.0 bridge portmap tuning)",
		files: files("10-a.conflist", listA), make: func(t *testing.T, dir string) {
			elsewhere := t.TempDir()
			try(t, os.WriteFile(filepath.Join(elsewhere, "1.conf"), []byte(`{"type":"tuning"}`), 0o644), os.Symlink(elsewhere, filepath.Join(dir, "a")))
		},
	},
	{
		name: "a subdirectory of a single plugin", files: files("10-c.conf", plainC, "c/1.conf", `{"type":"tuning"}`),
		want: "uses c(0.3.1 ptp)",
		peer: "uses c(0.3.1 ptp)",
	},
	{
		name: "a file with the subdirectory's name", files: files("10-a.conflist", listA, "a", "x"),
		want: "uses a(1.0.0 bridge portmap)",
		peer: "error",
	},
	{
		name: "two lists share a subdirectory", files: files("10-a.conflist", listA, "20-a.conflist", listA, "a/1.conf", `{"type":"tuning"}`), o: choose{max: 1},
		want: "uses a(1.0.0 bridge portmap tuning)",
		peer: "uses a(1.0.0 bridge portmap tuning)",
	},

	{
		name: "a number that is too large in a subdirectory", files: files("10-a.conflist", listA, "a/1.conf", "{\"type\":\"tuning\",\n\"mtu\": -1e999}"),
		want: "[number out of range] a/1.conf:2:8: the number -1e999 is too large; make it smaller",
		peer: "uses a(1.0.0 bridge portmap tuning)",
	},
	{
		name: "a dangling link in a subdirectory", files: files("10-a.conflist", listA, "a/2.conf", `{"type":"tuning"}`), make: func(t *testing.T, dir string) { try(t, os.Symlink("nowhere", filepath.Join(dir, "a/1.conf"))) },
		want: "[dangling link] a/1.conf: the link leads to nothing: what it leads to does not exist; make what it leads to, or remove the link",
		peer: "error",
	},
	{
		name: "an empty file in a subdirectory", files: files("10-a.conflist", listA, "a/1.conf", ""),
		want: "[empty] a/1.conf: the file is empty; write it under another name and rename it when it is complete, or remove it",
		peer: "error",
	},
	{
		name: "a subdirectory of a pinned network", files: files("10-a.conflist", listA, "20-b.conflist", listB, "b/1.conf", `{"type":"tuning"}`), o: choose{max: 1, pin: "b"},
		want: "uses b(1.0.0 macvlan tuning)",
		peer: "uses a(1.0.0 bridge portmap)",
	},

	// Files that cannot be read, or are none.
	{
		name: "a file that cannot be read",
		want: "[unreadable] 10-a.conflist: the file cannot be read: input/output error; let plugpoll's user read it",
		peer: "error",
		make: func(t *testing.T, dir string) {
			if runtime.GOOS != "linux" {
				t.Skip("there is no file that root cannot read")
			}
			try(t, os.Symlink("/proc/self/mem", filepath.Join(dir, "10-a.conflist")))
		},
	},
	{
		name: "a dangling link", make: func(t *testing.T, dir string) { try(t, os.Symlink("nowhere", filepath.Join(dir, "10-a.conflist"))) },
		want: "[dangling link] 10-a.conflist: the link leads to nothing: what it leads to does not exist; make what it leads to, or remove the link",
		peer: "error",
	},
	{
		name: "a link",
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap)",
		make: func(t *testing.T, dir string) {
			elsewhere := filepath.Join(t.TempDir(), "list")
			try(t, os.WriteFile(elsewhere, []byte(listA), 0o644), os.Symlink(elsewhere, filepath.Join(dir, "10-a.conflist")))
		},
	},
	{
		name: "a link to itself",
		want: "[dangling link] 10-a.conflist: the link leads to nothing: it leads back to itself, or through too many links; make what it leads to, or remove the link",
		peer: "error",
		make: func(t *testing.T, dir string) {
			try(t, os.Symlink("10-a.conflist", filepath.Join(dir, "10-a.conflist")))
		},
	},
	{
		name: "a link to a directory", make: func(t *testing.T, dir string) { try(t, os.Symlink(t.TempDir(), filepath.Join(dir, "10-a.conflist"))) },
		want: "[not regular] 10-a.conflist: this is no regular file: a link to a directory; put a regular file in its place, or remove it",
		peer: "error",
	},
	{
		name: "a pipe", make: func(t *testing.T, dir string) { try(t, syscall.Mkfifo(filepath.Join(dir, "10-a.conflist"), 0o644)) },
		want: "[not regular] 10-a.conflist: this is no regular file: a fifo; put a regular file in its place, or remove it",
		peer: "hangs",
	},
	{
		name: "a pipe behind the first", files: one(listA), make: func(t *testing.T, dir string) { try(t, syscall.Mkfifo(filepath.Join(dir, "20-b.conf"), 0o644)) }, o: choose{max: 1},
		want: "uses a(1.0.0 bridge portmap)",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "more than a mebibyte", files: one(listA + strings.Repeat(" ", 1<<20)),
		want: "[too large] 10-a.conflist: the file is too large: 1.1 MiB, the limit is 1 MiB; make it smaller, or give it another extension if it is no CNI configuration",
		peer: "uses a(1.0.0 bridge portmap)",
	},
	{
		name: "more than a mebibyte with its subdirectory", files: files("10-a.conflist", listA, "a/1.conf", padded, "a/2.conf", padded),
		want: "[too large] 10-a.conflist: with what its subdirectory adds the network is too large: 1.2 MiB, the limit is 1 MiB; make it smaller",
		peer: "uses a(1.0.0 bridge portmap tuning tuning)",
	},
	{
		name: "64 plugins", files: one(many(64)),
		want: "uses a(1.0.0" + strings.Repeat(" x", 64) + ")",
		peer: "uses a(1.0.0" + strings.Repeat(" x", 64) + ")",
	},
	{
		name: "65 plugins", files: one(many(65)),
		want: "[too many plugins] 10-a.conflist:1:34: the network has 65 plugins, and 64 is the limit; use fewer",
		peer: "uses a(1.0.0" + strings.Repeat(" x", 65) + ")",
	},
	{
		name: "65 plugins with its subdirectory", files: files("10-a.conflist", many(64), "a/1.conf", `{"type":"tuning"}`),
		want: "[too many plugins] 10-a.conflist:1:34: the network has 65 plugins, and 64 is the limit; use fewer",
		peer: "uses a(1.0.0" + strings.Repeat(" x", 64) + " tuning)",
	},
	{
		name: "a file name of a hostile writer", files: files("10-\n\x1b[31m\xff.conflist", "{"),
		want: `[incomplete] "10-\n\x1b[31m\xff.conflist":1:2: the file ends in the middle: the { of line 1 is not closed; add what is missing, or write it under another name and rename it when it is complete`,
		peer: "error",
	},

	// Text.
	{
		name: "empty", files: one(""),
		want: "[empty] 10-a.conflist: the file is empty; write it under another name and rename it when it is complete, or remove it",
		peer: "error",
	},
	{
		name: "blanks", files: one(" \r\n\t"),
		want: "[empty] 10-a.conflist: there are only blanks in the file; write it under another name and rename it when it is complete, or remove it",
		peer: "error",
	},
	{
		name: "byte order mark", files: one("\xef\xbb\xbf" + listA),
		want: "[byte order mark] 10-a.conflist:1:1: the file begins with a byte order mark (EF BB BF), which JSON does not allow; save it as UTF-8 without a byte order mark",
		peer: "error",
	},
	{
		name: "only a byte order mark", files: one("\xef\xbb\xbf"),
		want: "[byte order mark] 10-a.conflist:1:1: the file begins with a byte order mark (EF BB BF), which JSON does not allow; save it as UTF-8 without a byte order mark",
		peer: "error",
	},
	{
		name: "UTF-16 with its mark", files: one("\xff\xfe" + utf16(listA, true)),
		want: "[UTF-16] 10-a.conflist: the file is in UTF-16, and JSON is UTF-8; save it as UTF-8 without a byte order mark",
		peer: "error",
	},
	{
		name: "UTF-16 with its mark, high bytes first", files: one("\xfe\xff" + utf16(listA, false)),
		want: "[UTF-16] 10-a.conflist: the file is in UTF-16, and JSON is UTF-8; save it as UTF-8 without a byte order mark",
		peer: "error",
	},
	{
		name: "UTF-16 without a mark", files: one(utf16(listA, true)),
		want: "[UTF-16] 10-a.conflist: the file is in UTF-16 without a byte order mark, and JSON is UTF-8; save it as UTF-8 without a byte order mark",
		peer: "error",
	},
	{
		name: "UTF-16 without a mark, high bytes first", files: one(utf16(listA, false)),
		want: "[UTF-16] 10-a.conflist: the file is in UTF-16 without a byte order mark, and JSON is UTF-8; save it as UTF-8 without a byte order mark",
		peer: "error",
	},
	{
		name: "UTF-32", files: one("\xff\xfe\x00\x00{\x00\x00\x00"),
		want: "[UTF-32] 10-a.conflist: the file is in UTF-32, and JSON is UTF-8; save it as UTF-8 without a byte order mark",
		peer: "error",
	},
	{
		name: "NUL bytes", files: one(strings.Repeat("\x00", 4096)),
		want: "[NUL bytes] 10-a.conflist: there are only NUL bytes in the file: room was made for it, and it was not written; write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "NUL bytes behind half of it", files: one(listA[:40] + strings.Repeat("\x00", 40)),
		want: "[NUL bytes] 10-a.conflist:1:41: from here on there are NUL bytes: it was not written to its end, or is no text; write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "garbage", files: one("\x7fELF\x02\x01\x01\xff\xfe"),
		want: `[not JSON] 10-a.conflist:1:1: this is not JSON: invalid character '\x7f' looking for beginning of value, near "\x7fELF\x02\x01\x01\x…"; correct it here or before it`,
		peer: "error",
	},
	{
		name: "half a file", files: one(listA[:len(listA)/2]),
		want: "[incomplete] 10-a.conflist:1:60: the file ends in the middle of the string that begins in line 1; add what is missing, or write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "half a character", files: one("{\"name\":\"ä"[:10]),
		want: "[incomplete] 10-a.conflist:1:11: the file ends in the middle of the string that begins in line 1; add what is missing, or write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "a bracket that was forgotten", files: one("{\n \"name\": \"a}]\\\"\",\n \"plugins\": [\n  {\"type\": \"x\"}\n \n"),
		want: "[incomplete] 10-a.conflist:6:1: the file ends in the middle: the [ of line 3 and 1 bracket around it are not closed; add what is missing, or write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "half an object in several", files: one(listA[:strings.LastIndex(listA, ":")+1]),
		want: "[incomplete] 10-a.conflist:1:112: the file ends in the middle: the { of line 1 and 3 brackets around it are not closed; add what is missing, or write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "half a word", files: one("tru"),
		want: "[incomplete] 10-a.conflist:1:4: the file ends in the middle; add what is missing, or write it under another name and rename it when it is complete",
		peer: "error",
	},
	{
		name: "a bracket that was forgotten in the middle", files: one("{\n \"name\": \"a\",\n \"plugins\": [\n  {\"type\": \"x\", \"ipam\": {\"type\": \"y\"}\n ]\n}\n"),
		want: "[not JSON] 10-a.conflist:5:2: there is a ], and the { of line 4 is not closed; put a } before it",
		peer: "error",
	},
	{
		name: "the other bracket that was forgotten", files: one("{\"plugins\": [{\"type\": \"x\"}}"),
		want: "[not JSON] 10-a.conflist:1:27: there is a }, and the [ of line 1 is not closed; put a ] before it",
		peer: "error",
	},
	{
		name: "trailing comma in an object", files: one("{\n\t\"name\": \"a\",\n\t\"plugins\": [{\"type\": \"x\",\n\t}]\n}\n"),
		want: "[trailing comma] 10-a.conflist:3:26: there is a comma before '}'; remove the comma",
		peer: "error",
	},
	{
		name: "trailing comma in an array", files: one("{\"name\": \"a\", \"plugins\": [{\"type\": \"x\"} , ]}"),
		want: "[trailing comma] 10-a.conflist:1:41: there is a comma before ']'; remove the comma",
		peer: "error",
	},
	{
		name: "no comma", files: one("{\r\n  \"name\": \"a\"\r\n  \"plugins\": []\r\n}"),
		want: `[missing comma] 10-a.conflist:3:3: there is no comma before "plugins"; put a comma before it`,
		peer: "error",
	},
	{
		name: "no comma in an array", files: one(`{"name":"a","plugins":[{"type":"x"} {"type":"y"}]}`),
		want: `[missing comma] 10-a.conflist:1:37: there is no comma before {"type"; put a comma before it`,
		peer: "error",
	},
	{
		name: "comment in two slashes", files: one("{\n  // the network\n  \"name\": \"a\"}"),
		want: "[comment] 10-a.conflist:2:3: there is a comment, and JSON has none; remove the comment",
		peer: "error",
	},
	{
		name: "comment in a slash and a star", files: one("{\"name\": /* the network */ \"a\"}"),
		want: "[comment] 10-a.conflist:1:10: there is a comment, and JSON has none; remove the comment",
		peer: "error",
	},
	{
		name: "comment in a hash", files: one("# the network\n{}"),
		want: "[comment] 10-a.conflist:1:1: there is a comment, and JSON has none; remove the comment",
		peer: "error",
	},
	{
		name: "comment behind it", files: one(listA + " // it"),
		want: "[comment] 10-a.conflist:1:121: there is a comment, and JSON has none; remove the comment",
		peer: "error",
	},
	{
		name: "single quotes", files: one("{'name': 'a'}"),
		want: `[wrong quotes] 10-a.conflist:1:2: '\'' does not begin a string; use "`,
		peer: "error",
	},
	{
		name: "typographic quotes", files: one("{“name”: “a”}"),
		want: `[wrong quotes] 10-a.conflist:1:2: '“' does not begin a string; use "`,
		peer: "error",
	},
	{
		name: "a typographic quote behind characters of many bytes", files: one("{\"näme€𝄞\":\t“a”}"),
		want: `[wrong quotes] 10-a.conflist:1:12: '“' does not begin a string; use "`,
		peer: "error",
	},
	{
		name: "key without quotes", files: one(`{name: "a"}`),
		want: `[unquoted key] 10-a.conflist:1:2: the key "name" has no quotes; put it in "`,
		peer: "error",
	},
	{
		name: "a line that breaks in a string", files: one("{\"name\": \"a\n\"}"),
		want: `[control character in a string] 10-a.conflist:1:12: there is a raw '\n' inside a string; close the quotes before it, or write it as \n, \t or \u00XX`,
		peer: "error",
	},
	{
		name: "a tab in a string", files: one("{\"name\": \"a\tb\"}"),
		want: `[control character in a string] 10-a.conflist:1:12: there is a raw '\t' inside a string; close the quotes before it, or write it as \n, \t or \u00XX`,
		peer: "error",
	},
	{
		name: "a no-break space", files: one("{\n\u00a0\u00a0\"name\": \"a\"}"),
		want: "[not JSON] 10-a.conflist:2:1: there is a no-break space (U+00A0), and JSON has plain blanks only; write a plain blank in its place",
		peer: "error",
	},
	{
		name: "a wide blank", files: one("{\u3000\"name\": \"a\"}"),
		want: "[not JSON] 10-a.conflist:1:2: there is another blank (U+3000), and JSON has plain blanks only; write a plain blank in its place",
		peer: "error",
	},
	{
		name: "a character that nobody sees", files: one(listA + "\n\u200b"),
		want: "[not JSON] 10-a.conflist:2:1: there is an invisible character (U+200B), and JSON has plain blanks only; remove it",
		peer: "error",
	},
	{
		name: "a letter of many bytes", files: one(`{"name": é}`),
		want: `[not JSON] 10-a.conflist:1:10: this is not JSON: invalid character 'é' looking for beginning of value, near "é}"; correct it here or before it`,
		peer: "error",
	},
	{
		name: "a letter of many bytes that is no UTF-8", files: one("{\"name\": \xe9}"),
		want: `[not JSON] 10-a.conflist:1:10: this is not JSON: invalid character '\xe9' looking for beginning of value, near "\xe9}"; correct it here or before it`,
		peer: "error",
	},
	{
		name: "an escape that is none", files: one(`{"name": "a\x"}`),
		want: `[not JSON] 10-a.conflist:1:13: this is not JSON: invalid character 'x' in string escape code, near x"}; correct it here or before it`,
		peer: "error",
	},
	{
		name: "YAML", files: one("---\nname: a\n"),
		want: "[YAML] 10-a.conflist:1:1: this is YAML; write it as JSON",
		peer: "error",
	},
	{
		name: "YAML behind a comment", files: oneConf("# the network\n\ncniVersion: 0.3.1\ntype: x\n"),
		want: "[YAML] 10-a.conf:1:1: this is YAML; write it as JSON",
		peer: "error",
	},
	{
		name: "two values", files: one(listA + "\n" + listB),
		want: `[more than one value] 10-a.conflist:2:1: something follows the end of the JSON: {"cniVersion"; remove what follows the closing }`,
		peer: "error",
	},
	{
		name: "a bracket too many", files: one(listA + "\n}\n"),
		want: `[more than one value] 10-a.conflist:2:1: something follows the end of the JSON: "}"; remove what follows the closing }`,
		peer: "error",
	},
	{
		name: "two arrays", files: one("[] []"),
		want: `[more than one value] 10-a.conflist:1:4: something follows the end of the JSON: "[]"; remove what follows the closing ]`,
		peer: "error",
	},
	{
		name: "two numbers", files: one("1 2"),
		want: `[more than one value] 10-a.conflist:1:3: something follows the end of the JSON: "2"; keep one object only`,
		peer: "error",
	},
	{
		name: "a template that was not filled in", files: one(`{"name":"a","mtu":__CNI_MTU__}`),
		want: `[not JSON] 10-a.conflist:1:19: this is not JSON: invalid character '_' looking for beginning of value, near "__CNI_MTU__}"; correct it here or before it`,
		peer: "error",
	},
	{
		name: "an array", files: one("[" + listA + "]"),
		want: "[not an object] 10-a.conflist:1:1: this is an array, and a network is an object; write it as {\"cniVersion\": …, \"name\": …, \"plugins\": […]}",
		peer: "error",
	},
	{
		name: "a number in a subdirectory", files: files("10-a.conflist", listA, "a/1.conf", "42"),
		want: "[not an object] a/1.conf:1:1: this is a number, and a plugin is an object; write it as {\"type\": …}",
		peer: "error",
	},
	{
		name: "null", files: oneConf("null"),
		want: "[not an object] 10-a.conf:1:1: this is null, and a network is an object; write it as {\"cniVersion\": …, \"name\": …, \"type\": …}",
		peer: "error",
	},
	{
		name: "a string", files: oneConf(`"a"`),
		want: "[not an object] 10-a.conf:1:1: this is a string, and a network is an object; write it as {\"cniVersion\": …, \"name\": …, \"type\": …}",
		peer: "error",
	},
	{
		name: "nested without end", files: one(strings.Repeat(`{"name":`, 20000)),
		want: "[nested too deeply] 10-a.conflist:1:80001: objects and arrays are nested about 10000 deep, or deeper; make it simpler",
		peer: "error",
	},
	{
		name: "nested 20000 deep", files: one(`{"name":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}"),
		want: "[nested too deeply] 10-a.conflist:1:10008: objects and arrays are nested about 10000 deep, or deeper; make it simpler",
		peer: "error",
	},
	{
		name: "nested to the limit in a .conf", files: oneConf(`{"name":"a","type":"x","deep":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + "}"),
		want: "[nested too deeply] 10-a.conf: objects and arrays are nested about 10000 deep, or deeper; make it simpler",
		peer: "error",
	},
	{
		name: "terminal escapes", files: one("{\"name\": \x1b[2J}"),
		want: `[not JSON] 10-a.conflist:1:10: this is not JSON: invalid character '\x1b' looking for beginning of value, near "\x1b[2J}"; correct it here or before it`,
		peer: "error",
	},

	// What it says.
	{
		name: "a list in a .conf", files: oneConf(listA),
		want: "[list in a .conf] 10-a.conf:1:34: this is a list of plugins, and a .conf file holds one plugin; rename it to 10-a.conflist",
		peer: "error",
	},
	{
		name: "a list in a .json", files: files("10-a.json", "{\n \"name\": \"a\",\n \"plugins\": []}"),
		want: "[list in a .conf] 10-a.json:3:2: this is a list of plugins, and a .json file holds one plugin; rename it to 10-a.conflist",
		peer: "error",
	},
	{
		name: "a plugin in a .conflist", files: one(plainC),
		want: `[single plugin in a .conflist] 10-a.conflist:1:34: this is one plugin, and a .conflist file holds a list of plugins; rename it to 10-a.conf, or put the plugin in "plugins": [ ]`,
		peer: "error",
	},
	{
		name: "a list and a plugin in a .conf", files: oneConf(`{"name":"a","type":"x","plugins":[{"type":"y"}]}`),
		want: "uses a( x)",
		peer: "uses a( x)",
	},
	{
		name: "no name", files: one(`{"cniVersion":"1.0.0","plugins":[{"type":"x"}]}`),
		want: `[no name] 10-a.conflist:1:1: the network has no name; add a "name"`,
		peer: "error",
	},
	{
		name: "the name in capitals", files: one(`{"Name":"a","plugins":[{"type":"x"}]}`),
		want: `[no name] 10-a.conflist:1:1: the network has no name; add a "name": "Name" is another key`,
		peer: "error",
	},
	{
		name: "the name in capitals in a .conf", files: oneConf(`{"Name":"a","TYPE":"x"}`),
		want: "uses a( x)",
		peer: "uses a( x)",
	},
	{
		name: "an empty name", files: one(`{"name":"","plugins":[{"type":"x"}]}`),
		want: `[no name] 10-a.conflist:1:2: the network has no name; add a "name"`,
		peer: "uses ( x)",
	},
	{
		name: "no name in a .conf", files: oneConf(`{"type":"x"}`),
		want: `[no name] 10-a.conf:1:1: the network has no name; add a "name"`,
		peer: "uses ( x)",
	},
	{
		name: "a name that is a number", files: one("{\n  \"name\": 5,\n  \"plugins\": []}"),
		want: "[wrong JSON type] 10-a.conflist:2:3: name is a number; make it a string",
		peer: "error",
	},
	{
		name: "a name that is a number in a .conf", files: oneConf("{\n  \"type\": \"x\", \"name\": 5}"),
		want: `[wrong JSON type] 10-a.conf:2:16: "name" has a number, and a string belongs there; make it a string`,
		peer: "error",
	},
	{
		name: "a name with a path", files: one(`{"name":"../a","plugins":[{"type":"x"}]}`),
		want: `[bad name] 10-a.conflist:1:2: the network's name "../a" is a path; use letters, digits, _ . and -, beginning with a letter or a digit`,
		peer: "uses ../a( x)",
	},
	{
		name: "a name with blanks", files: one("{\"name\":\"my network\\n\",\"plugins\":[{\"type\":\"x\"}]}"),
		want: `[bad name] 10-a.conflist:1:2: the network's name "my network\n" has characters that CNI does not allow; use letters, digits, _ . and -, beginning with a letter or a digit`,
		peer: "uses my network\n( x)",
	},
	{
		name: "a name that is too long", files: one(`{"name":"` + strings.Repeat("a", 256) + `","plugins":[{"type":"x"}]}`),
		want: "[bad name] 10-a.conflist:1:2: the network's name has 256 characters; use at most 255",
		peer: "error",
	},
	{
		name: "a name that is no UTF-8", files: one("{\"name\":\"a\xff\",\"plugins\":[{\"type\":\"x\"}]}"),
		want: `[bad name] 10-a.conflist:1:2: the network's name "a�" has characters that CNI does not allow; use letters, digits, _ . and -, beginning with a letter or a digit`,
		peer: "uses a�( x)",
	},
	{
		name: "a name that is there twice", files: one("{\"name\":\"x y\",\"plugins\":[{\"type\":\"x\"}],\n\"name\":\"a\"}"),
		want: "uses a( x)",
		peer: "uses a( x)",
	},
	{
		name: "no cniVersion", files: one(`{"name":"a","plugins":[{"type":"x"}]}`),
		want: "uses a( x)",
		peer: "uses a( x)",
	},
	{
		name: "a cniVersion that is a number", files: one(`{"name":"a","cniVersion":1.0,"plugins":[{"type":"x"}]}`),
		want: `[wrong JSON type] 10-a.conflist:1:13: cniVersion is a number; make it a string, as "1.1.0"`,
		peer: "error",
	},
	{
		name: "a cniVersion that is none", files: one(`{"name":"a","cniVersion":"v1","plugins":[{"type":"x"}]}`),
		want: `[unknown cniVersion] 10-a.conflist:1:13: cniVersion "v1" is no version; use one of 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0`,
		peer: "uses a(v1 x)",
	},
	{
		name: "a cniVersion that is not there", files: one(`{"name":"a","cniVersion":"0.9.0","plugins":[{"type":"x"}]}`),
		want: `[unknown cniVersion] 10-a.conflist:1:13: there is no cniVersion "0.9.0"; use one of 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0`,
		peer: "uses a(0.9.0 x)",
	},
	{
		name: "a cniVersion in short", files: one(`{"name":"a","cniVersion":"1.0","plugins":[{"type":"x"}]}`),
		want: `[unknown cniVersion] 10-a.conflist:1:13: cniVersion "1.0" is not written in full, and plugins compare it as text; write 1.0.0`,
		peer: "uses a(1.0 x)",
	},
	{
		name: "a newer cniVersion", files: one(`{"name":"a","cniVersion":"1.2.0","plugins":[{"type":"x"}]}`),
		want: `[cniVersion too new] 10-a.conflist:1:13: cniVersion "1.2.0" is newer than 1.1.0, the newest that is understood here; use one of 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0, or list older ones in "cniVersions"`,
		peer: "uses a(1.2.0 x)",
	},
	{
		name: "a newer cniVersion in a .conf", files: oneConf(`{"name":"a","cniVersion":"9.9.9","type":"x"}`),
		want: `[cniVersion too new] 10-a.conf:1:13: cniVersion "9.9.9" is newer than 1.1.0, the newest that is understood here; use one of 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0, or list older ones in "cniVersions"`,
		peer: "uses a(9.9.9 x)",
	},
	{
		name: "cniVersions with a newer one", files: one(`{"name":"a","cniVersion":"1.2.0","cniVersions":["0.4.0","1.2.0","1.1.0"],"plugins":[{"type":"x"}]}`),
		want: "uses a(1.1.0 x)",
		peer: "uses a(1.1.0 x)",
	},
	{
		name: "cniVersions with newer ones only", files: one(`{"name":"a","cniVersions":["1.2.0"],"plugins":[{"type":"x"}]}`),
		want: "[cniVersion too new] 10-a.conflist:1:13: all cniVersions are newer than 1.1.0, the newest that is understood here; add an older one",
		peer: "uses a( x)",
	},
	{
		name: "cniVersions that is no array", files: one(`{"name":"a","cniVersions":"1.0.0","plugins":[{"type":"x"}]}`),
		want: `[wrong JSON type] 10-a.conflist:1:13: cniVersions is "1.0.0"; make it an array of strings`,
		peer: "error",
	},
	{
		name: "cniVersions with a number", files: one("{\"name\":\"a\",\"cniVersions\":[\"1.0.0\",\n 1],\"plugins\":[{\"type\":\"x\"}]}"),
		want: "[wrong JSON type] 10-a.conflist:2:2: element 2 of cniVersions is not a string; put it in quotes",
		peer: "error",
	},
	{
		name: "cniVersions with what is none", files: one(`{"name":"a","cniVersions":["one"],"plugins":[{"type":"x"}]}`),
		want: `[unknown cniVersion] 10-a.conflist:1:28: "one" in cniVersions is no version; write it as 1.1.0`,
		peer: "error",
	},
	{
		name: "disableCheck in quotes", files: one(`{"name":"a","disableCheck":"True","plugins":[{"type":"x"}]}`),
		want: "uses a( x)",
		peer: "uses a( x)",
	},
	{
		name: "disableCheck that is neither", files: one(`{"name":"a","disableCheck":"yes","plugins":[{"type":"x"}]}`),
		want: `[wrong JSON type] 10-a.conflist:1:13: disableCheck is "yes"; make it true or false`,
		peer: "error",
	},
	{
		name: "disableGC that is a number", files: one(`{"name":"a","disableGC":1,"plugins":[{"type":"x"}]}`),
		want: "[wrong JSON type] 10-a.conflist:1:13: disableGC is a number; make it true or false",
		peer: "error",
	},
	{
		name: "disableGC that is null", files: one(`{"name":"a","disableGC":null,"plugins":[{"type":"x"}]}`),
		want: "[wrong JSON type] 10-a.conflist:1:13: disableGC is null; make it true or false",
		peer: "error",
	},
	{
		name: "inlined only, and none", files: one(`{"name":"a","loadOnlyInlinedPlugins":true}`),
		want: `[no plugins] 10-a.conflist:1:13: loadOnlyInlinedPlugins is true, and there are no plugins; add "plugins"`,
		peer: "error",
	},
	{
		name: "no plugins", files: one(`{"name":"a"}`),
		want: `[no plugins] 10-a.conflist:1:1: there are no plugins; add "plugins"`,
		peer: "error",
	},
	{
		name: "plugins in capitals", files: one(`{"name":"a","Plugins":[{"type":"x"}]}`),
		want: `[no plugins] 10-a.conflist:1:1: there are no plugins; add "plugins": "Plugins" is another key`,
		peer: "error",
	},
	{
		name: "an empty list", files: one(`{"name":"a","plugins":[]}`),
		want: "[no plugins] 10-a.conflist:1:13: the list of plugins is empty; add a plugin",
		peer: "error",
	},
	{
		name: "plugins is an object", files: one("{\"name\":\"a\",\n\"plugins\":{\"type\":\"x\"}}"),
		want: "[plugins is not a list] 10-a.conflist:2:1: plugins is an object; make it an array, also of one plugin",
		peer: "error",
	},
	{
		name: "plugins is null", files: one(`{"name":"a","plugins":null}`),
		want: "[plugins is not a list] 10-a.conflist:1:13: plugins is null; make it an array, also of one plugin",
		peer: "error",
	},
	{
		name: "a plugin that is a string", files: one(`{"name":"a","plugins":[{"type":"x"}, "portmap"]}`),
		want: `[wrong JSON type] 10-a.conflist:1:38: plugin 2 is a string, and a plugin is an object; write it as {"type": …}`,
		peer: "error",
	},
	{
		name: "a plugin that is null", files: one(`{"name":"a","plugins":[null]}`),
		want: `[wrong JSON type] 10-a.conflist:1:24: plugin 1 is null, and a plugin is an object; write it as {"type": …}`,
		peer: "error",
	},
	{
		name: "a plugin without a type", files: one("{\"name\":\"a\",\"plugins\":[{\"type\":\"x\"},\n\t{\"typ\":\"y\"}]}"),
		want: `[no type] 10-a.conflist:2:2: plugin 2 has no type; add a "type", the name of the plugin's binary`,
		peer: "error",
	},
	{
		name: "a type that is a number", files: one("{\"name\":\"a\",\"plugins\":[{\"type\":\"x\"},\n\t{\"mtu\":1, \"type\":2}]}"),
		want: `[wrong JSON type] 10-a.conflist:2:12: "type" has a number, and a string belongs there; make it a string`,
		peer: "error",
	},
	{
		name: "ipam is a string", files: one("{\"name\":\"a\",\"plugins\":[\n{\"type\":\"x\",\"ipam\":\"host-local\"}]}"),
		want: `[wrong JSON type] 10-a.conflist:2:13: "ipam" has a string, and an object belongs there; make it an object`,
		peer: "error",
	},
	{
		name: "ipam in a .conf is an array", files: oneConf("{\"name\":\"a\",\"type\":\"x\",\n\"ipam\":[]}"),
		want: `[wrong JSON type] 10-a.conf:2:1: "ipam" has an array, and an object belongs there; make it an object`,
		peer: "error",
	},
	{
		name: "a capability that is a string", files: one("{\"name\":\"a\",\"plugins\":[{\"type\":\"x\",\n\"capabilities\":{\"mac\":true,\n\"bandwidth\":\"yes\"}}]}"),
		want: `[wrong JSON type] 10-a.conflist:2:1: "capabilities" has a string, and true or false belongs there; make it true or false`,
		peer: "error",
	},
	{
		name: "a nameserver that is a number", files: one("{\"name\":\"a\",\"plugins\":[{\"type\":\"x\",\n\"dns\":{\"nameservers\":[\"8.8.8.8\",\n1]}}]}"),
		want: `[wrong JSON type] 10-a.conflist:2:8: "dns.nameservers" has a number, and a string belongs there; make it a string`,
		peer: "error",
	},
	{
		name: "a type with a path", files: one("{\"name\":\"a\",\"plugins\":[{\"type\":\"x\"},\n{\"type\":\"/opt/cni/bin/bridge\"}]}"),
		want: `[bad type] 10-a.conflist:2:2: the plugin's type "/opt/cni/bin/bridge" is a path; write the name of the plugin's binary, without its directory`,
		peer: "uses a( x /opt/cni/bin/bridge)",
	},
	{
		name: "a type that is a directory", files: oneConf(`{"name":"a","type":".."}`),
		want: `[bad type] 10-a.conf:1:13: the plugin's type ".." is a path; write the name of the plugin's binary, without its directory`,
		peer: "uses a( ..)",
	},
	{
		name: "a type with a line break", files: oneConf(`{"name":"a","type":"x\ny"}`),
		want: `[bad type] 10-a.conf:1:13: the plugin's type "x\ny" is no name of a file; write the name of the plugin's binary, without its directory`,
		peer: "uses a( x\ny)",
	},
	{
		name: "a type with a blank", files: oneConf(`{"name":"a","type":"x y"}`),
		want: "uses a( x y)",
		peer: "uses a( x y)",
	},
	{
		name: "a number that is too large", files: one("{\"name\":\"a\",\"plugins\":[{\"type\":\"x\",\n \"mtu\":1e400}]}"),
		want: "[number out of range] 10-a.conflist:2:8: the number 1e400 is too large; make it smaller",
		peer: "error",
	},
	{
		name: "a number that is too large in a .conf", files: oneConf("{\"name\":\"a\",\"type\":\"x\",\n \"mtu\":1e400}"),
		want: "[number out of range] 10-a.conf:2:8: the number 1e400 is too large; make it smaller",
		peer: "error",
	},
	{
		name: "large numbers", files: one(`{"name":"a","plugins":[{"type":"x","n":9007199254740993,"m":1e21}]}`),
		want: "uses a( x)",
		peer: "uses a( x)",
	},
	{
		name: "characters of HTML", files: files("10-a.conflist", `{"name":"a","plugins":[{"type":"x","s":"<&>\u2028é"}]}`, "a/1.conf", `{"type":"y","s":"<&>é"}`),
		want: "uses a( x y)",
		peer: "uses a( x y)",
	},
}

func manyNetworks(n int) (networks []string) {
	for i := range n {
		networks = append(networks, fmt.Sprintf("n%d( x)", i))
	}
	return networks
}

func manyFiles(t *testing.T, dir string, n int) {
	for i := range n {
		content := fmt.Sprintf(`{"name":"n%d","type":"x"}`, i)
		try(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.conf", i)), []byte(content), 0o644))
	}
}
