package state

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plugpoll/plugpoll/scanner"
)

var update = flag.Bool("update", false, "write testdata/*.golden.json anew")

// golden compares v's JSON with a file.
func golden(t *testing.T, file string, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, diff)
	}
	if strings.Contains(b.String(), "0001-01-01") {
		t.Error("a time that is not set is shown")
	}
	return b.Bytes()
}

// The JSON of a View with every field and every phase: docs/api.md.
func TestViewGolden(t *testing.T) {
	d := drive(t, Config{Probes: 2, Calls: 1, Roots: []Root{{Path: dir, Filesystem: "OsFs"}, {Path: "/bad\xff", Filesystem: "MemMapFS"}, {Path: "/never"}}})
	d.step(HandlerAdded{Type: dra})
	d.step(HandlerAdded{Type: csi})
	d.step(HandlerAdded{Type: "Exclusive", Exclusive: true})

	link := sock("1-registered.sock", 1, 1735787045000000001)
	link.ID.Link = scanner.Stamp{Device: 1, Inode: 101, ModTime: 1735787045000000002, ChangeTime: 1735787045000000003}
	d.scan(link)
	d.answers(1, csi, "csi.example.com")
	d.ok(2)
	d.ok(3)
	d.step(Notified{ID: 4, Err: errTest})
	d.step(Reported{3, Report{Health: HealthServing, Message: "all\nwell", Detail: map[string]any{"volumes": 3}}})

	maybe := sock("2-ignored.sock", 0, 0)
	maybe.Maybe = true
	d.scan(link, maybe)
	d.step(Asked{ID: 5, Err: errTest, Failure: Unsupported})
	three, four, five := sock("3-backoff.sock", 3, 3), sock("4-rejected.sock", 4, 4), sock("5-deregistering.sock", 5, 5)
	d.scan(link, maybe, three)
	d.refused(6)
	d.scan(link, maybe, three, four)
	d.step(Asked{ID: 7, Info: Info{Type: "Other", Name: "o", Endpoint: "/bad\xff"}, Connected: true})
	d.told(8)
	d.scan(link, maybe, three, four, five)
	d.register(9, dra, "d")
	eight, nine := sock("8-standby.sock", 9, 9), sock("9-unreachable.sock", 10, 10)
	d.scan(link, maybe, three, four, five, eight)
	d.register(13, "Exclusive", "x")
	d.scan(link, maybe, three, four, five, eight, nine)
	d.play(d.by(17, nil, "Exclusive", "x"))
	d.ended(17, false)
	d.looks(22, nine)
	d.refused(23)
	stale := link
	stale.Stale = &scanner.Stale{Since: d.now, Err: errTest}
	six, blank := sock("6-registering \xff.sock", 6, 6), sock("7 a\tb\n.sock", 7, 7)
	d.last[dir] = scanner.NewSnapshot([]scanner.Entry{stale, maybe, three, four, six, blank, eight, nine}, []scanner.Ignored{
		{Dir: dir, Reason: scanner.NotSocket, Count: 2, Examples: []string{"a b", "b\xff\n"}},
		{Dir: dir, Reason: scanner.Unreadable, Count: 1, Examples: []string{"c"}, Detail: "permission denied"},
		{Dir: dir + "/bad\xff", Reason: scanner.TooDeep, Count: 1, Examples: []string{"deep"}},
		{Dir: dir + "/new\nline", Reason: scanner.DotName, Count: 1, Examples: []string{".x"}},
	})
	d.step(Scanned{Root: dir, Snapshot: d.last[dir], Err: errTest, Started: d.now, Ended: d.now.Add(-time.Second)})
	d.step(Scanned{Root: "/bad\xff", Snapshot: scanner.NewSnapshot([]scanner.Entry{at("/bad\xff/x.sock", 8, 8)}, nil), Ended: d.now})
	d.now = d.now.Add(450 * time.Millisecond)
	d.step(Scanned{Root: "/bad\xff", Snapshot: nil, Ended: d.now.Add(-1500 * time.Millisecond)})

	v := d.core.View(d.now)
	b := golden(t, "testdata/view.golden.json", v)
	phases := map[Phase]bool{}
	for _, s := range v.Sockets {
		phases[s.Phase] = true
	}
	for _, p := range []Phase{Pending, Registering, Registered, Backoff, Rejected, NotPlugin, Deregistering, Standby, Unreachable} {
		if !phases[p] {
			t.Errorf("no socket is %s", p)
		}
	}
	fields := func(v any) {
		for f := range reflect.TypeOf(v).Fields() {
			if f.Name == "HolderBase64" {
				continue // like the others
			}
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" && tag != "-" && !bytes.Contains(b, []byte(`"`+tag+`":`)) {
				t.Errorf("%T: no field %s", v, tag)
			}
		}
	}
	for _, v := range []any{View{}, RootView{}, IgnoredView{}, SocketView{}, Plugin{}, StaleView{}, ReportView{}, CallView{}, scanner.Identity{}, scanner.Stamp{}} {
		fields(v)
	}
}

// An empty View has empty lists, not null.
func TestEmptyViewGolden(t *testing.T) {
	golden(t, "testdata/view-empty.golden.json", New(Config{}).View(start))
}

// O2: the phases of one life, and since when each is.
func TestPhases(t *testing.T) {
	d := drive(t, Config{Probes: 1})
	d.step(HandlerAdded{Type: csi})
	since := func(want Phase) {
		t.Helper()
		s := d.socket(dir + "/a")
		if s.Phase != want || !s.Since.Equal(d.now) {
			t.Errorf("phase %s since %v, want %s since %v", s.Phase, s.Since, want, d.now)
		}
		d.now = d.now.Add(time.Millisecond)
	}
	d.scan(sock("a", 1, 1), sock("b", 2, 1)) // b takes the only slot
	since(Pending)
	d.refused(1)
	since(Registering)
	d.now = d.now.Add(time.Millisecond)
	d.answers(2, csi, "x")
	if s := d.socket(dir + "/a"); s.Phase != Registering || s.Since.Equal(d.now) {
		t.Errorf("one phase, and since %v", s.Since)
	}
	d.ok(3)
	d.ok(4)
	since(Registered)
	if found := d.socket(dir + "/a").Found; !found.Equal(start) {
		t.Errorf("found %v", found)
	}
	d.told(5)
	d.scan(sock("b", 2, 1))
	since(Deregistering)
}

// O2: the sockets of a View are built after a change, and only then.
func TestViewIsCached(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.register(1, csi, "x")
	d.core.View(d.now)
	built := d.core.viewed
	for range 3 {
		d.core.Step(d.now, Scanned{Root: dir, Snapshot: d.last[dir]})
		d.core.Step(d.now, Tick{})
		d.core.View(d.now)
	}
	if d.core.viewed != built || d.core.version != built {
		t.Error("it is built without a change")
	}
	d.step(Reported{3, Report{Message: "hello"}})
	if d.socket(dir+"/a").Report == nil {
		t.Error("it is not built after one")
	}
}

// What a View shows is its reader's: another change does not reach it.
func TestViewIsACopy(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	before := d.core.View(d.now)
	want := before.Sockets[0]
	d.answers(1, csi, "x")
	d.scan(sock("a", 2, 2))
	before.Sockets[0].Tries = 99
	if d.socket(dir+"/a").Tries == 99 {
		t.Error("a reader can change it")
	}
	before.Sockets[0].Tries = 0
	if diff := cmp.Diff(want, before.Sockets[0]); diff != "" {
		t.Errorf("it changed:\n%s", diff)
	}
}
