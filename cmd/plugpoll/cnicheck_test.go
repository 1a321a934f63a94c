package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plugpoll/plugpoll/register/cni"
)

// TestREADMECheck keeps what the README shows of cni check what it says.
func TestREADMECheck(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(text), "    $ plugpoll cni check /etc/cni/net.d\n")
	shown, _, found := strings.Cut(shown, "\n\nThe running daemon")
	if !found {
		t.Fatal("README.md does not show plugpoll cni check /etc/cni/net.d")
	}
	d := newCNIDir(t)
	d.write("10-net.conflist", "{\n  \"cniVersion\": \"1.0.0\",\n  \"name\": \"net\",\n  \"plugins\": [\n    {\"type\": \"bridge\"},\n  ]\n}\n")
	d.write("20-other.conf", otherConf)
	v, err := lookOnce(t.Context(), d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(text string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(text, d.conf, "/etc/cni/net.d")), " ")
	}
	if got := cniCheckText(v, false); plain(got) != plain(shown) {
		t.Errorf("the README shows\n%s\ncheck says\n%s", plain(shown), plain(got))
	}
}

// TestLookOnceEnds is interrupted before anything is known.
func TestLookOnceEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lookOnce(ctx, newCNIDir(t).cfg); err == nil || exitCode(err) != exitFailed {
		t.Errorf("code %d, %v", exitCode(err), err)
	}
}

// TestLookMakesNothing looks at directories that are not there.
func TestLookMakesNothing(t *testing.T) {
	dir := t.TempDir()
	cfg := cni.Config{ConfDir: filepath.Join(dir, "a", "b"), BinDirs: []string{filepath.Join(dir, "c")}}
	v, err := lookOnce(t.Context(), cfg)
	if err != nil || v.State != cni.NotReady {
		t.Errorf("%s, %v", v.State, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}

// TestCNISummary names what is to be asked about, and says of broken files what is known.
func TestCNISummary(t *testing.T) {
	broken := func(path string) cni.FileView {
		return cni.FileView{Path: path, State: cni.Broken, Error: &cni.ConfError{Path: path, Kind: cni.KindEmpty, Text: "the file is empty", Fix: "remove it"}}
	}
	first, later := broken("/etc/cni/net.d/0.conf"), broken("/etc/cni/net.d/9.conf")
	notReady := func(message string) func(*cni.View) {
		return func(v *cni.View) {
			v.State, v.Ready, v.Message, v.Files = cni.NotReady, false, cni.MessagePrefix+message, append(v.Files, later)
		}
	}
	ready := newFake(func(v *cni.View) { v.Files = append(v.Files, later) }).View()
	noPlugin := newFake(func(v *cni.View) { notReady("a plugin is missing")(v); v.ConfDir = "/etc/cni/other.d" }).View()
	unusable := newFake(func(v *cni.View) {
		notReady("0.conf is empty")(v)
		v.Files, v.Error = append([]cni.FileView{first}, v.Files...), first.Error
	}).View()
	for _, test := range []struct {
		name string
		dirs []cni.View
		want []string
	}{
		{"ready", []cni.View{ready}, []string{"1 broken file that is not needed now", "plugpoll why /etc/cni/net.d/9.conf tells"}},
		{"a plugin is missing", []cni.View{noPlugin}, []string{"1 broken file that is not needed now", "plugpoll why /etc/cni/other.d tells"}},
		{"unusable", []cni.View{unusable}, []string{"has 1 more broken file.", "plugpoll why /etc/cni/net.d/0.conf tells"}},
		{"the worst of two", []cni.View{ready, noPlugin}, []string{"plugpoll why /etc/cni/other.d tells"}},
	} {
		got := cniText(test.dirs)
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: there is no %q in\n%s", test.name, want, got)
			}
		}
	}
}
