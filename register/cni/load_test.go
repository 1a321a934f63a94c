package cni

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocni "github.com/containerd/go-cni"
	"github.com/containernetworking/cni/pkg/utils"
	"github.com/google/go-cmp/cmp"

	"github.com/plugpoll/plugpoll/scanner"
)

// entries are what a scanner finds: pairs of a path and a content.
func entries(pairs ...string) (all []scanner.Entry) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, scanner.Entry{Path: pairs[i], File: &scanner.File{Content: pairs[i+1]}})
	}
	return all
}

const (
	netA = `{"name":"a","plugins":[{"type":"x"}]}`
	netB = `{"name":"b","cniVersion":"1.0.0","type":"y"}`
	netC = `{"name":"c","plugins":[{"type":"z"}]}`
)

// TestVerdicts says what becomes of each file.
func TestVerdicts(t *testing.T) {
	three := entries("/d/1.conflist", netA, "/d/2.conf", netB, "/d/3.conflist", netC)
	tests := []struct {
		name    string
		files   []scanner.Entry
		o       choose
		want    []string
		subdirs string
	}{
		{"nothing", nil, choose{}, nil, "[]"},
		{"all", three, choose{}, []string{"1.conflist used: a", "2.conf used: b", "3.conflist used: c"}, "[a c]"},
		{"the first", three, choose{max: 1}, []string{"1.conflist used: a", "2.conf not used (1.conflist comes first): b", "3.conflist not used (1.conflist comes first): c"}, "[a]"},
		{"two", three, choose{max: 2}, []string{"1.conflist used: a", "2.conf used: b", "3.conflist not used (2 networks come first): c"}, "[a]"},
		{"pinned", three, choose{max: 1, pin: "c"}, []string{"1.conflist not used (3.conflist comes first): a", "2.conf not used (3.conflist comes first): b", "3.conflist used: c"}, "[c]"},
		{
			"pinned and not there", three,
			choose{max: 1, pin: "x"},
			[]string{
				`1.conflist not used (nothing of this directory is used: there is no network "x"; there are a, b, c): a`,
				`2.conf not used (nothing of this directory is used: there is no network "x"; there are a, b, c): b`,
				`3.conflist not used (nothing of this directory is used: there is no network "x"; there are a, b, c): c`,
			},
			"[]",
		},
		{
			"broken behind the first", entries("/d/1.conflist", netA, "/d/2.conf", "{", "/d/3.conflist", netA),
			choose{max: 1},
			[]string{"1.conflist used: a", "2.conf broken [incomplete]", "3.conflist duplicate (1.conflist has this network already) [duplicate network]: a"},
			"[a]",
		},
		{
			"broken among them", entries("/d/1.conflist", netA, "/d/2.conf", "{", "/d/3.conflist", netC),
			choose{max: 2},
			[]string{
				"1.conflist not used (nothing of this directory is used: 2.conf cannot be): a", "2.conf broken [incomplete]",
				"3.conflist not used (nothing of this directory is used: 2.conf cannot be): c",
			},
			"[a]",
		},
		{
			"a subdirectory", entries("/d/1.conflist", netA, "/d/2.conflist", netC, "/d/a/1.conf", `{"type":"y"}`, "/d/c/1.conf", `{"type":"y"}`, "/d/other/1.conf", "{"),
			choose{max: 1},
			[]string{"1.conflist used: a", "2.conflist not used (1.conflist comes first): c", "a/1.conf used: a", "c/1.conf not used (the network c is not used)"},
			"[a]",
		},
		{
			"a broken file in a subdirectory", entries("/d/1.conflist", netA, "/d/a/1.conf", `{"type":"y"}`, "/d/a/2.conf", `{`, "/d/a/3.conf", `{`),
			choose{max: 1},
			[]string{"1.conflist broken (a file that belongs to it is broken: /d/a/2.conf) [incomplete]", "a/1.conf not used (the network a is not used)", "a/2.conf broken [incomplete]", "a/3.conf broken [incomplete]"},
			"[a]",
		},
		{"a key twice", entries("/d/1.conflist", `{"name":"b","name":"a","plugins":[{"type":"x"}],"x":1,"x":1}`), choose{max: 1}, []string{"1.conflist used (name is there more than once; the last one counts): a"}, "[a]"},
		{"no extension", entries("/d/conf", netA, "/d/x.y/", netA), choose{}, []string{"conf broken [list in a .conf]"}, "[]"},
		{"not read", []scanner.Entry{{Path: "/d/1.conf"}}, choose{max: 1}, []string{"1.conf broken [unreadable]"}, "[]"},
	}
	for _, test := range tests {
		// The order in which they come does not count.
		for range 2 {
			s := load("/d", test.files, test.o)
			checkSet(t, s)
			var got []string
			for _, f := range s.files {
				line := relative("/d", f.Path) + " " + string(f.State)
				if f.Reason != "" {
					line += " (" + f.Reason + ")"
				}
				if f.Error != nil {
					line += " [" + string(f.Error.Kind) + "]"
				}
				if f.Network != "" {
					line += ": " + f.Network
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s:\n%s", test.name, diff)
			}
			if got := fmt.Sprint(s.subdirs); got != test.subdirs {
				t.Errorf("%s: subdirectories %s, want %s", test.name, got, test.subdirs)
			}
			test.files = slices.Clone(test.files)
			slices.Reverse(test.files)
		}
	}
}

// TestRevision says which changes are one (CN2).
func TestRevision(t *testing.T) {
	base := []string{"/d/1.conflist", netA, "/d/2.conf", "{", "/d/a/1.conf", `{"type":"y"}`}
	first := load("/d", entries(base...), choose{}).revision
	problem := func(p scanner.Problem, detail string) []scanner.Entry {
		all := entries(base...)
		all[1].File = &scanner.File{Problem: p, Detail: detail}
		return all
	}
	tests := []struct {
		name  string
		dir   string
		files []scanner.Entry
		same  bool
	}{
		{"the same", "/d", entries(base...), true},
		{"another directory", "/e/f/", entries("/e/f/1.conflist", netA, "/e/f/2.conf", "{", "/e/f/a/1.conf", `{"type":"y"}`), true},
		{"something that nobody uses", "/d", entries(append(base, "/d/other.d/1.conf", "x", "/d/a/1.json", "x", "/d/a/1.conflist", "{")...), true},
		{"nothing", "/d", nil, false},
		{"a blank more", "/d", entries("/d/1.conflist", netA+" ", "/d/2.conf", "{", "/d/a/1.conf", `{"type":"y"}`), false},
		{"another name", "/d", entries("/d/1.conflist", netA, "/d/3.conf", "{", "/d/a/1.conf", `{"type":"y"}`), false},
		{"a file that is broken in another way", "/d", entries("/d/1.conflist", netA, "/d/2.conf", "[", "/d/a/1.conf", `{"type":"y"}`), false},
		{"a part of a network", "/d", entries("/d/1.conflist", netA, "/d/2.conf", "{", "/d/a/1.conf", `{"type":"z"}`), false},
		{"a part of a network less", "/d", entries("/d/1.conflist", netA, "/d/2.conf", "{"), false},
		{"a bound of two files that moves", "/d", entries("/d/1.conflist", netA[:len(netA)-1], "/d/2.conf", "}{", "/d/a/1.conf", `{"type":"y"}`), false},
		{"unreadable", "/d", problem(scanner.ProblemUnreadable, "x"), false},
	}
	seen := map[Revision]string{}
	for _, test := range tests {
		got := load(test.dir, test.files, choose{}).revision
		if (got == first) != test.same {
			t.Errorf("%s: %s, first %s", test.name, got, first)
		}
		if other := seen[got]; other != "" && !test.same {
			t.Errorf("%s has the revision of %s", test.name, other)
		}
		seen[got] = test.name
	}
	if a, b := load("/d", entries("/d/1.conf", "X", "/d/2.conf", "Y"), choose{}).revision, load("/d", entries("/d/1.conf", "X2.confY"), choose{}).revision; a == b {
		t.Error("two files are one that holds the other")
	}
	if a, b := load("/d", problem(scanner.ProblemUnreadable, "x"), choose{}).revision, load("/d", problem(scanner.ProblemUnreadable, "y"), choose{}).revision; a != b {
		t.Error("the detail of a problem counts")
	}
	if a, b := load("/d", problem(scanner.ProblemUnreadable, ""), choose{}).revision, load("/d", problem(scanner.ProblemTooLarge, ""), choose{}).revision; a == b {
		t.Error("the kind of a problem does not count")
	}
}

// TestConfErrorJSON holds the fields to what is documented, and a path that is no text to D10.
func TestConfErrorJSON(t *testing.T) {
	s := load("/d", entries("/d/\xff.conf", "{\n"), choose{})
	got, err := json.Marshal(s.files)
	if err != nil {
		t.Fatal(err)
	}
	const fix = `add what is missing, or write it under another name and rename it when it is complete`
	want := `[{"path":"/d/\ufffd.conf","path_base64":"L2Qv/y5jb25m","state":"broken","error":` +
		`{"path":"/d/\ufffd.conf","path_base64":"L2Qv/y5jb25m","line":2,"column":1,"kind":"incomplete","text":"the file ends in the middle: the { of line 1 is not closed","fix":"` + fix + `"}}]`
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := s.err.Error(), `"/d/\xff.conf":2:1: the file ends in the middle: the { of line 1 is not closed; `+fix; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// FuzzLoad loads three files and one of a subdirectory. What it uses go-cni accepts, and what it refuses it can explain.
func FuzzLoad(f *testing.F) {
	for _, content := range seeds {
		f.Add(content, netB, content, uint8(0), "")
		f.Add(netA, content, netC, uint8(2), "a")
		f.Add(netA, netB, content, uint8(1), "a")
	}
	f.Fuzz(func(t *testing.T, first, second, below string, maxNum uint8, pin string) {
		files := entries("/d/1.conflist", first, "/d/2.conf", second, "/d/3.conflist", second, "/d/a/1.conf", below, "/d/a/2.conf", second)
		o := choose{max: int(maxNum % 4), pin: pin}
		s := load("/d", files, o)
		checkSet(t, s)
		if again := load("/d", files, o); again.revision != s.revision || len(again.networks) != len(s.networks) {
			t.Error("it is not the same twice")
		}
		if o.max > 0 && len(s.networks) > o.max {
			t.Errorf("%d networks, at most %d are wanted", len(s.networks), o.max)
		}
		if pin != "" && len(s.networks) > 0 && s.networks[0].name != pin {
			t.Errorf("%q is pinned and %q comes first", pin, s.networks[0].name)
		}
		for _, n := range s.networks {
			if _, err := gocni.New(gocni.WithConfListBytes(n.list.Bytes)); err != nil {
				t.Errorf("go-cni refuses %s: %v", n.list.Bytes, err)
			}
			if len(n.list.Plugins) != len(n.plugins) {
				t.Errorf("%d plugins and %d types", len(n.list.Plugins), len(n.plugins))
			}
		}
		if len(s.networks) == 0 {
			return
		}
		made, err := instance(s.networks, instanceOptions{loopback: true})
		if err != nil {
			t.Fatal(err)
		}
		config := made.GetConfig()
		if len(config.Networks) != len(s.networks)+1 {
			t.Errorf("%d networks in the instance", len(config.Networks))
		}
		for i, n := range s.networks {
			if got := config.Networks[i].Config; got.Name != n.name || got.CNIVersion != n.cniVersion || len(got.Plugins) != len(n.plugins) {
				t.Errorf("network %d: %+v", i, got)
			}
		}
	})
}

// seeds are beginnings of what may be in a file.
var seeds = []string{
	"", "{", "{}", "null", "[]", " ", "\x00", "\xef\xbb\xbf{}", "\xff\xfe{\x00", "{\x00}\x00", "---\na: b", "# x", "//", "{'a'", "{a:1}", `{"a":1,}`, `{"a":1 "b":2}`,
	`{"name":"a"}`, netA, netB, netC, `{"name":"a","plugins":[{"type":"x"},{"type":"y","ipam":{"type":"z"},"n":1e30}],"disableCheck":"true"}`,
	`{"name":"a","cniVersion":"1.2.0","cniVersions":["0.4.0","1.1.0"],"plugins":[{"type":"x"}]}`, `{"name":"a","cniVersions":["9.9"],"plugins":[{"type":"x"}]}`,
	`{"name":"a","loadOnlyInlinedPlugins":true,"plugins":[{"type":"x"}]}`, `{"name":"a","plugins":[null,{"type":5},"x"]}`, `{"Name":"a","TYPE":"x","type":"y/z"}`,
	`{"type":"x","capabilities":{"a":1}}`, `{"type":"x","n":1e999}`, `{"name":"a","plugins":[{"type":"x","dns":{"search":[1]}}]}`, `{"name":"a\u0000","type":"\ud800"}`,
	`{"name":"a","name":5}`, `{"plugins":{},"plugins":[]}`, "{\"name\":\"a\n\"}", "{\"a\":“b”}", "\"\\x\"",
}

// checkSet holds a set to what is promised of every one.
func checkSet(t *testing.T, s set) {
	t.Helper()
	if len(s.revision) != 2*revisionBytes {
		t.Errorf("revision %q", s.revision)
	}
	if s.err != nil && s.networks != nil {
		t.Error("a set that cannot be used has networks")
	}
	if s.err != nil {
		checkError(t, s.err)
	}
	names := map[string]bool{}
	for _, n := range s.networks {
		if utils.ValidateNetworkName(n.name) != nil || names[n.name] || len(n.plugins) == 0 || n.list == nil || n.file == "" {
			t.Errorf("network %+v", n)
		}
		names[n.name] = true
	}
	used := 0
	for _, f := range s.files {
		switch f.State {
		case Used:
			used++
			if !names[f.Network] || f.Error != nil {
				t.Errorf("used: %+v", f)
			}
		case NotUsed:
			if f.Reason == "" || f.Error != nil {
				t.Errorf("not used: %+v", f)
			}
		case Duplicate, Broken:
			if f.Error == nil {
				t.Fatalf("no error: %+v", f)
			}
			checkError(t, f.Error)
		default:
			t.Errorf("state of %+v", f)
		}
		if text := f.Reason + strings.Join(f.Plugins, "") + f.CNIVersion; scanner.Clean(text, 1<<20) != text {
			t.Errorf("raw text in %+v", f)
		}
	}
	if used < len(s.networks) {
		t.Errorf("%d files are used for %d networks", used, len(s.networks))
	}
}

// checkError wants one line of bounded length that people can read.
func checkError(t *testing.T, e *ConfError) {
	t.Helper()
	text := e.Error()
	if scanner.Clean(text, 1<<20) != text || !utf8.ValidString(text) {
		t.Errorf("raw text in %q", text)
	}
	if e.Kind == "" || e.Text == "" || e.Fix == "" || e.Path == "" || (e.Line > 0) != (e.Column > 0) {
		t.Errorf("an error lacks something: %+v", e)
	}
	if len(e.Text)+len(e.Fix) > 1500 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// S1: whoever stops does not wait for the files that were not parsed yet.
func TestLoadIsStopped(t *testing.T) {
	done := make(chan struct{})
	o := choose{done: done}
	entries := []scanner.Entry{{Path: "/d/10-a.conflist", File: &scanner.File{Content: list("a")}}}
	if s := load("/d", entries, o); len(s.files) != 1 {
		t.Errorf("before: %+v", s)
	}
	close(done)
	if s := load("/d", entries, o); s.files != nil || s.revision != "" {
		t.Errorf("after: %+v", s)
	}
}

// What a configuration says of a former result is dropped: it is the one part that libcni keeps in pieces.
func TestFormerResultIsDropped(t *testing.T) {
	content := `{"cniVersion":"1.0.0","name":"a","plugins":[{"type":"x","prevResult":{"ips":[]}}]}`
	s := load("/d", []scanner.Entry{{Path: "/d/10-a.conflist", File: &scanner.File{Content: content}}}, choose{})
	if p := s.networks[0].list.Plugins[0]; p.Network.RawPrevResult != nil || !strings.Contains(string(p.Bytes), "prevResult") {
		t.Errorf("it is kept: %+v", p.Network)
	}
}

// A file that has not changed is not parsed again, and what comes of it is the same.
func TestUnchangedIsNotParsed(t *testing.T) {
	entry := func(name, content string) scanner.Entry {
		return scanner.Entry{Path: "/d/" + name, File: &scanner.File{Content: content}}
	}
	a, b, half, more := entry("10-a.conflist", list("a")), entry("20-b.conflist", list("b")), entry("30.conf", broken), entry("a/1.conf", `{"type":"ptp"}`)
	entries := []scanner.Entry{a, b, half}
	first := load("/d", entries, choose{max: 1})
	for _, o := range []choose{{max: 1}, {max: 2}, {max: 1, pin: "b"}, {max: 0}} {
		fresh := load("/d", entries, o)
		o.before = &first
		again := load("/d", entries, o)
		for path, c := range again.parsed {
			was := first.parsed[path]
			if same := c.err != nil && c.err == was.err || c.err == nil && &c.network.plugins[0] == &was.network.plugins[0]; !same && c.view.State != Used && again.err == nil {
				t.Errorf("%s was parsed again", path)
			}
		}
		if got, want := outcome(again), outcome(fresh); got != want {
			t.Errorf("%+v: %s\nwant %s", o, got, want)
		}
	}
	for _, changed := range [][]scanner.Entry{{a, b, half, more}, {a, b}, {a, entry("20-b.conflist", list("c")), half}, {entry("10-a.conflist", broken), b}} {
		second := load("/d", changed, choose{max: 2, before: &first})
		if got, want := outcome(second), outcome(load("/d", changed, choose{max: 2})); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if got, want := outcome(load("/d", entries, choose{max: 2, before: &second})), outcome(load("/d", entries, choose{max: 2})); got != want {
			t.Errorf("back: %s\nwant %s", got, want)
		}
	}
}

// outcome is all that a set says.
func outcome(s set) string {
	text := fmt.Sprintf("%s %v %v", s.revision, s.subdirs, s.err)
	for _, n := range s.networks {
		text += fmt.Sprintf("; %s %s %q %s", n.name, n.file, n.plugins, n.list.Bytes)
	}
	for _, f := range s.files {
		text += fmt.Sprintf("; %s %s %q %q %q %v", f.Path, f.State, f.Reason, f.Network, f.Plugins, f.Error)
	}
	return text
}
