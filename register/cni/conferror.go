package cni

import (
	"fmt"

	"github.com/plugpoll/plugpoll/scanner"
)

// Kind is what is wrong with a file (CN11). The texts are part of the JSON interface.
type Kind string

// The kinds. The first four are problems that the scanner has with a file, in its words.
const (
	KindUnreadable Kind = "unreadable"
	KindDangling   Kind = "dangling link"
	KindTooLarge   Kind = "too large"
	KindNotRegular Kind = "not regular"
	KindTooMany    Kind = "too many files"

	KindEmpty      Kind = "empty"           // nothing in it, or blanks only
	KindBOM        Kind = "byte order mark" // UTF-8 with the mark in front
	KindUTF16      Kind = "UTF-16"          // with and without the mark
	KindUTF32      Kind = "UTF-32"
	KindNUL        Kind = "NUL bytes"  // room was made for it, and it was not written
	KindIncomplete Kind = "incomplete" // it ends in the middle

	KindTrailingComma Kind = "trailing comma"
	KindMissingComma  Kind = "missing comma"
	KindComment       Kind = "comment"
	KindQuotes        Kind = "wrong quotes" // single or typographic ones
	KindUnquotedKey   Kind = "unquoted key"
	KindLineBreak     Kind = "control character in a string"
	KindYAML          Kind = "YAML"
	KindTooDeep       Kind = "nested too deeply"
	KindMore          Kind = "more than one value"
	KindNotJSON       Kind = "not JSON" // and none of the above
	KindNotObject     Kind = "not an object"

	KindListInConf     Kind = "list in a .conf" // or in a .json
	KindPluginInList   Kind = "single plugin in a .conflist"
	KindNoName         Kind = "no name"
	KindBadName        Kind = "bad name"
	KindBadVersion     Kind = "unknown cniVersion"
	KindNewVersion     Kind = "cniVersion too new"
	KindNoPlugins      Kind = "no plugins"
	KindManyPlugins    Kind = "too many plugins"
	KindPluginsNotList Kind = "plugins is not a list"
	KindNoType         Kind = "no type"
	KindBadType        Kind = "bad type"
	KindWrongType      Kind = "wrong JSON type"
	KindNumber         Kind = "number out of range"
	KindRefused        Kind = "refused by libcni" // and none of the above

	KindDuplicate Kind = "duplicate network"
	KindNoPinned  Kind = "no such network" // the one that DefaultNetwork names
)

// ConfError is why a file cannot be used, or a directory.
type ConfError struct {
	// Path is the file, raw, or the directory, if no file is at fault.
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
	// Line and Column tell where, from 1. A column counts characters: a tab is one, a byte that is not UTF-8 is one, and CR LF ends a line
	// as LF does. 0: unknown, or the whole file is meant.
	Line   int  `json:"line,omitempty"`
	Column int  `json:"column,omitempty"`
	Kind   Kind `json:"kind"`
	// Text says what is wrong, Fix what to do. Both are one line, without control characters, whatever the file holds.
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Error returns one line: FILE:LINE:COLUMN: TEXT; FIX.
func (e *ConfError) Error() string {
	at := scanner.Quote(e.Path)
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", at, e.Line, e.Column)
	}
	return at + ": " + e.Text + "; " + e.Fix
}
