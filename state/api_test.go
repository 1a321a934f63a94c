package state_test

import (
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

	"github.com/plugpoll/plugpoll/state"
)

// TestAPIDocument keeps docs/api.md complete: every JSON field of View and Event stands in it.
func TestAPIDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	jsonFields(reflect.TypeFor[state.Event](), fields)
	if len(fields) < 30 {
		t.Fatalf("only %d fields were found", len(fields))
	}
	for field := range fields {
		if !strings.Contains(string(text), "`"+field+"`") {
			t.Errorf("docs/api.md does not explain `%s`", field)
		}
	}
}

// TestAPIWords: and so does every word that a field may have.
func TestAPIWords(t *testing.T) {
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	words := words(t, "Phase", "EventKind", "Reason", "Acknowledged", "Health")
	if len(words) < 40 {
		t.Fatalf("only %d words were found: %q", len(words), words)
	}
	for _, word := range words {
		if !strings.Contains(string(text), "`"+word+"`") {
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
