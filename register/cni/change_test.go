package cni

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
)

// changeCase is one way in which what a directory holds can change (CN4): what is there before, and then a change at a time.
type changeCase struct {
	name string
	// lay makes what is there before. nil: the file 10-a.conflist, of the network a.
	lay func(d *disk)
	// first is the network in use then. "": a; nothing: there is none.
	first string
	steps []change
	// on is what it takes. 0: any filesystem.
	on need
}

type need int

const (
	links  need = iota + 1 // hard links, FIFOs: what simfs has not
	root                   // whom no mode keeps out; for others TestUnreadableFile has a filesystem that refuses
	mounts                 // root, on Linux
	binds                  // mounts of a file, and of what is elsewhere: what simfs has not
)

const nothing = "nothing"

// change is one step of a case, and what it comes to.
type change struct {
	do func(d *disk)
	// state is the one after it, network the default network then. "": Ready, and the network of before.
	state   State
	network string
	// least and most are how many sets may be taken into use for it.
	least, most int
	// quiet says that nobody may notice: neither an event nor a line of the log, and what was observed stays.
	quiet bool
}

// to is a change after which another network is in use, or the same one with other plugins, taken into use at once.
func to(network string, do func(d *disk)) change {
	return change{do: do, network: network, least: 1, most: 1}
}

// back is a change after which the network of before is ready to be used as it was.
func back(do func(d *disk)) change { return change{do: do} }

// spoils is a change after which what is there cannot be used (CN7).
func spoils(do func(d *disk)) change { return change{do: do, state: Stale} }

// gone is a change after which nothing is there (CN8).
func gone(do func(d *disk)) change { return change{do: do, state: NotReady} }

// quiet is a change that is none (CN1, CN2).
func quiet(do func(d *disk)) change { return change{do: do, quiet: true} }

// disk is where a case makes its changes: a directory of the operating system, or of a simulated node.
type disk struct {
	fs   afero.Fs
	top  string // holds net.d, and whatever a case puts beside it
	link func(old, name string) error
	// mount has something else at a path: an empty filesystem, or what is at from. unmount ends it.
	mount   func(from, path string) error
	unmount func(path string) error
	err     error // the first
}

// at is the path of something in net.d, or beside it if the name begins with "../".
func (d *disk) at(name string) string { return path.Join(d.top, "net.d", name) }

func (d *disk) must(err error) {
	if d.err == nil {
		d.err = err
	}
}

// write makes a file, or writes one that is there in place, from its beginning to its end.
func (d *disk) write(name, content string) {
	d.open(name, os.O_CREATE, content)
	d.resize(name, len(content))
}

func (d *disk) append(name, content string) { d.open(name, os.O_APPEND, content) }

func (d *disk) open(name string, flags int, content string) {
	f, err := d.fs.OpenFile(d.at(name), os.O_WRONLY|flags, 0o644)
	if err != nil {
		d.must(err)
		return
	}
	_, err = f.WriteString(content)
	d.must(errors.Join(err, f.Close()))
}

func (d *disk) resize(name string, size int) {
	f, err := d.fs.OpenFile(d.at(name), os.O_WRONLY, 0)
	if err != nil {
		d.must(err)
		return
	}
	d.must(errors.Join(f.Truncate(int64(size)), f.Close()))
}

// put has a file with this content take a name at once.
func (d *disk) put(name, content string) {
	d.write(".put", content)
	d.move(".put", name)
}

func (d *disk) move(from, to string) { d.must(d.fs.Rename(d.at(from), d.at(to))) }

func (d *disk) remove(name string) { d.must(d.fs.Remove(d.at(name))) }

func (d *disk) removeAll(name string) { d.must(d.fs.RemoveAll(d.at(name))) }

func (d *disk) mkdir(name string) { d.must(d.fs.MkdirAll(d.at(name), 0o755)) }

func (d *disk) symlink(target, name string) {
	d.must(d.fs.(afero.Symlinker).SymlinkIfPossible(target, d.at(name)))
}

// repoint has a symbolic link lead elsewhere at once.
func (d *disk) repoint(target, name string) {
	d.symlink(target, "../.repoint")
	d.move("../.repoint", name)
}

// dir makes a directory beside net.d, or net.d itself, with a network in it.
func (d *disk) dir(name, network string) {
	d.mkdir(name)
	d.write(path.Join(name, "10-a.conflist"), list(network))
}

// volume makes a directory as the kubelet does of a ConfigMap: the files, a link to the directory of them, and links that lead by way of that.
func (d *disk) volume(network string) {
	d.data("..2026_11_30_1", network)
	d.symlink("..2026_11_30_1", "..data")
	d.symlink("..data/10-a.conflist", "10-a.conflist")
}

func (d *disk) data(dir, network string) {
	d.mkdir(dir)
	d.write(path.Join(dir, "10-a.conflist"), list(network))
}

