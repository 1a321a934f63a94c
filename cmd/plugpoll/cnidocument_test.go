package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/plugpoll/plugpoll/register/cni"
)

// TestCNIDocument keeps what docs/cni.md shows of cni check and cni status what it says, but for the times: the same directory, changed as the document tells.
func TestCNIDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/cni.md")
	if err != nil {
		t.Fatal(err)
	}
	d := newCNIDir(t)
	plain := func(text string) string {
		text = regexp.MustCompile(`cannot be used: [^\n]*…`).ReplaceAllString(text, "cannot be used: …") // as much of it as there is room for
		text = strings.ReplaceAll(strings.ReplaceAll(text, d.conf, "/etc/cni/net.d"), d.cfg.BinDirs[0], "/opt/cni/bin")
		return strings.Join(strings.Fields(regexp.MustCompile(`[0-9.]+ s\b`).ReplaceAllString(text, "0 s")), " ")
	}
	var shown []string
	for _, block := range regexp.MustCompile(`(?m)^    \$ plugpoll cni .*\n((?:    .*\n|\n)+)`).FindAllStringSubmatch(string(text), -1) {
		shown = append(shown, plain(block[1]))
	}
	if len(shown) != 4 {
		t.Fatalf("docs/cni.md shows %d commands", len(shown))
	}
	check := func(i int) {
		t.Helper()
		v, err := lookOnce(t.Context(), d.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := plain(cniCheckText(v, false)); got != shown[i] {
			t.Errorf("docs/cni.md shows\n%s\ncheck says\n%s", shown[i], got)
		}
	}
	const good = "{\n  \"cniVersion\": \"1.0.0\",\n  \"name\": \"mynet\",\n  \"plugins\": [\n    {\"type\": \"bridge\"}\n  ]\n}\n"
	d.write("10-mynet.conflist", strings.Replace(good, "}\n  ]", "},\n  ]", 1))
	d.write("20-other.conf", `{"cniVersion": "1.0.0", "name": "other", "type": "ptp"}`)
	check(0)
	d.write("10-mynet.conflist", good)
	check(1)
	d.plugins("#!/bin/sh\n", "bridge")
	check(2)
	_, s := d.follow()
	d.comes(s, cni.Ready)
	d.write("10-mynet.conflist", good[:strings.Index(good, "  \"name\"")])
	d.comes(s, cni.Stale)
	if got := plain(cniText([]cni.View{s.View()})); got != shown[3] {
		t.Errorf("docs/cni.md shows\n%s\nstatus says\n%s", shown[3], got)
	}
}
