package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// printJSON writes v as one line of printable text.
func printJSON(w io.Writer, v any) error {
	_, err := printableJSON{w}.encode(v)
	return err
}

// printableJSON writes lines of JSON with what a terminal would obey escaped: encoding/json leaves DEL, the C1 control characters and the marks that
// change the direction of text as they are, and U+009B does there what ESC [ does (D10).
type printableJSON struct{ io.Writer }

func (p printableJSON) encode(v any) (int, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return 0, err
	}
	return p.Write(b.Bytes())
}

// Write takes whole lines. Outside of its strings JSON is plain ASCII, and in them what has to be escaped never stands behind a backslash, so that
// nothing of its structure has to be known.
func (p printableJSON) Write(line []byte) (int, error) {
	if _, err := p.Writer.Write(escape(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

func escape(text []byte) []byte {
	var out []byte
	done := 0 // what is in out already, of text
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r != '\n' && (!strconv.IsPrint(r) || r == utf8.RuneError && size == 1) {
			out = append(out, text[done:i]...)
			done = i + size
			if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
				out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
		}
		i += size
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}
