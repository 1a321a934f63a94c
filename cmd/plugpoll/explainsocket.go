package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// told is a socket with everything that is known of it.
type told struct {
	view  state.View
	s     state.SocketView
	path  string // as the filesystem has it
	facts pathFacts
	cause cause
}

// explainSocket tells of a socket that the daemon knows.
func explainSocket(v state.View, s state.SocketView, f facts) finding {
	t := told{view: v, s: s, path: rawPath(s.Path, s.PathBase64), cause: causeOf(s)}
	if t.cause == deadSocket {
		t.facts = f.look(t.path)
		elsewhere := t.facts.listener != "" && (t.facts.listener == t.path || remote(t.facts.filesystem))
		if elsewhere || remote(t.facts.filesystem) && t.facts.filesystem != "overlay" {
			t.cause = otherSide
		}
	}
	out := finding{
		Version: state.APIVersion, Cause: t.cause, OK: slices.Contains(fine, t.cause),
		Path: s.Path, PathBase64: s.PathBase64, Phase: s.Phase, Plugin: s.Plugin,
		Seen: t.seen(), Tried: t.tried(), Failed: t.failed(), Do: advice[t.cause](t),
	}
	return out.loose()
}

// seen says what is there.
func (t told) seen() string {
	text := fmt.Sprintf("%s is a socket in %s, seen for %s", name(t.path), name(rawPath(t.s.Root, t.s.RootBase64)), spanText(t.view.Time.Sub(t.s.Found)))
	if t.s.Maybe {
		text = strings.Replace(text, "is a socket", "may be a socket", 1)
	}
	if p := t.s.Plugin; p != nil {
		text += fmt.Sprintf("; it says it is %s %s, %s", name(p.Type), name(p.Name), versions(p.Versions))
	}
	return text + "."
}

func versions(v []string) string {
	switch len(v) {
	case 0:
		return "with no version"
	case 1:
		return "version " + name(v[0])
	}
	return "versions " + name(strings.Join(v, ", "))
}

// tried says what the daemon did so far.
func (t told) tried() string {
	span := spanText(t.view.Time.Sub(t.s.Since))
	switch t.s.Phase {
	case state.Registered:
		return "It has been registered for " + span + "."
	case state.Observed:
		return "It was asked what it is, " + span + " ago, and checked."
	case state.Standby:
		return "It was asked what it is and could be registered."
	case state.Unreachable:
		return fmt.Sprintf("It is registered and has not answered for %s%s.", span, t.next())
	case state.Pending:
		return "It has not been tried yet."
	case state.Deregistering:
		return "It is gone, and its handler is being told."
	}
	if t.s.Tries == 0 {
		return "It is being tried for the first time."
	}
	return fmt.Sprintf("%s failed%s.", counted(t.s.Tries, "try has", "tries have"), t.next())
}

func (t told) next() string {
	switch n := nextTry(t.view, t.s); n {
	case "-":
		return "; none is planned until the socket changes"
	case "now":
		return "; it is being tried again"
	default:
		return "; the next is " + n
	}
}

// failed says what went wrong, with the words of the one who found it.
func (t told) failed() string {
	error := scanner.Clean(t.s.LastError, maxComplaint)
	switch t.cause {
	case handlerHangs:
		return fmt.Sprintf("Its handler has been at %s for %s and does not return.", t.s.Call.Verb, spanText(t.view.Time.Sub(t.s.Call.Since)))
	case isStale:
		return fmt.Sprintf("For %s the filesystem could neither show the socket nor rule it out: %s.", spanText(t.view.Time.Sub(t.s.Stale.Since)), scanner.Clean(t.s.Stale.Error, maxComplaint))
	case handlerDown:
		return "Its handler says that it is down: " + scanner.Clean(t.s.Report.Message, maxComplaint) + "."
	case notTold:
		return "The plugin could not be told that it is registered; that alone is tried again."
	case isStandby:
		return "Another socket of the same name is registered: " + name(rawPath(t.s.Holder, t.s.HolderBase64)) + "."
	}
	if error == "" {
		return ""
	}
	return "The last error: " + strings.TrimSuffix(error, ".") + "."
}

// name is a path or a plugin's word in a sentence: quoted where it is not plain, and never broken into lines.
func name(text string) string { return glue(word(text)) }

// command is a shell command in a sentence. The last argument is taken as it is.
func command(words string, argument string) string { return commandFor(runtime.GOOS, words, argument) }

// onWindows are the commands of its own shell that come nearest.
var onWindows = map[string]string{
	"rm": "del", "mkdir -p": "mkdir", "ls -l": "dir", "ls -ln": "icacls", "namei -l": "icacls", "findmnt -T": "mountvol", "ss -xlp | grep -F --": "tasklist /v | findstr",
}

func commandFor(goos, words, argument string) string {
	if goos != "windows" {
		return "`" + glue(words+" "+shellWord(argument)) + "`"
	}
	if own := onWindows[words]; own != "" {
		words = own
	}
	if word := scanner.Quote(argument); word != argument || strings.ContainsAny(word, "&|<>^%()!;,=") {
		argument = `"` + scanner.Clean(argument, maxWord) + `"` // no name there has a quote in it
	}
	return "`" + glue(words+" "+argument) + "`"
}

// What must stay in one line has no blank until the lines are made: NUL is in no text that was cleaned.
const noBreak = "\x00"

func glue(text string) string { return strings.ReplaceAll(text, " ", noBreak) }

// loose makes the glue blanks again where the text is not folded.
func (f finding) loose() finding {
	f.folded = fold(strings.Join([]string{f.Seen, f.Tried, f.Failed, f.Do}, " "), 100)
	for _, text := range []*string{&f.Seen, &f.Tried, &f.Failed, &f.Do} {
		*text = strings.ReplaceAll(*text, noBreak, " ")
	}
	return f
}
