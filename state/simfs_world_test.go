package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
)

// bubble ends never: no call of the filesystem hangs here.
var bubble = context.Background() //nolint:usetesting // there is no test where it is used

func (w *files) behind(name string) *simPlugin {
	_, p, _ := w.candidate(name)
	return p
}

// lstat is one look of a scanner.
func (w *files) lstat(name string) (scanner.Entry, error) {
	w.depth += 2 // nothing waits in it
	defer func() { w.depth -= 2 }()
	return w.root(name).scanner.Look(bubble, name)
}

func (w *files) reach(e scanner.Entry) (*simPlugin, Failure, error) {
	id, p, ok := w.candidate(e.Path)
	stale := ok && e.ID.Inode != 0 && (id.Inode != e.ID.Inode || id.Device != e.ID.Device)
	switch {
	case !ok && w.oneIn(2):
		return nil, Transient, errors.New("no such file")
	case !ok, stale, w.oneIn(200) && !w.quiet:
		return nil, Stale, errors.New("stale")
	}
	if last := w.asked[e.Path]; last.id == e.ID && last.by != nil && last.by != p {
		w.check.counts["silent swaps"]++
	}
	w.asked[e.Path] = filesAsk{e.ID, p}
	if p == nil || !p.listens {
		return nil, Refused, errors.New("connection refused")
	}
	return p, Transient, nil
}

// live is the world: something happens, and again a little later.
func (w *files) live() {
	if w.quiet {
		return
	}
	for range 1 + w.random.IntN(3) {
		w.ops++
		w.happen()
	}
	switch n := w.random.IntN(1000); {
	case n == 0 && w.depth == 0:
		w.tell("suspended")
		<-time.After(w.upTo(12 * time.Minute))
		w.now = time.Now()
		w.after(0, w.live)
	case n < 15:
		w.after(w.upTo(20*time.Second), w.live)
	case n < 200:
		w.after(w.upTo(400*time.Millisecond), w.live)
	default:
		w.after(w.upTo(40*time.Millisecond), w.live)
	}
}

// later has something happen to the world, even if it is to stand still by then.
func (w *files) later(d time.Duration, do func()) {
	w.coming++
	w.after(d, func() {
		w.coming--
		do()
	})
}

func (w *files) anywhere() string { return w.paths[w.random.IntN(len(w.paths))] }

// happen does one thing.
func (w *files) happen() {
	defer w.pictures()
	name := w.anywhere()
	switch n := w.random.IntN(100); {
	case n < 30:
		w.plugin(name)
	case n < 62:
		w.behave(name)
	case n < 70:
		w.touch(name)
	case n < 78:
		w.move(name)
	case n < 82:
		w.directories(path.Dir(name))
	case n < 84:
		w.rootHappens(w.dirs[w.random.IntN(len(w.dirs))])
	case n < 92:
		w.trouble(name)
	case n < 93:
		w.junk(name)
	case n < 94:
		w.tell("jump of the filesystem's clock")
		w.skew += w.upTo([]time.Duration{time.Second, time.Hour}[w.random.IntN(2)])
	case n < 95:
		w.step(RetryAsked{name})
	case n < 96 && w.oneIn(4):
		w.step(RetryAsked{})
	case n < 97:
		w.link()
	case n < 98 && w.check.lastID > 0:
		w.step(Disconnected{Conn: EffectID(1 + w.random.Uint64N(uint64(w.check.lastID)+1<<20)), GoAway: true})
	}
}

// plugin starts one at a path, most often in the place of another one.
func (w *files) plugin(name string) {
	_, err := w.fs.Stat(really(path.Dir(name)))
	if err != nil && (w.root(name) == nil || w.oneIn(4)) {
		_ = w.fs.MkdirAll(really(path.Dir(name)), 0o755) // a file may be in the way
	}
	if w.oneIn(3) { // under another name, and renamed
		hidden := path.Join(path.Dir(name), ".new")
		w.unlink(hidden)
		if p := w.bind(hidden); p != nil {
			w.over(hidden, name)
		}
		return
	}
	w.unlink(name)
	w.bind(name)
}

