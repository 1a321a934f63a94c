package cni

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// changeCases are the changes of CN4, and those that are none (CN1, CN2).
var changeCases = []changeCase{
	// Files made and written.
	{name: "file made in an empty directory", lay: func(d *disk) { d.mkdir("") }, first: nothing, steps: []change{
		to("a", func(d *disk) { d.write("10-a.conflist", list("a")) }),
	}},
	{name: "file made before the one in use", steps: []change{
		to("b", func(d *disk) { d.write("00-b.conflist", list("b")) }),
	}},
	{name: "file made behind the one in use", steps: []change{
		back(func(d *disk) { d.write("20-b.conflist", list("b")) }),
		back(func(d *disk) { d.write("20-b.conflist", list("other")) }),
		back(func(d *disk) { d.write("20-b.conflist", broken) }),
		back(func(d *disk) { d.remove("20-b.conflist") }),
	}},
	{name: "each extension", steps: []change{
		to("b", func(d *disk) { d.write("03-b.json", `{"cniVersion": "1.0.0", "name": "b", "type": "bridge"}`) }),
		to("c", func(d *disk) { d.write("02-c.conf", `{"cniVersion": "1.0.0", "name": "c", "type": "bridge"}`) }),
		to("d", func(d *disk) { d.write("01-d.conflist", list("d")) }),
	}},
	{name: "rewritten in place, longer", steps: []change{
		to("a-much-longer-name", func(d *disk) { d.write("10-a.conflist", list("a-much-longer-name")) }),
	}},
	{name: "rewritten in place, shorter", lay: func(d *disk) { d.dir("", "longer") }, first: "longer", steps: []change{
		to("b", func(d *disk) { d.write("10-a.conflist", list("b")) }),
	}},
	{name: "rewritten in place, same size", steps: []change{
		to("b", func(d *disk) { d.write("10-a.conflist", list("b")) }),
	}},
	{name: "rewritten in place, same size and time", steps: []change{
		to("b", func(d *disk) {
			info, err := d.fs.Stat(d.at("10-a.conflist"))
			d.must(err)
			d.write("10-a.conflist", list("b"))
			d.must(d.fs.Chtimes(d.at("10-a.conflist"), info.ModTime(), info.ModTime()))
		}),
	}},
	{name: "rewritten in place with another plugin", steps: []change{
		to("a", func(d *disk) { d.write("10-a.conflist", list("a", "ptp")) }),
	}},
	{name: "half a file, then appended to", steps: []change{
		spoils(func(d *disk) { d.write("10-a.conflist", list("b")[:30]) }),
		to("b", func(d *disk) { d.append("10-a.conflist", list("b")[30:]) }),
	}},
	{name: "truncated, then written at once", steps: []change{
		to("b", func(d *disk) { d.resize("10-a.conflist", 0); d.append("10-a.conflist", list("b")) }),
	}},
	{name: "truncated, and written later", steps: []change{
		spoils(func(d *disk) { d.resize("10-a.conflist", 0) }),
		to("b", func(d *disk) { d.append("10-a.conflist", list("b")) }),
	}},
	{name: "grown beyond the limit and back", steps: []change{
		spoils(func(d *disk) { d.append("10-a.conflist", strings.Repeat(" ", 1<<20)) }),
		back(func(d *disk) { d.write("10-a.conflist", list("a")) }),
	}},
	{name: "broken and repaired", steps: []change{
		spoils(func(d *disk) { d.write("10-a.conflist", broken) }),
		back(func(d *disk) { d.write("10-a.conflist", list("a")) }),
	}},
	{name: "name in capitals, then in small letters", lay: func(d *disk) { d.mkdir("") }, first: nothing, steps: []change{
		{state: NotReady, quiet: true, do: func(d *disk) { d.write("10-a.CONFLIST", list("a")) }},
		to("a", func(d *disk) { d.move("10-a.CONFLIST", "10-a.conflist") }),
	}},

	// Files renamed and removed.
	{name: "renamed in from the same directory", steps: []change{
		quiet(func(d *disk) { d.write("00-b.tmp", list("b")) }),
		to("b", func(d *disk) { d.move("00-b.tmp", "00-b.conflist") }),
	}},
	{name: "renamed in from another directory", steps: []change{
		to("b", func(d *disk) { d.write("../b", list("b")); d.move("../b", "00-b.conflist") }),
	}},
	{name: "renamed over from the same directory", steps: []change{
		to("b", func(d *disk) { d.put("10-a.conflist", list("b")) }),
		to("c", func(d *disk) { d.put("10-a.conflist", list("c")) }),
	}},
	{name: "renamed over from another directory", steps: []change{
		to("b", func(d *disk) { d.write("../b", list("b")); d.move("../b", "10-a.conflist") }),
	}},
	{name: "renamed out", steps: []change{
		gone(func(d *disk) { d.move("10-a.conflist", "../10-a.conflist") }),
		back(func(d *disk) { d.move("../10-a.conflist", "10-a.conflist") }),
	}},
	{name: "renamed behind another one", lay: func(d *disk) { d.dir("", "a"); d.write("20-b.conflist", list("b")) }, steps: []change{
		to("b", func(d *disk) { d.move("10-a.conflist", "30-a.conflist") }),
	}},
	{name: "renamed to a name that does not count", steps: []change{
		gone(func(d *disk) { d.move("10-a.conflist", "10-a.conflist.bak") }),
	}},
	{name: "renamed onto the one in use", lay: func(d *disk) { d.dir("", "a"); d.write("20-b.conflist", list("b")) }, steps: []change{
		to("b", func(d *disk) { d.move("20-b.conflist", "10-a.conflist") }),
	}},
	{name: "two files exchanged", lay: func(d *disk) { d.dir("", "a"); d.write("20-b.conflist", list("b")) }, steps: []change{
		to("b", func(d *disk) {
			d.move("10-a.conflist", "x")
			d.move("20-b.conflist", "10-a.conflist")
			d.move("x", "20-b.conflist")
		}),
	}},
	{name: "unlinked", steps: []change{
		gone(func(d *disk) { d.remove("10-a.conflist") }),
		back(func(d *disk) { d.write("10-a.conflist", list("a")) }),
	}},
	{name: "unlinked, and the next one comes first", lay: func(d *disk) { d.dir("", "a"); d.write("20-b.conflist", list("b")) }, steps: []change{
		to("b", func(d *disk) { d.remove("10-a.conflist") }),
	}},
	{name: "unlinked and made again at once", steps: []change{
		to("b", func(d *disk) { d.remove("10-a.conflist"); d.write("10-a.conflist", list("b")) }),
	}},
	{name: "unlinked and made again as it was", steps: []change{
		back(func(d *disk) { d.remove("10-a.conflist"); d.write("10-a.conflist", list("a")) }),
	}},
	{name: "hard link made", on: links, steps: []change{
		to("b", func(d *disk) { d.write("../b", list("b")); d.must(d.link(d.at("../b"), d.at("00-b.conflist"))) }),
	}},
	{name: "hard link written to by its other name", on: links, lay: func(d *disk) {
		d.mkdir("")
		d.write("../a", list("a"))
		d.must(d.link(d.at("../a"), d.at("10-a.conflist")))
	}, steps: []change{
		to("b", func(d *disk) { d.write("../a", list("b")) }),
	}},

	// Symbolic links.
	{name: "link made", steps: []change{
		to("b", func(d *disk) { d.write("../b", list("b")); d.symlink("../b", "00-b.conflist") }),
	}},
	{name: "link swapped by a rename", lay: func(d *disk) { linked(d) }, steps: []change{
		to("b", func(d *disk) { d.repoint("../b", "10-a.conflist") }),
	}},
	{name: "link swapped by unlink and link", lay: func(d *disk) { linked(d) }, steps: []change{
		to("b", func(d *disk) { d.remove("10-a.conflist"); d.symlink("../b", "10-a.conflist") }),
	}},
	{name: "link's target rewritten", lay: func(d *disk) { linked(d) }, steps: []change{
		to("c", func(d *disk) { d.write("../a", list("c")) }),
	}},
	{name: "link's target renamed over", lay: func(d *disk) { linked(d) }, steps: []change{
		to("b", func(d *disk) { d.move("../b", "../a") }),
	}},
	{name: "link's target removed and made again", lay: func(d *disk) { linked(d) }, steps: []change{
		spoils(func(d *disk) { d.remove("../a") }),
		to("b", func(d *disk) { d.move("../b", "../a") }),
	}},
	{name: "link in the middle swapped", lay: func(d *disk) { linked(d); d.symlink("a", "../middle"); d.repoint("../middle", "10-a.conflist") }, steps: []change{
		to("b", func(d *disk) { d.repoint("b", "../middle") }),
	}},
	{name: "link turned into a file and back", lay: func(d *disk) { linked(d) }, steps: []change{
		to("c", func(d *disk) { d.put("10-a.conflist", list("c")) }),
		to("b", func(d *disk) { d.repoint("../b", "10-a.conflist") }),
	}},
	{name: "link swapped to equal bytes", lay: func(d *disk) { linked(d); d.write("../same", list("a")) }, steps: []change{
		quiet(func(d *disk) { d.repoint("../same", "10-a.conflist") }),
	}},
	{name: "ConfigMap set up first", lay: func(d *disk) { d.mkdir("") }, first: nothing, steps: []change{
		to("a", func(d *disk) { d.volume("a") }),
	}},
	{name: "ConfigMap swapped twice", lay: func(d *disk) { d.mkdir(""); d.volume("a") }, steps: []change{
		to("b", func(d *disk) { d.swap("..2026_11_30_1", "..2026_11_30_2", "b") }),
		to("c", func(d *disk) { d.swap("..2026_11_30_2", "..2026_11_30_3", "c") }),
	}},
	{name: "ConfigMap swapped to equal bytes", lay: func(d *disk) { d.mkdir(""); d.volume("a") }, steps: []change{
		quiet(func(d *disk) { d.swap("..2026_11_30_1", "..2026_11_30_2", "a") }),
	}},
	{name: "ConfigMap gets another key", lay: func(d *disk) { d.mkdir(""); d.volume("a") }, steps: []change{
		to("b", func(d *disk) {
			d.write("..data/00-b.conflist", list("b"))
			d.symlink("..data/00-b.conflist", "00-b.conflist")
		}),
		to("a", func(d *disk) { d.remove("00-b.conflist") }),
	}},

	// The directory.
	{name: "directory made", lay: func(*disk) {}, first: nothing, steps: []change{
		to("a", func(d *disk) { d.dir("", "a") }),
	}},
	{name: "directory removed and made again", steps: []change{
		gone(func(d *disk) { d.removeAll("") }),
		to("b", func(d *disk) { d.dir("", "b") }),
	}},
	{name: "directory removed and made again at once", steps: []change{
		to("b", func(d *disk) { d.removeAll(""); d.dir("", "b") }),
		to("c", func(d *disk) { d.write("10-a.conflist", list("c")) }),
	}},
	{name: "directory renamed away and another in its place", steps: []change{
		to("b", func(d *disk) { d.dir("../b", "b"); d.move("", "../a"); d.move("../b", "") }),
		to("c", func(d *disk) { d.write("10-a.conflist", list("c")) }),
	}},
	{name: "directory renamed away and back", steps: []change{
		gone(func(d *disk) { d.move("", "../a") }),
		back(func(d *disk) { d.move("../a", "") }),
	}},
	{name: "directory renamed away and back at once", steps: []change{
		back(func(d *disk) { d.move("", "../a"); d.move("../a", "") }),
	}},
	{name: "directory turned into a file and back", steps: []change{
		gone(func(d *disk) { d.move("", "../a"); d.write("", "text") }),
		back(func(d *disk) { d.remove(""); d.move("../a", "") }),
	}},
	{name: "directory is a link, swapped by a rename", lay: func(d *disk) { linkedDir(d) }, steps: []change{
		to("b", func(d *disk) { d.repoint("b", "") }),
		to("c", func(d *disk) { d.write("../b/10-a.conflist", list("c")) }),
	}},
	{name: "directory is a link, swapped by unlink and link", lay: func(d *disk) { linkedDir(d) }, steps: []change{
		to("b", func(d *disk) { d.remove(""); d.symlink("b", "") }),
	}},
	{name: "directory is a link to nothing, and then to something", lay: func(d *disk) { linkedDir(d); d.repoint("nothing", "") }, first: nothing, steps: []change{
		to("a", func(d *disk) { d.move("../a", "../nothing") }),
	}},
	{name: "directory turned into a link", steps: []change{
		to("b", func(d *disk) { d.dir("../b", "b"); d.move("", "../a"); d.symlink("b", "") }),
	}},
	{name: "parent renamed and another in its place", steps: []change{
		to("b", func(d *disk) {
			d.must(d.fs.MkdirAll(d.top+".b/net.d", 0o755))
			d.dir("../../"+path.Base(d.top)+".b/net.d", "b")
			d.must(d.fs.Rename(d.top, d.top+".a"))
			d.must(d.fs.Rename(d.top+".b", d.top))
		}),
	}},
	{name: "parent renamed away and back", steps: []change{
		gone(func(d *disk) { d.must(d.fs.Rename(d.top, d.top+".a")) }),
		back(func(d *disk) { d.must(d.fs.Rename(d.top+".a", d.top)) }),
	}},
	{name: "mounted over and unmounted", on: mounts, steps: []change{
		to("b", func(d *disk) { d.must(d.mount("", d.at(""))); d.write("10-a.conflist", list("b")) }),
		to("a", func(d *disk) { d.must(d.unmount(d.at(""))) }),
	}},
	{name: "mounted over by nothing and unmounted", on: mounts, steps: []change{
		gone(func(d *disk) { d.must(d.mount("", d.at(""))) }),
		back(func(d *disk) { d.must(d.unmount(d.at(""))) }),
	}},
	{name: "parent mounted over and unmounted", on: mounts, steps: []change{
		to("b", func(d *disk) { d.must(d.mount("", d.top)); d.dir("", "b") }),
		to("a", func(d *disk) { d.must(d.unmount(d.top)) }),
	}},
	{name: "another directory bound over it", on: binds, steps: []change{
		to("b", func(d *disk) { d.dir("../b", "b"); d.must(d.mount(d.at("../b"), d.at(""))) }),
		to("c", func(d *disk) { d.write("../b/10-a.conflist", list("c")) }),
		to("a", func(d *disk) { d.must(d.unmount(d.at(""))) }),
	}},
	{name: "another file bound over one", on: binds, steps: []change{
		to("b", func(d *disk) { d.write("../b", list("b")); d.must(d.mount(d.at("../b"), d.at("10-a.conflist"))) }),
		to("c", func(d *disk) { d.write("../b", list("c")) }),
		to("a", func(d *disk) { d.must(d.unmount(d.at("10-a.conflist"))) }),
	}},
	{name: "bound over itself", on: binds, steps: []change{
		quiet(func(d *disk) { d.must(d.mount(d.at(""), d.at(""))) }),
		to("b", func(d *disk) { d.write("10-a.conflist", list("b")) }),
	}},

	// Sub-directories of CNI 1.1.
	{name: "sub-directory of the network made, its file rewritten and removed", steps: []change{
		to("a", func(d *disk) { d.mkdir("a"); d.write("a/10.conf", `{"type": "ptp"}`) }),
		to("a", func(d *disk) { d.write("a/10.conf", `{"type": "bridge"}`) }),
		spoils(func(d *disk) { d.write("a/10.conf", `{"type": `) }),
		to("a", func(d *disk) { d.remove("a/10.conf") }),
	}},
	{name: "sub-directory removed whole", lay: func(d *disk) { d.dir("", "a"); d.mkdir("a"); d.write("a/10.conf", `{"type": "ptp"}`) }, steps: []change{
		to("a", func(d *disk) { d.removeAll("a") }),
	}},
	{name: "sub-directory a link, swapped", lay: func(d *disk) {
		d.dir("", "a")
		d.mkdir("../one")
		d.write("../one/10.conf", `{"type": "ptp"}`)
		d.mkdir("../two")
		d.write("../two/10.conf", `{"type": "bridge"}`)
	}, steps: []change{
		to("a", func(d *disk) { d.symlink("../one", "a") }),
		to("a", func(d *disk) { d.repoint("../two", "a") }),
		to("a", func(d *disk) { d.write("../two/20.conf", `{"type": "portmap"}`) }),
		to("a", func(d *disk) { d.remove("a") }),
	}},
	{name: "sub-directory of no network", steps: []change{
		back(func(d *disk) { d.mkdir("other"); d.write("other/10.conf", `{"type": "ptp"}`) }),
		back(func(d *disk) { d.write("other/10.conf", "no configuration") }),
		quiet(func(d *disk) { d.write("other/README", "text") }),
		quiet(func(d *disk) { d.mkdir("other/deeper"); d.write("other/deeper/10.conf", `{"type": "ptp"}`) }),
	}},

	// Other things in a file's place.
	{name: "file turned into a directory and back", steps: []change{
		gone(func(d *disk) { d.remove("10-a.conflist"); d.mkdir("10-a.conflist") }),
		to("b", func(d *disk) { d.remove("10-a.conflist"); d.write("10-a.conflist", list("b")) }),
	}},
	{name: "file turned into a FIFO and back", on: links, steps: []change{
		spoils(func(d *disk) { d.mknod(".fifo", fs.ModeNamedPipe); d.move(".fifo", "10-a.conflist") }),
		to("b", func(d *disk) { d.put("10-a.conflist", list("b")) }),
	}},
	{name: "file turned into a link to a directory and back", steps: []change{
		spoils(func(d *disk) { d.repoint(".", "10-a.conflist") }),
		to("b", func(d *disk) { d.put("10-a.conflist", list("b")) }),
	}},

	// What is no change.
	{name: "mode changed", steps: []change{
		quiet(func(d *disk) { d.must(d.fs.Chmod(d.at("10-a.conflist"), 0o600)) }),
		quiet(func(d *disk) { d.must(d.fs.Chmod(d.at(""), 0o700)) }),
	}},
	{name: "unreadable for others, and for all but root", on: root, steps: []change{
		quiet(func(d *disk) { d.must(d.fs.Chmod(d.at("10-a.conflist"), 0)) }),
		quiet(func(d *disk) { d.must(d.fs.Chmod(d.at(""), 0)) }),
		quiet(func(d *disk) { d.must(d.fs.Chmod(d.at(""), 0o755)); d.must(d.fs.Chmod(d.at("10-a.conflist"), 0o644)) }),
	}},
	{name: "owner changed", steps: []change{
		quiet(func(d *disk) { d.must(d.fs.Chown(d.at("10-a.conflist"), owner(), -1)) }),
	}},
	{name: "touched", steps: []change{
		quiet(func(d *disk) { d.must(d.fs.Chtimes(d.at("10-a.conflist"), time.Unix(1, 0), time.Unix(1, 0))) }),
		quiet(func(d *disk) { d.must(d.fs.Chtimes(d.at(""), time.Unix(1, 0), time.Unix(1, 0))) }),
	}},
	{name: "rewritten in place with equal bytes", steps: []change{
		quiet(func(d *disk) { d.write("10-a.conflist", list("a")) }),
	}},
	{name: "renamed over with equal bytes", steps: []change{
		quiet(func(d *disk) { d.put("10-a.conflist", list("a")) }),
	}},
	{name: "dot files", steps: []change{
		quiet(func(d *disk) { d.write(".00-b.conflist", list("b")) }),
		quiet(func(d *disk) { d.write(".00-b.conflist", broken) }),
		quiet(func(d *disk) { d.remove(".00-b.conflist") }),
	}},
	{name: "what editors leave", steps: []change{
		quiet(func(d *disk) { d.write("4913", ""); d.remove("4913") }),
		quiet(func(d *disk) { d.write(".10-a.conflist.swp", "b0VIM"); d.write("10-a.conflist~", broken) }),
		quiet(func(d *disk) { d.symlink("root@node.1234:1", ".#10-a.conflist"); d.write("#10-a.conflist#", broken) }),
		quiet(func(d *disk) { d.write("10-a.conflist.dpkg-new", broken); d.write("10-a.conflist.rpmsave", broken) }),
		quiet(func(d *disk) { d.write("README", "text"); d.write("10-a.conflist.tmp", broken) }),
	}},
	{name: "written by vim", steps: []change{
		to("b", func(d *disk) {
			d.move("10-a.conflist", "10-a.conflist~")
			d.write("10-a.conflist", list("b"))
			d.remove("10-a.conflist~")
		}),
	}},
	{name: "pipes and sockets of other names", on: links, steps: []change{
		quiet(func(d *disk) { d.mknod("agent", fs.ModeNamedPipe) }),
		quiet(func(d *disk) { d.mknod("agent.sock", fs.ModeSocket) }),
	}},
	{name: "directories of other names", steps: []change{
		quiet(func(d *disk) { d.mkdir("bin"); d.write("bin/tool", "text") }),
		quiet(func(d *disk) { d.removeAll("bin") }),
	}},
}

// linked lays a file that is a link to a, and b beside a.
func linked(d *disk) {
	d.mkdir("")
	d.write("../a", list("a"))
	d.write("../b", list("b"))
	d.symlink("../a", "10-a.conflist")
}

// linkedDir lays a directory that is a link to a, and b beside a.
func linkedDir(d *disk) {
	d.dir("../a", "a")
	d.dir("../b", "b")
	d.symlink("a", "")
}

// owner is somebody to give a file to.
func owner() int {
	if uid := os.Getuid(); uid > 0 || os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		return uid // only root may give one away, and in a user namespace there is nobody else
	}
	return 1
}
