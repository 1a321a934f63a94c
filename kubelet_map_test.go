package plugpoll_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestKubeletMap checks what docs/kubelet-map.md says is ours: every `file:identifier` is declared there, and every id of the contract exists.
func TestKubeletMap(t *testing.T) {
	text := read(t, "docs/kubelet-map.md")
	named := regexp.MustCompile("`([a-z_/]+\\.go):(\\w+)`").FindAllStringSubmatch(text, -1)
	if len(named) < 50 {
		t.Fatalf("docs/kubelet-map.md names %d identifiers: is their form still `file.go:identifier`?", len(named))
	}
	for _, n := range named {
		code, err := os.ReadFile(n[1])
		if err != nil {
			t.Errorf("docs/kubelet-map.md: %v", err)
			continue
		}
		declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |const |var |\t+)` + n[2] + `\b`)
		if !declared.Match(code) {
			t.Errorf("docs/kubelet-map.md: %s declares no %s", n[1], n[2])
		}
	}
	planned := promises(read(t, "docs/contract.md"))
	for line := range strings.Lines(text) {
		for _, id := range citation.FindAllString(line, -1) {
			if _, ok := planned[id]; !ok {
				t.Errorf("docs/kubelet-map.md cites %s, which docs/contract.md does not have", id)
			}
		}
	}
}
