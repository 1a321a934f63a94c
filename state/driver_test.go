package state

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plugpoll/plugpoll/scanner"
)

const (
	dir  = "/plugins"
	csi  = "CSIPlugin"
	dra  = "DRAPlugin"
	skip = "…" // in want: whatever comes from here on
)

var (
	start   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	errTest = errors.New("it broke")
)

// driver steps a Core by hand and has every Step checked.
type driver struct {
	t      *testing.T
	core   *Core
	check  *checker
	now    time.Time
	events []Emit
	last   map[string]*scanner.Snapshot

	unchecked bool // for inputs that the checker does not know
}

func drive(t *testing.T, cfg Config) *driver {
	if cfg.Roots == nil {
		cfg.Roots = []Root{{Path: dir, Filesystem: "MemMapFS"}}
	}
	return &driver{t: t, core: New(cfg), check: newChecker(cfg), now: start, last: map[string]*scanner.Snapshot{}}
}

// step returns what is to be done, a line for each effect that is not an Emit.
func (d *driver) step(in Input) []string {
	d.t.Helper()
	out := d.core.Step(d.now, in)
	var lines []string
	for _, e := range out {
		if emit, ok := e.(Emit); ok {
			d.events = append(d.events, emit)
			continue
		}
		lines = append(lines, describe(e))
	}
	if d.unchecked {
		return lines
	}
	err := errors.Join(d.check.step(d.now, in, out), d.check.core(d.core), d.check.view(d.core.View(d.now)))
	if err != nil {
		d.t.Fatalf("after %s →\n%s\n%v", describe(in), strings.Join(lines, "\n"), err)
	}
	return lines
}

// want compares lines with those wanted. The last one wanted may be skip.
func (d *driver) want(got []string, want ...string) {
	d.t.Helper()
	if n := len(want) - 1; n >= 0 && want[n] == skip {
		want = want[:n]
		got = got[:min(n, len(got))]
	}
	if diff := cmp.Diff(want, got, cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
		d.t.Fatalf("effects (-want +got):\n%s", diff)
	}
}

func (d *driver) scan(entries ...scanner.Entry) []string {
	d.t.Helper()
	d.last[dir] = scanner.NewSnapshot(entries, nil)
	return d.step(Scanned{Root: dir, Snapshot: d.last[dir], Started: d.now, Ended: d.now})
}

// answers has Ask id answered by a plugin.
func (d *driver) answers(id EffectID, typ, name string) []string {
	d.t.Helper()
	return d.step(Asked{ID: id, Info: info(typ, name), Connected: true})
}

func (d *driver) ok(id EffectID) []string { d.t.Helper(); return d.step(Called{ID: id}) }

func (d *driver) fails(id EffectID) []string {
	d.t.Helper()
	return d.step(Called{ID: id, Err: errTest})
}

func (d *driver) told(id EffectID) []string { d.t.Helper(); return d.step(Notified{ID: id}) }

// refused has Ask id end without a connection.
func (d *driver) refused(id EffectID) []string {
	d.t.Helper()
	return d.step(Asked{ID: id, Err: errTest})
}

// register takes a socket that is being asked by id to its registration. It uses the numbers id to id+3, and nothing else may happen.
func (d *driver) register(id EffectID, typ, name string) {
	d.t.Helper()
	d.answers(id, typ, name)
	d.ok(id + 1)
	d.ok(id + 2)
	d.told(id + 3)
	if len(d.check.flights) != 0 {
		d.t.Fatalf("registering left something in flight")
	}
}

// wait lets the time pass, with a Tick at each Deadline on the way, and returns what is to be done then.
func (d *driver) wait(pause time.Duration) (lines []string) {
	d.t.Helper()
	end := d.now.Add(pause)
	for {
		at := d.core.Deadline()
		if at.IsZero() || at.After(end) {
			d.now = end
			return lines
		}
		d.now = at
		lines = append(lines, d.step(Tick{})...)
	}
}

func (d *driver) socket(path string) SocketView {
	d.t.Helper()
	for _, s := range d.core.View(d.now).Sockets {
		if s.Path == path {
			return s
		}
	}
	d.t.Fatalf("the view has no %s", path)
	return SocketView{}
}

func (d *driver) phase(path string, want Phase) {
	d.t.Helper()
	if got := d.socket(path).Phase; got != want {
		d.t.Fatalf("%s is %s, want %s", path, got, want)
	}
}

// took returns the kinds of the events since the last call that are at least as loud as level.
func (d *driver) took(level Level) (kinds []string) {
	for _, e := range d.events {
		if e.Level >= level {
			kinds = append(kinds, string(e.Event.Kind))
		}
	}
	d.events = nil
	return kinds
}