// bind makes a socket with a process behind it. nil: it cannot.
func (w *files) bind(name string) *simPlugin {
	if w.fs.Mknod(really(name), fs.ModeSocket|0o755) != nil {
		return nil
	}
	w.version++
	info, err := w.fs.Stat(really(name))
	w.must(err)
	p := &simPlugin{path: name}
	w.process(p)
	w.at[inodeOf(info)] = p
	w.tell("bind %s: inode %d, %s %s, peer %v, kind %d, failures %d", name, inodeOf(info).inode, p.typ, p.name, p.peer, p.kind, p.failures)
	if w.oneIn(6) { // it does not listen yet
		p.listens = false
		w.later(w.upTo(80*time.Millisecond), func() { p.listens = !p.ended })
	}
	return p
}

// unlink removes what is at a path, if it is no directory. Whoever listens there ends or lives on without a name; then it keeps the inode.
func (w *files) unlink(name string) bool {
	info, _, err := w.fs.LstatIfPossible(really(name))
	if err != nil || info.IsDir() {
		return false
	}
	w.version++
	p := w.at[inodeOf(info)]
	switch {
	case info.Mode().Type() != fs.ModeSocket || p == nil || p.ended:
	case w.blind || !w.oneIn(5):
		w.exit(p)
	default:
		w.tell("remove %s, whose plugin goes on", name)
		p.pin = path.Join(w.limbo(name), fmt.Sprint(w.version))
		w.must(w.fs.MkdirAll(really(path.Dir(p.pin)), 0o700))
		w.must(w.fs.Rename(really(name), really(p.pin)))
		w.later(w.upTo(20*time.Second), func() { w.exit(p) })
		return true
	}
	w.tell("remove %s", name)
	w.must(w.fs.Remove(really(name)))
	return true
}

// limbo is where inodes are kept that are on the device of a path.
func (w *files) limbo(name string) string {
	on := ""
	for _, m := range w.mounts {
		if strings.HasPrefix(name, m+"/") && len(m) > len(on) {
			on = m
		}
	}
	if on == "" {
		return "/limbo"
	}
	return on + "/.limbo"
}

// exit ends a process, and its hold of the inode with it.
func (w *files) exit(p *simPlugin) {
	if p.ended {
		return
	}
	goAway := w.oneIn(2)
	w.tell("end of the plugin of %s, go away: %v", p.path, goAway)
	p.ended = true
	w.coming++
	w.ends(p, goAway, w.upTo(3*time.Millisecond))
	w.after(6*time.Millisecond, func() { w.coming-- })
	if p.pin != "" {
		_ = w.fs.Remove(really(p.pin)) // its device may be gone
	}
}

// behave has the plugin at a path do something.
func (w *files) behave(name string) {
	info, err := w.fs.Stat(really(name))
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return
	}
	p := w.at[inodeOf(info)]
	if p == nil {
		return
	}
	switch n := w.random.IntN(26); {
	case p.ended: // another process takes the socket over, as one that a service manager keeps
		if n < 8 {
			q := &simPlugin{path: name}
			w.process(q)
			w.at[inodeOf(info)] = q
			w.tell("restart of %s on its socket: %s %s, peer %v", name, q.typ, q.name, q.peer)
		}
	case n < 3: // it crashes: the socket stays
		w.exit(p)
	case n < 5: // it stops: the socket goes first
		w.later(w.upTo(50*time.Millisecond), func() { w.exit(p) })
		w.unlink(name)
	case n < 8: // it says something else from now on
		p.version = fmt.Sprint(w.random.IntN(3))
		if w.oneIn(2) {
			p.name = fmt.Sprint("n", w.random.IntN(12))
		}
		w.tell("another answer of %s: %s %s", name, p.name, p.version)
		w.hangUp(p, true, 0)
	case n < 12:
		w.tell("goaway of %s", name)
		w.hangUp(p, true, 0)
	case n < 14:
		p.goAway = time.Millisecond + w.upTo(time.Duration(1+w.random.IntN(90))*time.Second)
		w.tell("goaway of %s, again and again after %v", name, p.goAway)
		w.hangUp(p, true, 0)
	case n < 16:
		w.tell("connections of %s end without a word", name)
		w.hangUp(p, false, 0)
	case n < 18:
		p.failures = 1 + w.random.IntN(4)
		w.tell("trouble of %s: its connections end, and %d calls fail", name, p.failures)
		w.hangUp(p, w.oneIn(2), 0)
	case n < 20:
		w.tell("hang of %s", name)
		p.kind = simHangs
		if w.oneIn(2) {
			w.hangUp(p, w.oneIn(2), 0)
		}
	default:
		p.heal()
	}
}

