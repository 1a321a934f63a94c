package cni

import (
	"fmt"
	"strings"
)

// incomplete is about a text that ends too early. Whoever writes it by hand looks for the bracket.
func incomplete(content string) *fault {
	text := "the file ends in the middle"
	brackets, quote := unclosed(content)
	switch around := len(brackets) - 1; {
	case quote >= 0:
		text += fmt.Sprintf(" of the string that begins in line %d", lineOf(content, quote))
	case around == 0:
		text += ": the " + bracketAt(content, brackets[0]) + " is not closed"
	case around == 1:
		text += ": the " + bracketAt(content, brackets[1]) + " and 1 bracket around it are not closed"
	case around > 1:
		text += fmt.Sprintf(": the %s and %d brackets around it are not closed", bracketAt(content, brackets[around]), around)
	}
	return &fault{len(content), KindIncomplete, text, "add what is missing, or " + fixWrite}
}

// otherBracket is about a bracket at an offset that closes what another one has opened. nil: it does not.
func otherBracket(content string, at int) *fault {
	brackets, _ := unclosed(content[:at])
	if len(brackets) == 0 {
		return nil
	}
	last := brackets[len(brackets)-1]
	want := "}"
	if content[last] == '[' {
		want = "]"
	}
	return &fault{at, KindNotJSON, fmt.Sprintf("there is a %c, and the %s is not closed", content[at], bracketAt(content, last)), "put a " + want + " before it"}
}

// unclosed returns where the brackets are, outermost first, that the beginning of a JSON text leaves open, and where the string begins that it ends in. -1: it
// ends in none.
func unclosed(content string) (brackets []int, quote int) {
	quote = -1
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case quote >= 0 && c == '\\':
			i++
		case quote >= 0 && c == '"':
			quote = -1
		case quote >= 0:
		case c == '"':
			quote = i
		case c == '{', c == '[':
			brackets = append(brackets, i)
		case (c == '}' || c == ']') && len(brackets) > 0:
			brackets = brackets[:len(brackets)-1]
		}
	}
	return brackets, quote
}

func bracketAt(content string, at int) string {
	return fmt.Sprintf("%c of line %d", content[at], lineOf(content, at))
}

func lineOf(content string, at int) int { return strings.Count(content[:at], "\n") + 1 }
