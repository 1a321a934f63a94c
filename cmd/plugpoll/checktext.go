package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/plugpoll/plugpoll/conformance"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// ruleLine is one rule and what came of it, as check -o json prints it.
type ruleLine struct {
	Version    string `json:"version"`
	Kind       string `json:"kind"` // "rule"
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
	Rule       string `json:"rule"`
	Result     string `json:"result"` // holds, broken, skipped
	Sentence   string `json:"sentence"`
	Seen       string `json:"seen,omitempty"`
	Do         string `json:"do,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// checkTotal is the last line of check -o json.
type checkTotal struct {
	Version string `json:"version"`
	Kind    string `json:"kind"` // "total"
	Checked int    `json:"checked"`
	Holds   int    `json:"holds"`
	Broken  int    `json:"broken"`
	Skipped int    `json:"skipped"`
}

// checkReport prints what came of each subject.
type checkReport struct {
	w     io.Writer
	json  bool
	brief bool // of many subjects only what is broken is shown

	subjects, holds, broken, skipped int
	err                              error // of the first write that failed
}

func (r *checkReport) subject(c checked) {
	if len(c.results) == 0 {
		return // it was stopped before
	}
	lines := make([]ruleLine, len(c.results))
	holds, broken, skipped := 0, 0, 0
	for i, res := range c.results {
		lines[i] = lineOf(c.path, res)
		switch lines[i].Result {
		case "broken":
			broken++
		case "skipped":
			skipped++
		default:
			holds++
		}
		if r.json {
			r.note(printJSON(r.w, lines[i]))
		}
	}
	if !r.json {
		_, err := io.WriteString(r.w, r.text(c.path, lines, fmt.Sprintf("%d hold, %d broken, %d not checked", holds, broken, skipped)))
		r.note(err)
	}
	r.subjects++
	r.holds += holds
	r.broken += broken
	r.skipped += skipped
}

func (r *checkReport) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// end prints the totals.
func (r *checkReport) end() {
	switch {
	case r.json:
		r.note(printJSON(r.w, checkTotal{state.APIVersion, "total", r.subjects, r.holds, r.broken, r.skipped}))
	case r.brief:
		_, err := fmt.Fprintf(r.w, "\n%d sockets: %d rules hold, %d broken, %d not checked.\n", r.subjects, r.holds, r.broken, r.skipped)
		r.note(err)
	}
}

func lineOf(path string, res conformance.Result) ruleLine {
	l := ruleLine{
		Version: state.APIVersion, Kind: "rule", Path: path, PathBase64: scanner.Base64(path),
		Rule: res.Rule.ID, Result: "holds", Sentence: res.Rule.Sentence, Reason: res.Skipped,
	}
	if res.Skipped != "" {
		l.Result = "skipped"
	}
	if b, ok := errors.AsType[*conformance.Broken](res.Err); ok {
		l.Result, l.Seen, l.Do = "broken", b.Text(), b.Rule.Fix
	}
	return l
}

// text is one subject for people: the rules, and below them what was seen where they do not hold and what to do.
func (r *checkReport) text(path string, lines []ruleLine, sums string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", word(path), sums)
	if !r.brief {
		b.WriteByte('\n')
		table(&b, "RULE\tRESULT\tWHAT MUST HOLD", len(lines), func(i int) []string {
			l := lines[i]
			what := l.Sentence
			if l.Reason != "" {
				what += " (" + l.Reason + ")"
			}
			return []string{l.Rule, strings.Replace(l.Result, "broken", "BROKEN", 1), what}
		})
	}
	for _, l := range lines {
		if l.Result != "broken" {
			continue
		}
		fmt.Fprintf(&b, "\n%s is broken: %s\n", l.Rule, l.Sentence)
		fmt.Fprintf(&b, "    Seen: %s.\n    Do:   %s\n", l.Seen, l.Do)
	}
	return b.String()
}
