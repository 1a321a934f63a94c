package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"regexp"
	"strconv"

	"sigs.k8s.io/yaml"
)

// printYAML writes JSON as YAML. YAML leaves marks that change the direction of text as they are, so a string that has something unprintable in it goes
// through the conversion as a word of ours, and comes out in quotes (D10).
func printYAML(w io.Writer, content []byte) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	word := "Q" + rand.Text()
	marked, err := json.Marshal(mark(v, word))
	if err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(marked)
	if err != nil {
		return err
	}
	text = regexp.MustCompile(word+`([0-9a-f]+)Q`).ReplaceAllFunc(text, func(m []byte) []byte {
		hidden, _ := hex.DecodeString(string(m[len(word) : len(m)-1])) // it is what mark made
		return escape(encoded(string(hidden)))
	})
	_, err = w.Write(text)
	return err
}

func encoded(s string) []byte {
	line, _ := json.Marshal(s) // a string is never refused
	return line
}

// mark replaces the strings that are not plain.
func mark(v any, word string) any {
	switch v := v.(type) {
	case string:
		for _, r := range v {
			if !strconv.IsPrint(r) {
				return word + hex.EncodeToString([]byte(v)) + "Q"
			}
		}
	case []any:
		for i := range v {
			v[i] = mark(v[i], word)
		}
	case map[string]any:
		for k, x := range v {
			delete(v, k)
			key, _ := mark(k, word).(string)
			v[key] = mark(x, word)
		}
	}
	return v
}
