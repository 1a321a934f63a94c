package scanner

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/afero"
)

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"/run/a.sock":     `/run/a.sock`,
		"":                `""`,
		"/a b":            `"/a b"`,
		"/a\nb":           `"/a\nb"`,
		`/a"b`:            `"/a\"b"`,
		`/a\b`:            `/a\b`,
		"/a\xffb":         `"/a\xffb"`,
		"/ä/日本/#?%":       `/ä/日本/#?%`,
		"/\u202efdp":      `"/\u202efdp"`,
		"/\u00a0":         `"/\u00a0"`,
		"/\ufffd":         "\"/\ufffd\"",
		"/\x1b[31m\x00":   `"/\x1b[31m\x00"`,
		"/a\u0085b\u2028": `"/a\u0085b\u2028"`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func checkClean(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		t.Errorf("%q is not one clean line", s)
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"/run/a.sock", "", "/a b", "/a\nb", `/a"b`, "/a\xffb", "/ä", "\u202e", "\ufffd", `"x"`, `\x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Quote(s)
		checkClean(t, q)
		// Two paths never look the same: the text gives the path back.
		back := q
		if strings.HasPrefix(q, `"`) {
			var err error
			if back, err = strconv.Unquote(q); err != nil {
				t.Fatal(err)
			}
		}
		if back != s {
			t.Errorf("%q is shown as %s", s, q)
		}
		if isPlain := s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }); isPlain && q != s {
			t.Errorf("plain %q is shown as %s", s, q)
		}
	})
}

func TestClean(t *testing.T) {
	for _, test := range []struct {
		in    string
		limit int
		want  string
	}{
		{"plain text", 20, "plain text"},
		{"", 3, ""},
		{"a\nb\x1b\xff", 20, `a\nb\x1b\xff`},
		{"exactly", 7, "exactly"},
		{"too long", 7, "too …"},
		{"äöü", 6, "äöü"},
		{"äöüß", 6, "ä…"},
		{"\n\n\n\n", 6, `\n\…`},
		{"abc", 3, "abc"},
		{"abcd", 3, "…"},
		{"\ufffd", 5, "\ufffd"},
	} {
		if got := Clean(test.in, test.limit); got != test.want {
			t.Errorf("Clean(%q, %d) = %q, want %q", test.in, test.limit, got, test.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("plain", 10)
	f.Add("a\n\xffü\u2028", 5)
	f.Add("日本語日本語", 7)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 3 + max(limit, -limit, 0)%1000
		got := Clean(s, limit)
		checkClean(t, got)
		if len(got) > limit {
			t.Errorf("%q has more than %d bytes", got, limit)
		}
		if again := Clean(got, limit); again != got {
			t.Errorf("%q cleaned again is %q", got, again)
		}
		if short := len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }); short && got != s {
			t.Errorf("plain %q became %q", s, got)
		}
	})
}

func snapshotOf(entries ...Entry) *Snapshot { return &Snapshot{entries: entries} }

func entryOf(path string, inode uint64) Entry {
	return Entry{Path: path, ID: Identity{Stamp: Stamp{Inode: inode}}}
}

func diffText(changes []Change) string {
	var words []string
	for _, c := range changes {
		words = append(words, fmt.Sprintf("%v %s %d", c.Kind, c.Entry.Path, c.Entry.ID.Inode))
	}
	return strings.Join(words, ", ")
}