// count is how many lines are of an effect, whatever its number.
func count(lines []string, effect string) (n int) {
	for _, line := range lines {
		if _, what, ok := strings.Cut(line, " "); ok && what == effect {
			n++
		}
	}
	return n
}

// sock is a socket in dir. Another inode is another file; stamp is its mtime and ctime.
func sock(name string, inode uint64, stamp int64) scanner.Entry {
	return at(dir+"/"+name, inode, stamp)
}

func at(path string, inode uint64, stamp int64) scanner.Entry {
	return scanner.Entry{Path: path, ID: scanner.Identity{Stamp: scanner.Stamp{
		Device: 1, Inode: inode, ModTime: stamp, ChangeTime: stamp, Type: fs.ModeSocket,
	}}}
}

func info(typ, name string) Info {
	return Info{Type: typ, Name: name, Endpoint: "/run/" + name + ".sock", Versions: []string{"1.0.0"}}
}

// describe makes one line of an input or an effect.
func describe(x any) string {
	switch x := x.(type) {
	case Ask:
		return fmt.Sprintf("%d ask %s", x.ID, base(x.Path))
	case Validate:
		return fmt.Sprintf("%d validate %s %s", x.ID, base(x.Path), short(x.Registration))
	case Register:
		return fmt.Sprintf("%d register %s %s", x.ID, base(x.Path), short(x.Registration))
	case Deregister:
		return fmt.Sprintf("%d deregister %s %s", x.ID, base(x.Path), short(x.Registration))
	case Notify:
		what := "is registered"
		if !x.Registered {
			what = scanner.Clean(x.Message, 60)
		}
		return fmt.Sprintf("%d tell %s over %d: %s", x.ID, base(x.Path), x.Conn, what)
	case Look:
		return fmt.Sprintf("%d look %s", x.ID, base(x.Path))
	case Rescan:
		return "rescan " + x.Root
	case Cancel:
		return fmt.Sprintf("cancel %d", x.ID)
	case Close:
		return fmt.Sprintf("close %d", x.Conn)
	case Emit:
		e := x.Event
		return fmt.Sprintf("emit %d %s %s %s %q %d %d", x.Level, e.Kind, e.Path, e.Phase, e.Error, e.Tries, e.NextTry.UnixNano())
	case Synced:
		return "synced"
	case Stopped:
		return "stopped"
	case Scanned:
		return fmt.Sprintf("scanned %s: %d entries, %v", x.Root, x.Snapshot.Len(), x.Err)
	case Looked:
		return fmt.Sprintf("looked %d: inode %d stamp %d, %v", x.ID, x.Entry.ID.Inode, x.Entry.ID.ChangeTime, x.Err)
	case Disconnected:
		return fmt.Sprintf("disconnected %d, go away: %v", x.Conn, x.GoAway)
	case Asked:
		peer := "unknown peer"
		if x.Peer != nil {
			peer = fmt.Sprint(*x.Peer)
		}
		return fmt.Sprintf("asked %d: %s %s %s %v %v %d", x.ID, x.Info.Type, x.Info.Name, peer, x.Connected, x.Err, x.Failure)
	case Called:
		return fmt.Sprintf("called %d: %v %d", x.ID, x.Err, x.Failure)
	case happened:
		return "· " + string(x)
	case Notified:
		return fmt.Sprintf("notified %d: %v %d", x.ID, x.Err, x.Failure)
	}
	return fmt.Sprintf("%T%+v", x, x)
}

func base(path string) string { return strings.TrimPrefix(path, dir+"/") }

func short(r Registration) string {
	return fmt.Sprintf("%s/%s inode %d", strings.TrimSuffix(r.Type, "Plugin"), r.Name, r.Entry.ID.Inode)
}

// trace is a hash of everything that went in and came out.
type trace struct{ hash hash.Hash64 }

func newTrace() trace { return trace{fnv.New64a()} }

func (t trace) line(args ...any) { t.hash.Write(fmt.Appendln(nil, args...)) } // a hash returns no error

func (t trace) add(now time.Time, in Input, out []Effect) {
	t.line(now.UnixNano(), describe(in))
	if s, ok := in.(Scanned); ok {
		for e := range s.Snapshot.All() {
			t.line(e.Path, e.ID.Inode, e.ID.ModTime, e.ID.ChangeTime, e.Stale != nil)
		}
	}
	for _, e := range out {
		t.line(describe(e))
	}
}

func (t trace) String() string { return fmt.Sprintf("%x", t.hash.Sum64()) }

// left is what a Core still holds that it should not, when there is nothing to do.
func left(c *Core) string {
	return cmp.Diff([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []int{
		len(c.sockets), len(c.flights), len(c.reserved), len(c.waiting), c.probes.used, c.calls.used, len(c.dirty), len(c.links), len(c.members), c.parked,
	})
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
