package cni

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// position returns the line and the column of what stands at an offset, as ConfError counts them.
func position(content string, offset int) (line, column int) {
	offset = max(0, min(offset, len(content)))
	before := content[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// anyCase is a key as encoding/json finds the field of a struct: in upper or lower case.
type anyCase string

// locate returns where a key, or an element of an array, begins: path holds keys (string, anyCase) and indexes (int) from the top. Of a key that
// is there twice it is the last one, which is the one that counts. What is not there stands where the innermost of what surrounds it does.
// content must be JSON.
func locate(content string, path ...any) int {
	l := locator{content: content, dec: json.NewDecoder(strings.NewReader(content))}
	l.at = l.next()
	l.value(path)
	return l.at
}

type locator struct {
	content string
	dec     *json.Decoder
	at      int
}

// next is where the next token begins.
func (l *locator) next() int {
	at := int(l.dec.InputOffset())
	for at < len(l.content) && strings.IndexByte(" \t\r\n,:", l.content[at]) >= 0 {
		at++
	}
	return at
}

// value reads one value. It goes no deeper than the path.
func (l *locator) value(path []any) {
	token, err := l.dec.Token()
	if err != nil {
		return
	}
	switch token {
	case json.Delim('{'):
		for l.dec.More() {
			at := l.next()
			key, err := l.dec.Token()
			if err != nil {
				return
			}
			l.step(at, len(path) > 0 && isKey(path[0], key), path)
		}
	case json.Delim('['):
		for i := 0; l.dec.More(); i++ {
			l.step(l.next(), len(path) > 0 && path[0] == i, path)
		}
	default:
		return
	}
	_, _ = l.dec.Token() // the end of it
}

func (l *locator) step(at int, match bool, path []any) {
	if match {
		l.at = at
		l.value(path[1:])
		return
	}
	l.skip()
}

// skip reads one value, however deep. To take it apart takes twenty times as long.
func (l *locator) skip() {
	var value json.RawMessage
	_ = l.dec.Decode(&value) // content is JSON
}

func isKey(want any, key json.Token) bool {
	name, _ := key.(string)
	if fold, ok := want.(anyCase); ok {
		return strings.EqualFold(string(fold), name)
	}
	return want == name
}

// keys returns the keys of the object at the top, in order, each as often as it is there.
func keys(content string) (names []string) {
	l := locator{content: content, dec: json.NewDecoder(strings.NewReader(content))}
	if token, err := l.dec.Token(); err != nil || token != json.Delim('{') {
		return nil
	}
	for l.dec.More() {
		key, err := l.dec.Token()
		if err != nil {
			return names
		}
		name, _ := key.(string)
		names = append(names, name)
		l.skip()
	}
	return names
}