func TestDiff(t *testing.T) {
	maybe, stale := entryOf("/a", 1), entryOf("/a", 1)
	maybe.Maybe = true
	stale.Stale = &Stale{Err: errOnlyLstat}
	link := entryOf("/a", 1)
	link.ID.Link.Inode = 7
	for _, test := range []struct {
		old, next *Snapshot
		want      string
	}{
		{nil, nil, ""},
		{nil, snapshotOf(entryOf("/a", 1), entryOf("/b", 2)), "added /a 1, added /b 2"},
		{snapshotOf(entryOf("/a", 1)), nil, "removed /a 1"},
		{snapshotOf(entryOf("/a", 1)), snapshotOf(entryOf("/a", 1)), ""},
		{snapshotOf(entryOf("/a", 1)), snapshotOf(entryOf("/a", 2)), "replaced /a 2"},
		{snapshotOf(entryOf("/a", 1)), snapshotOf(stale), ""},
		{snapshotOf(stale), snapshotOf(entryOf("/a", 1)), ""},
		{snapshotOf(entryOf("/a", 1)), snapshotOf(maybe), "replaced /a 1"},
		{snapshotOf(entryOf("/a", 1)), snapshotOf(link), "replaced /a 1"},
		{snapshotOf(entryOf("/a", 1), entryOf("/c", 3)), snapshotOf(entryOf("/b", 1), entryOf("/c", 4)), "removed /a 1, added /b 1, replaced /c 4"},
	} {
		if got := diffText(Diff(test.old, test.next)); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	for kind, want := range map[Kind]string{Added: "added", Replaced: "replaced", Removed: "removed", 0: "unknown"} {
		if kind.String() != want {
			t.Errorf("kind %d is %q", kind, kind)
		}
	}
}

// FuzzDiff: the changes lead from one snapshot to the other, in order, and say nothing twice.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("\x01\x02\x03"), []byte("\x02\x13\x04"))
	f.Add([]byte{}, []byte("abc"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		old, next := fuzzSnapshot(a), fuzzSnapshot(b)
		world := map[string]Entry{}
		for e := range old.All() {
			world[e.Path] = e
		}
		last := ""
		for _, c := range Diff(old, next) {
			if c.Entry.Path <= last {
				t.Fatalf("%s comes after %s", c.Entry.Path, last)
			}
			last = c.Entry.Path
			have, there := world[last]
			if there != (c.Kind != Added) || c.Kind == Replaced && have == c.Entry || c.Kind == Removed && have != c.Entry {
				t.Fatalf("%v %v where %v was", c.Kind, c.Entry, have)
			}
			world[last] = c.Entry
			if c.Kind == Removed {
				delete(world, last)
			}
		}
		if len(world) != next.Len() {
			t.Fatalf("%d entries instead of %d", len(world), next.Len())
		}
		for e := range next.All() {
			if world[e.Path] != e {
				t.Fatalf("%v instead of %v", world[e.Path], e)
			}
		}
	})
}

// fuzzSnapshot: the low half of each byte is a name, the high half what is there.
func fuzzSnapshot(data []byte) *Snapshot {
	var inodes [16]uint64
	for _, b := range data {
		inodes[b&15] = uint64(b>>4) + 1
	}
	s := &Snapshot{}
	for i, inode := range inodes {
		if inode > 0 {
			e := entryOf("/"+strconv.FormatInt(int64(i), 16), inode/2)
			e.Maybe = inode%2 == 1
			s.entries = append(s.entries, e)
		}
	}
	return s
}

func TestSnapshot(t *testing.T) {
	var none *Snapshot
	if _, ok := none.At("/a"); ok || none.Len() != 0 || none.Ignored() != nil || len(paths(none)) != 0 {
		t.Error("nil is not an empty world")
	}
	s := snapshotOf(entryOf("/a", 1), entryOf("/c", 3))
	for path, want := range map[string]uint64{"/": 0, "/a": 1, "/b": 0, "/c": 3, "/d": 0} {
		if e, ok := s.At(path); e.ID.Inode != want || ok != (want != 0) {
			t.Errorf("At(%s) = %v, %v", path, e, ok)
		}
	}
	for range s.All() {
		break
	}
}