// touch changes what a socket's stamps say, once or again and again.
func (w *files) touch(name string) {
	n := 1
	if w.oneIn(8) {
		n = 5 + w.random.IntN(40)
	}
	w.tell("touch of %s, %d times", name, n)
	mtime := w.oneIn(2)
	for i := range n {
		w.later(time.Duration(i)*47*time.Millisecond, func() {
			w.version++
			if mtime {
				_ = w.fs.Chtimes(really(name), time.Now(), w.fsNow()) // nothing may be there
				return
			}
			_ = w.fs.Chmod(really(name), fs.FileMode(w.random.IntN(0o1000)))
		})
	}
}

func (w *files) fsNow() time.Time {
	w.stamps++
	return time.Now().Add(w.skew + time.Duration(w.stamps))
}

// move renames a socket: to another path, in, out, or to a name that is skipped.
func (w *files) move(name string) {
	to := w.anywhere()
	if w.oneIn(6) {
		to = path.Join(path.Dir(to), ".hidden")
	}
	if w.oneIn(8) {
		name = path.Join(path.Dir(name), ".hidden")
	}
	w.over(name, to)
}

// over renames one path over another.
func (w *files) over(name, to string) {
	info, _, err := w.fs.LstatIfPossible(really(name))
	if err != nil || name == to || info.IsDir() {
		return
	}
	over, _, err := w.fs.LstatIfPossible(really(to))
	if parent, err := w.fs.Stat(really(path.Dir(to))); err != nil || !parent.IsDir() || inodeOf(parent).device != inodeOf(info).device {
		return // it cannot be renamed to there
	}
	if err == nil && (over.IsDir() || inodeOf(over) == inodeOf(info)) {
		return
	}
	w.unlink(to)
	w.version++
	if p := w.at[inodeOf(info)]; p != nil && w.dull {
		w.exit(p)
	}
	w.tell("rename %s to %s", name, to)
	w.must(w.fs.Rename(really(name), really(to)))
}

// all are the paths below a directory that are no directories, those that are skipped as well.
func (w *files) all(dir string) (names []string) {
	list, err := afero.ReadDir(w.fs, really(dir))
	if err != nil {
		return nil // it is not there
	}
	for _, info := range list {
		name := path.Join(dir, info.Name())
		switch {
		case info.Name() == ".limbo":
		case info.IsDir():
			names = append(names, w.all(name)...)
		default:
			names = append(names, name)
		}
	}
	return names
}

// empty unlinks all below a directory.
func (w *files) empty(dir string) {
	for _, name := range w.all(dir) {
		w.unlink(name)
	}
}

// link makes a link, or removes it.
func (w *files) link() {
	link := filesLinks[w.random.IntN(len(filesLinks))]
	w.version++
	if !w.unlink(link[0]) {
		_ = w.fs.SymlinkIfPossible(link[1], really(link[0])) // its directory may not be there
	}
}

