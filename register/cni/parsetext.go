package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plugpoll/plugpoll/scanner"
)

// fault is what is wrong at an offset of a file; -1 is the whole file.
type fault struct {
	at        int
	kind      Kind
	text, fix string
}

// fixWrite is for a file that its writer has not finished: it may get right without anybody doing something.
const fixWrite = "write it under another name and rename it when it is complete"

// textFault says why a file is not one JSON object, or nil.
func (c *conf) textFault() *fault {
	content := c.content
	if f := encodingFault(content); f != nil {
		return f
	}
	var all json.RawMessage
	err := json.Unmarshal([]byte(content), &all)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return syntaxFault(content, e)
	}
	if err != nil {
		return &fault{-1, KindNotJSON, "this is not JSON: " + scanner.Clean(err.Error(), maxText), "write it as JSON"}
	}
	if at := blanks(content, 0); content[at] != '{' {
		return c.notObject(at)
	}
	return nil
}

func (c *conf) notObject(at int) *fault {
	what, form := "a network", `{"cniVersion": …, "name": …, "type": …}`
	switch {
	case c.dir != "":
		what, form = "a plugin", `{"type": …}`
	case c.list():
		form = `{"cniVersion": …, "name": …, "plugins": […]}`
	}
	return &fault{at, KindNotObject, "this is " + nameOf(c.content[at:]) + ", and " + what + " is an object", "write it as " + form}
}

// encodingFault tells what is no text in UTF-8 from bad JSON.
func encodingFault(content string) *fault {
	const fixEncoding = "save it as UTF-8 without a byte order mark"
	switch {
	case content == "":
		return &fault{-1, KindEmpty, "the file is empty", fixWrite + ", or remove it"}
	case strings.Trim(content, " \t\r\n") == "":
		return &fault{-1, KindEmpty, "there are only blanks in the file", fixWrite + ", or remove it"}
	case strings.HasPrefix(content, "\xef\xbb\xbf"):
		return &fault{0, KindBOM, "the file begins with a byte order mark (EF BB BF), which JSON does not allow", fixEncoding}
	case strings.HasPrefix(content, "\xff\xfe\x00\x00"), strings.HasPrefix(content, "\x00\x00\xfe\xff"):
		return &fault{-1, KindUTF32, "the file is in UTF-32, and JSON is UTF-8", fixEncoding}
	case strings.HasPrefix(content, "\xff\xfe"), strings.HasPrefix(content, "\xfe\xff"):
		return &fault{-1, KindUTF16, "the file is in UTF-16, and JSON is UTF-8", fixEncoding}
	}
	nul := strings.IndexByte(content, 0)
	if nul < 0 {
		return nil
	}
	switch {
	case strings.Trim(content, "\x00") == "":
		return &fault{-1, KindNUL, "there are only NUL bytes in the file: room was made for it, and it was not written", fixWrite}
	case utf16Without(content):
		return &fault{-1, KindUTF16, "the file is in UTF-16 without a byte order mark, and JSON is UTF-8", fixEncoding}
	}
	return &fault{nul, KindNUL, "from here on there are NUL bytes: it was not written to its end, or is no text", fixWrite}
}

// utf16Without reports whether a text begins as JSON in UTF-16 does: an ASCII character, half of it NUL, and another one.
func utf16Without(content string) bool {
	if len(content) < 4 {
		return false
	}
	ascii := func(b byte) bool { return b == '\t' || b == '\n' || b == '\r' || b >= ' ' && b < 0x7f }
	a, b, c, d := content[0], content[1], content[2], content[3]
	return ascii(a) && b == 0 && ascii(c) && d == 0 || a == 0 && ascii(b) && c == 0 && ascii(d)
}

var yamlLine = regexp.MustCompile(`(?m)\A(?:\s*(?:#.*)?\n)*(?:---(?:\s|$)|[A-Za-z_][\w.-]*:(?:\s|$)|- \w)`)

// syntaxFault sorts what encoding/json says by what people do wrong.
func syntaxFault(content string, e *json.SyntaxError) *fault {
	message := e.Error()
	if yamlLine.MatchString(content) {
		return &fault{blanks(content, 0), KindYAML, "this is YAML", "write it as JSON"}
	}
	if strings.HasPrefix(message, "unexpected end") {
		return incomplete(content)
	}
	at := max(0, min(int(e.Offset), len(content))-1)
	if strings.HasPrefix(message, "invalid character ' '") && content[at] != ' ' {
		return incomplete(content) // it ends in a word, and encoding/json has put a blank behind it
	}
	if strings.Contains(message, maxDepth) {
		return tooDeep(at)
	}
	if f := byCharacter(content, at, message); f != nil {
		return f
	}
	return &fault{at, KindNotJSON, "this is not JSON: " + wholeCharacter(message, content[at:]) + ", near " + near(content, at), "correct it here or before it"}
}