func TestPace(t *testing.T) {
	start := time.Unix(1000, 0)
	type look struct {
		after, took time.Duration // since the look before ended; its own time
		changed     bool
		want        time.Duration
	}
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		interval time.Duration
		looks    []look
	}{
		"idle":               {0, []look{{0, 0, false, 200 * ms}, {200 * ms, ms, false, 200 * ms}}},
		"interval":           {time.Second, []look{{0, ms, false, time.Second}}},
		"negative":           {-1, []look{{0, 0, false, 200 * ms}}},
		"one percent":        {0, []look{{0, 10 * ms, false, 990 * ms}}},
		"not blind":          {0, []look{{0, time.Minute, false, 5 * time.Second}}},
		"held up once":       {0, []look{{0, ms, false, 200 * ms}, {0, 40 * ms, false, 200 * ms}, {0, ms, false, 200 * ms}}},
		"held up for long":   {0, []look{{0, ms, false, 200 * ms}, {0, 100 * ms, false, 400 * ms}, {0, ms, false, 200 * ms}}},
		"held up at first":   {0, []look{{0, 40 * ms, false, 3960 * ms}, {0, ms, false, 200 * ms}}},
		"held up twice":      {0, []look{{0, ms, false, 200 * ms}, {0, 40 * ms, false, 200 * ms}, {0, 30 * ms, false, 2970 * ms}}},
		"slow from now on":   {0, []look{{0, ms, false, 200 * ms}, {0, 3 * time.Second, false, 5 * time.Second}, {0, 3 * time.Second, false, 5 * time.Second}}},
		"slow by turns":      {0, []look{{0, ms, false, 200 * ms}, {0, time.Second, false, 4 * time.Second}, {0, ms, false, 200 * ms}, {0, time.Second, false, 4 * time.Second}}},
		"slow, and eager":    {0, []look{{0, ms, false, 200 * ms}, {0, 40 * ms, true, 160 * ms}}},
		"long interval":      {time.Minute, []look{{0, time.Second, false, time.Minute}}},
		"eager for a second": {0, []look{{0, 0, true, 20 * ms}, {999 * ms, 0, false, 20 * ms}, {ms, 0, false, 200 * ms}}},
		"eager again":        {0, []look{{0, 0, true, 20 * ms}, {500 * ms, 0, true, 20 * ms}, {900 * ms, 0, false, 20 * ms}}},
		"eager and slow":     {0, []look{{0, 30 * ms, true, 120 * ms}}},
		"eager, very slow":   {0, []look{{0, 10 * time.Second, true, 5 * time.Second}}},
		"short interval":     {5 * ms, []look{{0, 0, true, 5 * ms}}},
	} {
		p := Pace{Interval: test.interval}
		now := start
		for i, l := range test.looks {
			now = now.Add(l.after)
			if got := p.Next(now, l.took, l.changed).Sub(now); got != l.want {
				t.Errorf("%s: look %d waits %v, want %v", name, i, got, l.want)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for want, c := range map[string]Config{
		"":                                  {Root: "/x"},
		"Config.Root is empty":              {},
		"Config.Interval is -1ns":           {Root: "/x", Interval: -1},
		"Config.MissingRoot is 2":           {Root: "/x", MissingRoot: 2},
		"Config.Root\nConfig.Interval":      {Interval: -time.Second},
		"Config.Interval\nMissingRoot is -": {Root: "/x", Interval: -time.Second, MissingRoot: -1},
	} {
		s, err := New(c)
		if (err == nil) != (want == "") || (s == nil) != (err != nil) {
			t.Errorf("New(%+v): %v", c, err)
			continue
		}
		for i, part := range strings.Split(want, "\n") {
			if err != nil && !strings.Contains(strings.Split(err.Error(), "\n")[i], part) {
				t.Errorf("New(%+v): %v, want %q", c, err, part)
			}
		}
	}
	s, err := New(Config{Root: "/x/"})
	if err != nil {
		t.Fatal(err)
	}
	c := s.cfg
	if _, ok := c.FS.(*afero.OsFs); !ok || c.Interval != DefaultInterval || c.MaxDepth != DefaultMaxDepth || c.MaxEntries != DefaultMaxEntries || c.RootGrace != DefaultRootGrace || c.Logger == nil {
		t.Errorf("the defaults are %+v", c)
	}
}

func TestClassify(t *testing.T) {
	const (
		file, dir, socket   = fs.FileMode(0), fs.ModeDir, fs.ModeSocket
		link, fifo, unknown = fs.ModeSymlink, fs.ModeNamedPipe, fs.ModeIrregular
	)
	is := func(typ fs.FileMode) answer { return answer{asked: true, typ: typ} }
	fails := func(err error) answer { return answer{asked: true, err: &fs.PathError{Op: "x", Path: "/x", Err: err}} }
	var no answer
	gone, refused, broken, loop := fails(syscall.ENOENT), fails(syscall.EACCES), fails(syscall.EIO), fails(syscall.ELOOP)
	for i, test := range []struct {
		listed         fs.FileMode
		lstat, stat    answer
		linux, windows class
	}{
		// The listing is enough, or not.
		{file, no, no, classNotSocket, classNotSocket},
		{fifo, no, no, classNotSocket, classNotSocket},
		{fs.ModeDevice, no, no, classNotSocket, classNotSocket},
		{fs.ModeDevice | fs.ModeCharDevice, no, no, classNotSocket, classNotSocket},
		{dir, no, no, classDirectory, classDirectory},
		{socket, no, no, askLstat, askLstat},
		{link, no, no, askLstat, askLstat},
		{unknown, no, no, askLstat, askLstat},
		// Lstat has the last word on the type.
		{socket, is(socket), no, classSocket, classSocket},
		{unknown, is(socket), no, classSocket, classSocket},
		{socket, is(file), no, classNotSocket, classNotSocket},
		{socket, is(dir), no, classDirectory, classDirectory},
		{unknown, is(dir), no, classDirectory, classDirectory},
		{unknown, is(fifo), no, classNotSocket, classNotSocket},
		{unknown, is(unknown), no, classMaybe, askStat},
		{link, is(socket), no, classSocket, classSocket},
		// Lstat fails.
		{socket, gone, no, classVanished, classVanished},
		{unknown, gone, no, classVanished, classVanished},
		{socket, refused, no, classMaybe, classMaybe},
		{unknown, refused, no, classMaybe, classMaybe},
		{socket, broken, no, classUnreadable, classMaybe},
		{unknown, broken, no, classUnreadable, classMaybe},
		{link, broken, no, classUnreadable, classMaybe},
		// Links.
		{link, is(link), no, askStat, askStat},
		{unknown, is(link), no, askStat, askStat},
		{link, is(link), is(socket), classSocket, classSocket},
		{link, is(link), is(file), classNotSocket, classNotSocket},
		{link, is(link), is(dir), classLinkToDirectory, classLinkToDirectory},
		{link, is(link), is(unknown), classMaybe, classMaybe},
		{link, is(link), gone, classDangling, classDangling},
		{link, is(link), refused, classUnreadable, classMaybe},
		{link, is(link), loop, classDangling, classDangling},
		{link, is(link), fails(syscall.ENOTDIR), classDangling, classDangling},
	} {
		for goos, want := range map[string]class{"linux": test.linux, "darwin": test.linux, "windows": test.windows} {
			if got := classify(goos, test.listed, test.lstat, test.stat); got != want {
				t.Errorf("case %d, %s: listed as %s: class %d, want %d", i, goos, typeWord(test.listed), got, want)
			}
		}
	}
}

// What was known weighs more than a look that cannot tell the type, but not more than one that tells another instance.
func TestOutweighs(t *testing.T) {
	id := func(inode uint64, typ fs.FileMode) Identity { return Identity{Stamp: Stamp{Inode: inode, Type: typ}} }
	refused := errors.New("refused")
	for i, test := range []struct {
		prev Entry
		f    finding
		want bool
	}{
		{Entry{ID: id(1, fs.ModeSocket)}, finding{err: refused}, true},
		{Entry{ID: id(0, fs.ModeSocket)}, finding{err: refused}, true},
		{Entry{ID: id(1, fs.ModeIrregular), Maybe: true}, finding{err: refused}, true},
		{Entry{ID: id(0, fs.ModeSocket), Maybe: true}, finding{err: refused}, false},
		{Entry{ID: id(1, fs.ModeSocket)}, finding{id: id(1, fs.ModeIrregular)}, true},
		{Entry{ID: id(1, fs.ModeSocket)}, finding{id: id(2, fs.ModeIrregular)}, false},
		{Entry{ID: id(1, fs.ModeIrregular), Maybe: true}, finding{id: id(1, fs.ModeIrregular)}, false},
	} {
		w := &scan{last: snapshotOf(test.prev)}
		if got := w.outweighs(0, test.f); got != test.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}

func TestTypeWord(t *testing.T) {
	for typ, want := range map[fs.FileMode]string{
		0: "file", fs.ModeDir: "directory", fs.ModeSymlink: "link", fs.ModeSocket: "socket", fs.ModeNamedPipe: "fifo",
		fs.ModeDevice: "device", fs.ModeDevice | fs.ModeCharDevice: "device", fs.ModeIrregular: "unknown",
	} {
		if got := typeWord(typ); got != want {
			t.Errorf("%v is %q, want %q", typ, got, want)
		}
	}
}