// directories has something happen to a subdirectory.
func (w *files) directories(dir string) {
	if dir == "/out" || w.dirs[0].path == dir || w.dirs[1].path == dir {
		dir = []string{"/a/sub1", "/a/sub2", "/a/sub2/deep", "/b/new"}[w.random.IntN(4)]
	}
	mounted := slices.ContainsFunc(w.mounts, func(m string) bool { return strings.HasPrefix(m+"/", dir+"/") })
	old := path.Join(path.Dir(dir), path.Base(dir)+".old")
	w.version++
	switch n := w.random.IntN(10); {
	case n < 2 && !mounted:
		w.tell("rmdir %s", dir)
		w.empty(dir)
		_ = w.fs.RemoveAll(really(dir)) // it may not be there
	case n < 5 && !mounted:
		w.tell("rename directory %s to %s, or back", dir, old)
		if w.dull {
			w.hide(dir)
			w.hide(old)
		}
		if w.fs.Rename(really(dir), really(old)) != nil {
			_ = w.fs.Rename(really(old), really(dir))
		}
	case n < 7:
		w.unmount(dir)
	case n < 8:
		w.mount(dir)
	default:
		_ = w.fs.MkdirAll(really(dir), 0o755) // a parent may be a file
	}
}

// mount hides what is in a directory. On a filesystem without inodes its plugins end: a socket with the stamps of one of theirs may come in its place.
func (w *files) mount(dir string) {
	if len(w.mounts) >= 4 {
		return
	}
	if info, err := w.fs.Stat(really(dir)); err != nil || !info.IsDir() {
		return
	}
	w.tell("mount at %s", dir)
	w.hide(dir)
	w.must(w.fs.Mount(really(dir)))
	w.mounts = append(w.mounts, dir)
	w.version++
	w.pictures()
}

// hide ends the plugins below a directory, or not.
func (w *files) hide(dir string) {
	for _, name := range w.all(dir) {
		if info, err := w.fs.Stat(really(name)); err == nil && info.Mode().Type() == fs.ModeSocket && (w.blind || w.oneIn(2)) {
			if p := w.at[inodeOf(info)]; p != nil {
				w.exit(p)
			}
		}
	}
}

// unmount takes the last mount at a directory away.
func (w *files) unmount(dir string) {
	for n, m := range slices.Backward(w.mounts) {
		inner := slices.ContainsFunc(w.mounts[n+1:], func(o string) bool { return strings.HasPrefix(o, m+"/") })
		if m != dir || inner {
			continue
		}
		w.tell("unmount at %s", dir)
		w.hide(dir)
		if w.fs.Unmount(really(dir)) != nil {
			return // a parent of it was renamed
		}
		w.mounts = slices.Delete(w.mounts, n, n+1)
		w.version++
		w.pictures()
		return
	}
}

// rootHappens has something happen to a root as a whole.
func (w *files) rootHappens(r *filesRoot) {
	mounted := slices.ContainsFunc(w.mounts, func(m string) bool { return strings.HasPrefix(m+"/", r.path+"/") })
	old := r.path + ".old"
	w.version++
	switch n := w.random.IntN(10); {
	case n < 3 && !mounted:
		w.tell("remove root %s", r.path)
		w.empty(r.path)
		_ = w.fs.RemoveAll(really(r.path)) // it may not be there
		if w.oneIn(2) {
			_ = w.fs.Mkdir(really(r.path), 0o755)
		}
	case n < 5 && !mounted:
		w.tell("move root %s away, or back", r.path)
		if _, err := w.fs.Stat(really(old)); err == nil {
			w.empty(r.path)
			_ = w.fs.RemoveAll(really(r.path))
			w.must(w.fs.Rename(really(old), really(r.path)))
		} else if w.fs.Rename(really(r.path), really(old)) == nil && w.blind {
			w.hide(old)
		}
	case n < 7:
		w.mount(r.path)
		w.later(w.upTo(25*time.Second), func() { w.unmount(r.path) })
	case n < 8:
		w.unmount(r.path)
	default:
		if w.fs.Mkdir(really(r.path), 0o755) == nil {
			w.tell("make root %s", r.path)
		}
	}
	w.pictures()
	if !r.missing.IsZero() {
		w.later(w.upTo(25*time.Second), func() {
			w.version++
			if w.fs.Mkdir(really(r.path), 0o755) == nil {
				w.tell("make root %s", r.path)
			}
			w.pictures()
		})
	}
}

// pictures notes how the roots look.
func (w *files) pictures() {
	for _, r := range w.dirs {
		info, err := w.fs.Stat(really(r.path))
		if err != nil && r.missing.IsZero() {
			r.missing = w.now
			w.check.counts["roots missing"]++
		}
		if err != nil {
			continue
		}
		if device := inodeOf(info).device; w.shown[device].IsZero() {
			w.shown[device] = w.now
		}
	}
}

