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