func nameOfBlank(r rune) string {
	if strings.ContainsRune("\u00a0\u2007\u202f", r) {
		return "a no-break space"
	}
	return "another blank"
}

// wholeCharacter has a message of encoding/json name the character that a text begins with: what it names is the first byte of it.
func wholeCharacter(message, text string) string {
	if len(text) == 0 || text[0] < utf8.RuneSelf {
		return message
	}
	_, where, ok := strings.Cut(message, "' ")
	if !ok {
		return message
	}
	_, size := utf8.DecodeRuneInString(text)
	return "invalid character '" + scanner.Clean(text[:size], maxShown) + "' " + where
}

// maxDepth is in what encoding/json says of more than 10000 objects and arrays in one another.
const maxDepth = "exceeded max depth"

func tooDeep(at int) *fault {
	return &fault{at, KindTooDeep, "objects and arrays are nested about 10000 deep, or deeper", "make it simpler"}
}

// byCharacter goes by the character that JSON has no place for, and by what was expected there.
func byCharacter(content string, at int, message string) *fault {
	r, _ := utf8.DecodeRuneInString(content[at:])
	previous := strings.TrimRight(content[:at], " \t\r\n")
	word := r == '_' || unicode.IsLetter(r)
	switch {
	case strings.Contains(message, "in string literal"):
		return &fault{at, KindLineBreak, fmt.Sprintf("there is a raw %q inside a string", r), `close the quotes before it, or write it as \n, \t or \u00XX`}
	case strings.Contains(message, "in string escape code"), strings.Contains(message, `in \u`):
		return nil
	case r >= utf8.RuneSelf && unicode.IsSpace(r):
		return &fault{at, KindNotJSON, fmt.Sprintf("there is %s (U+%04X), and JSON has plain blanks only", nameOfBlank(r), r), "write a plain blank in its place"}
	case unicode.Is(unicode.Cf, r):
		return &fault{at, KindNotJSON, fmt.Sprintf("there is an invisible character (U+%04X), and JSON has plain blanks only", r), "remove it"}
	case (r == '}' || r == ']') && strings.HasSuffix(previous, ","):
		return &fault{len(previous) - 1, KindTrailingComma, fmt.Sprintf("there is a comma before %q", r), "remove the comma"}
	case r == ']' && strings.Contains(message, "after object key:value pair"), r == '}' && strings.Contains(message, "after array element"):
		return otherBracket(content, at)
	case r == '#', r == '/' && strings.HasPrefix(content[at+1:], "/"), r == '/' && strings.HasPrefix(content[at+1:], "*"):
		return &fault{at, KindComment, "there is a comment, and JSON has none", "remove the comment"}
	case strings.ContainsRune("'‘’“”„«»`", r):
		return &fault{at, KindQuotes, fmt.Sprintf("%q does not begin a string", r), `use "`}
	case strings.Contains(message, "beginning of object key") && word:
		return &fault{at, KindUnquotedKey, "the key " + near(content, at) + " has no quotes", `put it in "`}
	case strings.Contains(message, "after top-level value"):
		return &fault{at, KindMore, "something follows the end of the JSON: " + near(content, at), fixMore(content)}
	case strings.Contains(message, "after object key:value pair"), strings.Contains(message, "after array element"):
		if word || r == '"' || r == '{' || r == '[' || r == '-' || unicode.IsDigit(r) {
			return &fault{at, KindMissingComma, "there is no comma before " + near(content, at), "put a comma before it"}
		}
	}
	return nil
}

func fixMore(content string) string {
	switch content[blanks(content, 0)] {
	case '{':
		return "remove what follows the closing }"
	case '[':
		return "remove what follows the closing ]"
	}
	return "keep one object only"
}

// near shows the text at an offset, in quotes unless it has some: the rest of the word, or of the line, as far as there is room.
func near(content string, at int) string {
	const most = 24
	rest := content[at:]
	rest = rest[:min(len(rest), most*utf8.UTFMax)]
	if end := strings.IndexAny(rest, " \t\r\n,:"); end > 0 {
		rest = rest[:end]
	}
	rest = scanner.Clean(rest, most)
	if strings.Contains(rest, `"`) {
		return rest
	}
	return `"` + rest + `"`
}

// blanks returns the offset of the first character from there on that is no blank of JSON.
func blanks(content string, from int) int {
	for from < len(content) && strings.IndexByte(" \t\r\n", content[from]) >= 0 {
		from++
	}
	return from
}

// nameOf says which kind of JSON value a text begins with.
func nameOf(value string) string {
	if value == "" {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
