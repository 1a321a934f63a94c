package scanner

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Quote returns a path as it is shown to people: as it is if it is plain, else in double quotes with everything that is not printable escaped (D10).
// Every path in a log line, table, error or message goes through it, so that a file name can neither forge a line nor hide its blanks.
// The result is always valid UTF-8 without control characters.
func Quote(path string) string {
	if path == "" || !plain(path) {
		return strconv.Quote(path)
	}
	return path
}

// Base64 returns a path in base64 if it is not UTF-8, which JSON cannot carry, else nothing: the value of the fields path_base64 and the like (D10).
func Base64(path string) string {
	if utf8.ValidString(path) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(path))
}

func plain(s string) bool {
	for _, r := range s {
		if r == ' ' || r == '"' || r == utf8.RuneError || !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}

// Clean makes one line of a text that comes from elsewhere: control characters and bytes that are not UTF-8 are escaped, and the rest is cut
// after limit bytes, at a character's boundary, with "…" in its place. limit must be at least 3.
func Clean(s string, limit int) string {
	if len(s) > limit {
		// Escapes only make it longer, so what is beyond the limit cannot matter.
		s = s[:min(len(s), limit+utf8.UTFMax)]
	}
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			_, size := utf8.DecodeRuneInString(s[i:])
			q := strconv.Quote(s[i : i+size])
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	out := b.String()
	if len(out) <= limit {
		return out
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(out[cut]) {
		cut--
	}
	return out[:cut] + "…"
}
