package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// maxReason bounds the last column of a table.
const maxReason = 160

// maxWord bounds a path or name in a table: no path is longer.
const maxWord = 4096

// statusText is a View for people.
func statusText(v state.View, wide bool) string {
	var b strings.Builder
	table(&b, "DIRECTORY\tLAST GOOD SCAN\tSOCKETS\tIGNORED\tERROR", len(v.Roots), func(i int) []string {
		r := v.Roots[i]
		last := "never"
		if !r.LastGoodScan.IsZero() {
			last = ago(r.GoodScanAge)
		}
		ignored := 0
		for _, g := range r.Ignored {
			ignored += g.Count
		}
		return []string{pathText(r.Path, r.PathBase64), last, strconv.Itoa(r.Entries), strconv.Itoa(ignored), dash(scanner.Clean(r.Error, maxReason))}
	})
	b.WriteByte('\n')
	if len(v.Roots) == 0 {
		return "The daemon watches no directory of sockets: start it with --dir for that. plugpoll cni status tells of network configuration.\n"
	}
	if len(v.Sockets) == 0 {
		b.WriteString("No sockets: a plugin appears here when it makes its socket in one of the directories.\n")
	} else {
		head, row := "PHASE\tTYPE\tNAME\tSINCE\tNEXT TRY\tSOCKET\tREASON", narrowRow
		if wide {
			head, row = "PHASE\tTYPE\tNAME\tSINCE\tTRIES\tNEXT TRY\tTOLD\tVERSIONS\tENDPOINT\tHANDLER\tSOCKET\tREASON", wideRow
		}
		table(&b, head, len(v.Sockets), func(i int) []string { return row(v, v.Sockets[i]) })
		fmt.Fprintf(&b, "\n%s.\n", summary(v))
	}
	for _, t := range troubles(v) {
		fmt.Fprintf(&b, "Needs attention: %s.\n", t)
	}
	for _, s := range v.Sockets {
		if trouble(s) != "" {
			fmt.Fprintf(&b, "plugpoll why %s tells about the first.\n", shellWord(rawPath(s.Path, s.PathBase64)))
			break
		}
	}
	return b.String()
}

// table writes rows under a head, without blanks at the ends of lines.
func table(w io.Writer, head string, n int, row func(i int) []string) {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, head)
	for i := range n {
		_, _ = fmt.Fprintln(t, strings.Join(row(i), "\t"))
	}
	_ = t.Flush() // into a Builder
	for line := range strings.Lines(b.String()) {
		_, _ = io.WriteString(w, strings.TrimRight(line, " \n")+"\n")
	}
}

func narrowRow(v state.View, s state.SocketView) []string {
	typ, name, _, _ := pluginTexts(s)
	return []string{string(s.Phase), typ, name, since(v, s), nextTry(v, s), pathText(s.Path, s.PathBase64), dash(scanner.Clean(reason(s), maxReason))}
}

func wideRow(v state.View, s state.SocketView) []string {
	typ, name, versions, endpoint := pluginTexts(s)
	handler := ""
	if s.Report != nil {
		handler = string(s.Report.Health) + " " + s.Report.Message
	}
	return []string{
		string(s.Phase), typ, name, since(v, s), strconv.Itoa(s.Tries), nextTry(v, s), dash(string(s.Acknowledged)), versions, endpoint,
		dash(scanner.Clean(handler, maxReason)), pathText(s.Path, s.PathBase64), dash(scanner.Clean(reason(s), maxReason)),
	}
}

func pluginTexts(s state.SocketView) (typ, name, versions, endpoint string) {
	p := s.Plugin
	if p == nil {
		return "-", "-", "-", "-"
	}
	return word(p.Type), word(p.Name), word(strings.Join(p.Versions, ",")), pathText(p.Endpoint, p.EndpointBase64)
}

// reason is why a socket is not registered, or what else there is to say of it.
func reason(s state.SocketView) string {
	switch {
	case s.LastError != "":
		return s.LastError
	case s.Call != nil && s.Call.Parked:
		return "its handler has been at " + s.Call.Verb + " since " + s.Call.Since.Format(time.RFC3339)
	case s.Holder != "":
		return "held by " + pathText(s.Holder, s.HolderBase64)
	case s.Stale != nil:
		return s.Stale.Error
	case s.Acknowledged == state.AckNo:
		return "could not be told that it is registered"
	case s.Report != nil && s.Report.Health == state.HealthDown:
		return s.Report.Message
	}
	return ""
}

func since(v state.View, s state.SocketView) string { return spanText(v.Time.Sub(s.Since)) }

func nextTry(v state.View, s state.SocketView) string {
	switch left := s.NextTry.Sub(v.Time); {
	case s.NextTry.IsZero():
		return "-"
	case left <= 0:
		return "now"
	default:
		return "in " + spanText(left)
	}
}

// ago spells an age in seconds.
func ago(seconds float64) string {
	return spanText(time.Duration(seconds*float64(time.Second))) + " ago"
}

// spanText spells a duration in its largest unit.
func spanText(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

// rawPath is a path as the filesystem has it.
func rawPath(path, inBase64 string) string {
	if raw, err := base64.StdEncoding.DecodeString(inBase64); err == nil && inBase64 != "" {
		return string(raw)
	}
	return path
}

// pathText is a path as people are shown it (D10).
func pathText(path, inBase64 string) string { return word(rawPath(path, inBase64)) }

// word is one cell of a table.
func word(text string) string {
	if len(text) > maxWord {
		text = strings.ToValidUTF8(text[:maxWord], "") + "…"
	}
	return scanner.Quote(text)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// shellWord is a text as a word of a shell command that somebody may copy: it is one argument, whatever is in it.
func shellWord(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-@%,:="
	switch {
	case text != "" && strings.Trim(text, plain) == "":
		return text
	case scanner.Clean(text, max(3, 8*len(text))) == text:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}
