package cni

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/containernetworking/cni/pkg/utils"

	"github.com/plugpoll/plugpoll/scanner"
)

// checkSet holds a set to what is promised of every one.
func checkSet(t *testing.T, s set) {
	t.Helper()
	if len(s.revision) != 2*revisionBytes {
		t.Errorf("revision %q", s.revision)
	}
	if s.err != nil && s.networks != nil {
		t.Error("a set that cannot be used has networks")
	}
	if s.err != nil {
		checkError(t, s.err)
	}
	names := map[string]bool{}
	for _, n := range s.networks {
		if utils.ValidateNetworkName(n.name) != nil || names[n.name] || len(n.plugins) == 0 || n.list == nil || n.file == "" {
			t.Errorf("network %+v", n)
		}
		names[n.name] = true
	}
	used := 0
	for _, f := range s.files {
		switch f.State {
		case Used:
			used++
			if !names[f.Network] || f.Error != nil {
				t.Errorf("used: %+v", f)
			}
		case NotUsed:
			if f.Reason == "" || f.Error != nil {
				t.Errorf("not used: %+v", f)
			}
		case Duplicate, Broken:
			if f.Error == nil {
				t.Fatalf("no error: %+v", f)
			}
			checkError(t, f.Error)
		default:
			t.Errorf("state of %+v", f)
		}
		if text := f.Reason + strings.Join(f.Plugins, "") + f.CNIVersion; scanner.Clean(text, 1<<20) != text {
			t.Errorf("raw text in %+v", f)
		}
	}
	if used < len(s.networks) {
		t.Errorf("%d files are used for %d networks", used, len(s.networks))
	}
}

// checkError wants one line of bounded length that people can read.
func checkError(t *testing.T, e *ConfError) {
	t.Helper()
	text := e.Error()
	if scanner.Clean(text, 1<<20) != text || !utf8.ValidString(text) {
		t.Errorf("raw text in %q", text)
	}
	if e.Kind == "" || e.Text == "" || e.Fix == "" || e.Path == "" || (e.Line > 0) != (e.Column > 0) {
		t.Errorf("an error lacks something: %+v", e)
	}
	if len(e.Text)+len(e.Fix) > 1500 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
