package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plugpoll/plugpoll/scanner"
)

var update = flag.Bool("update", false, "write testdata/*.golden.json anew")

// golden compares v's JSON with a file.
func golden(t *testing.T, file string, v any) {
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
}

// The JSON of a View and of Events with every field: docs/api.md.
func TestViewGolden(t *testing.T) {
	d := drive(t, Config{Name: "kata", ConfDir: "/net.d\xff", DefaultNetwork: "a"})
	golden(t, "testdata/view-empty.golden.json", d.c.show(day))
	at := func(name, content string) scanner.Entry {
		return scanner.Entry{Path: "/net.d\xff/" + name, File: &scanner.File{Content: content}}
	}
	// A version of 1.1.0 has everything: plugins in a sub-directory, and STATUS.
	good := at("10-a.conflist", strings.Replace(listOf("1.1.0", "a", "bridge", "gone"), `"bridge"`, `"bridge", "ipam": {"type": "host-local"}`, 1))
	d.poll(nil, good)
	d.poll(nil, good)
	var events []Event
	answer := func(gone []Missing, err error) {
		for len(d.did) > 0 {
			e := d.did[0]
			d.did = d.did[1:]
			switch e := e.(type) {
			case build:
				made, failed := instance(e.networks, instanceOptions{})
				d.step(built{e.id, made, failed})
			case findPlugins:
				d.step(found{e.round, gone, map[string]string{"bridge": "/bin/bridge"}, map[string]string{"host-local": `IPAM plugin "host-local": it is in none of /bin; install it in /bin`}})
			case askPlugins:
				d.step(told{e.round, err})
			case emit:
				events = append(events, e.event)
			}
		}
	}
	answer(nil, nil)
	golden(t, "testdata/view-ready.golden.json", d.c.show(d.now))
	d.step(checkAsked{})
	answer(nil, errors.New("agent is not up"))
	golden(t, "testdata/view-status.golden.json", d.c.show(d.now))
	d.step(retryAsked{})
	answer([]Missing{{Type: "gone", Networks: []string{"a"}, Dirs: []string{binDir}, Text: "it is in none of /bin", Fix: "install it in /bin"}}, nil)
	golden(t, "testdata/view-missing.golden.json", d.c.show(d.now))
	d.step(retryAsked{})
	answer(nil, nil)
	failing := &scanner.Error{Op: "list", Path: "/net.d\xff", Err: os.ErrPermission}
	d.c.cfg.DefaultNetwork = ""
	for range 2 {
		d.poll(nil, at("10-a.conflist", broken), at("20-b.conf\n.conf", `{"cniVersion": "0.4.0", "name": "b", "type": "ptp"}`))
	}
	for range 2 {
		d.poll(failing, at("20-b.conf\n.conf", ""))
	}
	answer(nil, nil)
	d.now = d.now.Add(time.Second)
	d.step(checkAsked{}) // it runs
	d.step(found{round: d.c.health.rounds})
	golden(t, "testdata/view-stale.golden.json", d.c.show(d.now))
	for _, content := range []string{"c", "a"} {
		for range 2 {
			d.poll(nil, at("10-a.conflist", list(content)))
		}
		answer(nil, nil)
		d.step(told{round: d.c.health.rounds})
		answer(nil, nil)
	}
	for range 2 {
		d.poll(nil)
	}
	answer(nil, nil)
	golden(t, "testdata/events.golden.json", events)
}

// TestAPIDocument keeps docs/api.md complete: every JSON field of View and Event stands in it, and every word that a field may have.
func TestAPIDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "## CNI\n")
	if !ok {
		t.Fatal("docs/api.md has no section CNI")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	fields := map[string]bool{}
	jsonFields(reflect.TypeFor[Event](), fields)
	if len(fields) < 50 {
		t.Fatalf("only %d fields were found", len(fields))
	}
	for field := range fields {
		if !strings.Contains(section, "`"+field+"`") {
			t.Errorf("docs/api.md does not explain `%s`", field)
		}
	}
	words := words(t, "State", "EventKind", "FileState", "Kind")
	if len(words) < 60 {
		t.Fatalf("only %d words were found: %q", len(words), words)
	}
	for _, word := range words {
		if !strings.Contains(section, "`"+word+"`") {
			t.Errorf("docs/api.md does not explain `%s`", word)
		}
	}
}

// words returns the values of the package's constants of these types.
func words(t *testing.T, types ...string) (words []string) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for node := range ast.Preorder(parsed) {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				continue
			}
			typ, _ := spec.Type.(*ast.Ident)
			value, _ := spec.Values[0].(*ast.BasicLit)
			if typ == nil || value == nil || !slices.Contains(types, typ.Name) {
				continue
			}
			word, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, word)
		}
	}
	return words
}

func jsonFields(typ reflect.Type, fields map[string]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		jsonFields(typ.Elem(), fields)
		return
	case reflect.Struct:
	default:
		return
	}
	if typ == reflect.TypeFor[time.Time]() {
		return
	}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			if name != "" {
				fields[name] = true
			}
			jsonFields(f.Type, fields)
		}
	}
}
