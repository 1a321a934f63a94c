package state_test

import (
	"os"
	"reflect"
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