// swap gives a ConfigMap another content, as the kubelet does.
func (d *disk) swap(from, to, network string) {
	d.data(to, network)
	d.symlink(to, "..data_tmp")
	d.move("..data_tmp", "..data")
	d.removeAll(from)
}

func (d *disk) lay(c changeCase) {
	d.must(d.fs.MkdirAll(d.top, 0o755))
	if c.lay != nil {
		c.lay(d)
		return
	}
	d.dir("", "a")
}

// revision is what a look of somebody else says that the directory comes to.
func (d *disk) revision(t *testing.T) Revision {
	t.Helper()
	s, err := scanner.New(scanner.Config{FS: d.fs, Root: d.at(""), Select: scanner.Files(extensions...), MaxDepth: 1, RootGrace: 1})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, _ := s.Scan(t.Context(), nil) // what cannot be read is in the entries
	return load(d.at(""), slices.Collect(snapshot.All()), choose{max: DefaultMaxConfNum}).revision
}

// sight is what a Syncer shows at one moment of a case.
type sight struct {
	View
	events []EventKind
	log    string
}

// check says what of a change did not come about as it says. before and after are what was seen, disk is the revision that is there.
func (c change) check(before, after sight, disk Revision) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if !c.reached(before, after) {
		fault("it is %s with network %q: %s %s", after.State, after.DefaultNetwork, after.Message, after.LastError)
	}
	if n := after.Reloads - before.Reloads; n < c.least || n > c.most {
		fault("it was %d reloads, want %d to %d", n, c.least, c.most)
	}
	if after.Observed != disk {
		fault("it has seen revision %q, and %q is there", after.Observed, disk)
	}
	if want := c.applied(before, after); after.Applied != want {
		fault("revision %q is in use, want %q", after.Applied, want)
	}
	if said := after.log[len(before.log):]; c.quiet && (len(after.events) > len(before.events) || said != "" || after.Observed != before.Observed) {
		fault("it was noticed: events %q, log %q", after.events[len(before.events):], said)
	}
	return faults
}

// reached says whether the state and the network are those that the change leads to.
func (c change) reached(before, after sight) bool {
	network := c.network
	if network == "" {
		network = before.DefaultNetwork
	}
	state := c.state
	if state == "" {
		state = Ready
	}
	return after.State == state && after.DefaultNetwork == network && after.Reloads-before.Reloads >= c.least
}

// applied is the revision that must be in use after a change.
func (c change) applied(before, after sight) Revision {
	if c.state == "" {
		return after.Observed
	}
	return before.Applied
}

// network is the one in use before the first step.
func (c changeCase) network() (State, string) {
	switch c.first {
	case "":
		return Ready, "a"
	case nothing:
		return NotReady, ""
	}
	return Ready, c.first
}

// sims are the simulated filesystems of TestChangesSimulated. On the second no stamp and no inode tells one file from another.
var sims = map[string]simfs.Config{
	"ordinary": {},
	"no stamp": {Granularity: 24 * time.Hour, ReuseInodes: true, Shuffle: 1, Entries: simfs.UntypedEntries},
}

// CN1, CN2, CN4: each change that a simulated filesystem can make.
func TestChangesSimulated(t *testing.T) {
	for name, sim := range sims {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			for _, c := range changeCases {
				if c.on == links || c.on == binds {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					bubbleOn(t, sim, Config{ConfDir: "/top/net.d"}, func(w *world) { c.simulate(w) })
				})
			}
		})
	}
}

func (c changeCase) simulate(w *world) {
	d := &disk{
		fs: w.node, top: "/top",
		mount:   func(_, path string) error { return w.node.Mount(path) },
		unmount: w.node.Unmount,
	}
	d.lay(c)
	w.must(d.err)
	w.run()
	w.pass(time.Second)
	w.is(c.network())
	for i, step := range c.steps {
		before := w.sight()
		step.do(d)
		w.must(d.err)
		w.pass(settled)
		after := w.sight()
		for _, fault := range step.check(before, after, d.revision(w.T)) {
			w.Errorf("change %d: %s", i+1, fault)
		}
		w.agrees(after.View)
	}
}

func (w *world) sight() sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := sight{View: w.s.View(), log: w.log.String()}
	for _, e := range w.events {
		s.events = append(s.events, e.Kind)
	}
	return s
}

// CN4: there are as many cases as there were in the comparison of the peers, and more, each of another name.
func TestChangeCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range changeCases {
		if seen[c.name] || c.name == "" || len(c.steps) == 0 {
			t.Errorf("case %q is there twice, or is none", c.name)
		}
		seen[c.name] = true
	}
	if len(seen) < 34 {
		t.Errorf("there are %d cases", len(seen))
	}
}

// mknod makes what has no other call, by its type.
func (d *disk) mknod(name string, mode fs.FileMode) {
	switch f := d.fs.(type) {
	case interface {
		Mknod(name string, mode fs.FileMode) error
	}:
		d.must(f.Mknod(d.at(name), mode))
	default:
		d.must(mknod(d.at(name), mode))
	}
}
