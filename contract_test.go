package plugpoll_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	promise  = regexp.MustCompile(`(?m)^- \*\*([A-Z]+\d+)\*\* (\*\*planned\*\*)?`)
	citation = regexp.MustCompile(`\b(?:CN|[DIURNLSOCX])[1-9]\d?\b`)
)

// TestContract keeps docs/contract.md and the code together: every id that is cited exists, and every promise that is not planned is cited by a test.
func TestContract(t *testing.T) {
	text, err := os.ReadFile("docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	planned := promises(string(text))
	if len(planned) < 50 {
		t.Fatalf("docs/contract.md has %d promises: is its form still `- **D1** …`?", len(planned))
	}
	cited := map[string][]string{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return skip(err)
		}
		if ext := filepath.Ext(path); d.IsDir() || ext != ".go" && ext != ".txt" && ext != ".txtar" || path == "contract_test.go" {
			return nil
		}
		content, err := os.ReadFile(path)
		for _, id := range citation.FindAllString(string(content), -1) {
			cited[id] = append(cited[id], path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range contractFaults(planned, cited) {
		t.Error(fault)
	}
}

func skip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// promises maps each id to whether it is planned.
func promises(contract string) map[string]bool {
	planned := map[string]bool{}
	for _, m := range promise.FindAllStringSubmatch(contract, -1) {
		planned[m[1]] = m[2] != ""
	}
	return planned
}

func contractFaults(planned map[string]bool, cited map[string][]string) []string {
	var faults []string
	for id, files := range cited {
		if _, ok := planned[id]; !ok {
			faults = append(faults, files[0]+" cites "+id+", which docs/contract.md does not have")
		}
	}
	for id, later := range planned {
		if !later && !slices.ContainsFunc(cited[id], isTestFile) {
			faults = append(faults, "docs/contract.md promises "+id+", but no test cites it")
		}
	}
	slices.Sort(faults)
	return faults
}

func isTestFile(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "/testdata/")
}

func TestContractFaults(t *testing.T) {
	planned := promises("- **D1** kept\n- **D2** **planned** later\n- **D3** kept\n- **CN1** kept\n- **CN2** **planned** later\n")
	got := contractFaults(planned, map[string][]string{
		"D1": {"a.go", "a_test.go"},
		"D3": {"a.go"},
		"D9": {"b.go"},
	})
	want := []string{
		"b.go cites D9, which docs/contract.md does not have", "docs/contract.md promises CN1, but no test cites it", "docs/contract.md promises D3, but no test cites it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCitation(t *testing.T) {
	got := citation.FindAllString("D1, (U2) and CN3: not ACN4, CN, E5, CN0 or N6x", -1)
	if want := []string{"D1", "U2", "CN3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
