package cni

import (
	"fmt"
	"strings"
	"testing"
)

func TestPosition(t *testing.T) {
	tests := []struct {
		before       string
		line, column int
	}{
		{"", 1, 1},
		{"abc", 1, 4},
		{"abc\n", 2, 1},
		{"abc\r\n", 2, 1},
		{"abc\r", 1, 5},
		{"\n\n", 3, 1},
		{"\t\t", 1, 3},
		{"ä€𝄞", 1, 4},
		{"x\nä\t€", 2, 4},
		{"\xff\xfe", 1, 3},
		{"\xe2\x82", 1, 3}, // two of the three bytes of a character
		{"e\u0301", 1, 3},  // a letter and its accent are two characters
	}
	for _, test := range tests {
		content := test.before + "X\n\n"
		if line, column := position(content, len(test.before)); line != test.line || column != test.column {
			t.Errorf("X in %q is at %d:%d, want %d:%d", content, line, column, test.line, test.column)
		}
	}
	if line, column := position("ab", 5); line != 1 || column != 3 {
		t.Errorf("what is behind the end is at %d:%d", line, column)
	}
}

func TestLocate(t *testing.T) {
	const content = `
{ "a" : 1 ,"deep": [[1, {"a": 2}], {"x": [ 5 ,"y"]}],
  "A": {"b": {"c": null}}, "twice": {"x": 1}, "twice": {"y": 1, "z": {}},
	"ü": true }`
	tests := []struct {
		path []any
		want string // what the text goes on with there
	}{
		{nil, `{ "a"`},
		{[]any{"a"}, `"a" : 1`},
		{[]any{"A"}, `"A": {`},
		{[]any{anyCase("a")}, `"A": {`},
		{[]any{"A", "b", "c"}, `"c": null`},
		{[]any{"A", "b", "nothing"}, `"b": {`},
		{[]any{"A", anyCase("B"), anyCase("C")}, `"c": null`},
		{[]any{"deep", 0}, `[1, {`},
		{[]any{"deep", 0, 1, "a"}, `"a": 2`},
		{[]any{"deep", 1, "x", 1}, `"y"]`},
		{[]any{"deep", 2}, `"deep": `},
		{[]any{"twice"}, `"twice": {"y"`},
		{[]any{"twice", "x"}, `"twice": {"y"`},
		{[]any{"twice", "z"}, `"z": {}`},
		{[]any{"ü"}, `"ü": true`},
		{[]any{"a", "b"}, `"a" : 1`},
		{[]any{0}, `{ "a"`},
		{[]any{"nothing"}, `{ "a"`},
	}
	for _, test := range tests {
		if at := locate(content, test.path...); !strings.HasPrefix(content[at:], test.want) {
			t.Errorf("%v is at %q", test.path, content[at:])
		}
	}
	if got := fmt.Sprint(keys(content)); got != "[a deep A twice twice ü]" {
		t.Errorf("keys: %s", got)
	}
	deep := `{"x":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `,"y":1}`
	if at := locate(deep, "y"); deep[at:] != `"y":1}` {
		t.Errorf("behind what is deep: %d of %d", at, len(deep))
	}
}