// junk makes something at a path that is no socket, or a socket with nobody behind it.
func (w *files) junk(name string) {
	w.tell("junk at %s", name)
	w.unlink(name)
	w.version++
	switch w.random.IntN(4) {
	case 0:
		_ = w.fs.Mkdir(really(name), 0o755)
		w.later(w.upTo(5*time.Second), func() {
			w.version++
			_ = w.fs.Remove(really(name))
		})
	case 1:
		_ = w.fs.Mknod(really(name), 0o644)
	case 2:
		_ = w.fs.Mknod(really(name), fs.ModeNamedPipe|0o644)
	default:
		if w.fs.Mknod(really(name), fs.ModeSocket|0o755) == nil {
			info, err := w.fs.Stat(really(name))
			w.must(err)
			w.at[inodeOf(info)] = nil
		}
	}
}

// trouble has calls of scanners fail, take long, or meet a change.
func (w *files) trouble(name string) {
	r := w.dirs[w.random.IntN(len(w.dirs))]
	dir := path.Dir(name)
	if w.oneIn(2) {
		dir = r.path
	}
	errno := []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EACCES, syscall.EMFILE}[w.random.IntN(4)]
	times := 1 + w.random.IntN(6)
	switch w.random.IntN(9) {
	case 0:
		w.fault(dir, simfs.OpList, simfs.Fault{Err: errno, After: w.random.IntN(6), Times: times})
	case 1:
		w.fault(dir, simfs.OpList, simfs.Fault{Err: io.EOF, After: w.random.IntN(6), Times: times})
	case 2:
		w.fault(dir, simfs.OpOpen, simfs.Fault{Err: []syscall.Errno{errno, syscall.ENOENT}[w.random.IntN(2)], Times: times})
	case 3:
		w.fault(name, simfs.OpEntry, simfs.Fault{Err: syscall.ENOENT, Times: times})
	case 4:
		w.fault(name, simfs.OpLstat, simfs.Fault{Err: errno, Times: times})
	case 5:
		if w.oneIn(2) {
			w.lies[name] = true
			w.fault(name, simfs.OpLstat, simfs.Fault{Err: syscall.ENOENT, Times: times})
			return
		}
		w.fault(dir, simfs.OpLstat, simfs.Fault{Err: errno, Times: times})
	case 6:
		w.fault(r.path, simfs.OpStat, simfs.Fault{Err: errno, Times: times})
	default:
		w.hook(name, dir)
	}
}

// fault has a call fail, for a while at most.
func (w *files) fault(name string, op simfs.Op, f simfs.Fault) {
	w.tell("fault: %s of %s: %v after %d, %d times", op, name, f.Err, f.After, f.Times)
	w.faults++
	clear := w.fs.Inject(name, op, f)
	w.later(w.upTo([]time.Duration{100 * time.Millisecond, time.Second, 6 * time.Second}[w.random.IntN(3)]), func() {
		clear()
		if w.faults = max(0, w.faults-1); op == simfs.OpEntry || errors.Is(f.Err, io.EOF) || errors.Is(f.Err, fs.ErrNotExist) {
			w.hidden = w.now
		}
		w.version++ // for a scan that has met it
	})
}

// hook has something happen in the midst of a scan: time passes, or the world changes.
func (w *files) hook(name, dir string) {
	at, op := name, simfs.OpLstat
	if w.oneIn(2) {
		at, op = dir, []simfs.Op{simfs.OpOpen, simfs.OpList, simfs.OpLstat}[w.random.IntN(3)]
	}
	d := w.upTo([]time.Duration{time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}[w.random.IntN(3)])
	changes := w.random.IntN(4)
	w.fs.Inject(at, op, simfs.Fault{Times: 1, Hook: func() {
		w.calls++
		w.tell("call: %s of %s, %d changes, %v", op, at, changes, d)
		for range changes {
			w.happen()
		}
		if w.depth == 1 {
			w.meanwhile(d)
		}
	}})
}
