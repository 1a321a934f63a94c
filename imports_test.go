package plugpoll_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/plugpoll/plugpoll"

// mayImport says what of ours a folder's packages may import. Their tests may import their own folder and conformance
// as well.
var mayImport = map[string][]string{
	"scanner":           {},
	"state":             {"scanner"},
	"register":          {"scanner", "state", "register"},
	"conformance":       {"scanner", "state", "register", "conformance"},
	"conformance/simfs": {},
	"cmd":               {"scanner", "state", "register", "conformance", "cmd"},
}

// dependencies are the modules we import ourselves. A new one is a decision: it gets a line here, with what it is for.
var dependencies = []struct {
	module, use string
	testsOnly   bool
}{
	{module: "google.golang.org/grpc", use: "the registration protocol"},
	{module: "github.com/hashicorp/go-hclog", use: "logs"},
	{module: "github.com/cenkalti/backoff/v4", use: "backoff"},
	{module: "github.com/spf13/afero", use: "the filesystem"},
	{module: "k8s.io/kubelet", use: "the registration, device plugin and DRA APIs"},
	{module: "k8s.io/apimachinery", use: "versions and names as Kubernetes reads them"},
	{module: "github.com/container-storage-interface/spec", use: "the CSI API"},
	{module: "github.com/containerd/go-cni", use: "CNI"},
	{module: "github.com/containernetworking/cni", use: "CNI"},
	{module: "github.com/spf13/cobra", use: "commands"},
	{module: "github.com/prometheus/client_golang", use: "metrics"},
	{module: "golang.org/x/mod", use: "semantic versions"},
	{module: "golang.org/x/sync", use: "errgroup"},
	{module: "golang.org/x/net", use: "a listener with a limit of connections"},
	{module: "golang.org/x/sys", use: "system calls that package syscall lacks"},
	{module: "sigs.k8s.io/yaml", use: "status as YAML"},
	{module: "github.com/chromedp/chromedp", use: "the status page in a browser", testsOnly: true},
	{module: "github.com/chromedp/cdproto", use: "the words of chromedp", testsOnly: true},
	{module: "github.com/google/go-cmp", use: "comparing in tests", testsOnly: true},
	{module: "github.com/hanwen/go-fuse/v2", use: "a filesystem that fails as it is told", testsOnly: true},
	{module: "github.com/rogpeppe/go-internal", use: "testscript", testsOnly: true},
	{module: "github.com/sasha-s/go-deadlock", use: "go-cni's locks under the race detector, to have them get on with bubbles", testsOnly: true},
	{module: "go.uber.org/goleak", use: "leaked goroutines", testsOnly: true},
}

const maxLines = 400

type repository struct {
	packages []pkg
	files    []file // all Go files, tests too, of every operating system
}

// pkg is what `go list -json` says of one package on one operating system; only Deps reaches past direct imports.
type pkg struct {
	ImportPath, Doc                          string
	GoFiles                                  []string
	Imports, TestImports, XTestImports, Deps []string
}

type file struct {
	path      string // from the root, with slashes
	lines     int
	generated bool
}

// folder is the package's path below the module, the empty string for the root.
func (p pkg) folder() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func (p pkg) testImports() []string { return slices.Concat(p.TestImports, p.XTestImports) }

// A rule returns what breaks it.
var rules = map[string]func(repository) []string{
	"directions":   directions,
	"folders":      folders,
	"banned":       banned,
	"testing":      noTesting,
	"cni":          onlyCNI,
	"dependencies": onlyDependencies,
	"lines":        shortFiles,
	"comment":      packageComments,
}

func directions(r repository) (broken []string) {
	check := func(p pkg, imports, allowed []string, what string) {
		for _, path := range imports {
			to, ours := strings.CutPrefix(path, module+"/")
			if ours && !slices.ContainsFunc(allowed, func(a string) bool { return under(to, a) }) {
				broken = append(broken, fmt.Sprintf("%s imports %s%s", p.folder(), to, what))
			}
		}
	}
	for _, p := range r.packages {
		key := p.folder()
		if key == "" {
			continue // only tests, of the whole
		}
		if !under(key, "conformance/simfs") {
			key, _, _ = strings.Cut(key, "/")
		} else {
			key = "conformance/simfs"
		}
		check(p, p.Imports, mayImport[key], "")
		check(p, p.testImports(), append([]string{key, "conformance"}, mayImport[key]...), " in a test")
	}
	return broken
}

// under reports whether an import path is a module's or folder's, or below it.
func under(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }

func folders(r repository) (broken []string) {
	has := map[string]bool{}
	for _, f := range r.files {
		top, _, below := strings.Cut(f.path, "/")
		switch {
		case !below && !isTest(f.path):
			broken = append(broken, f.path+" is code outside the code folders")
		case below && mayImport[top] == nil && !has[top]:
			broken = append(broken, top+" is not a code folder, but has "+f.path)
		}
		has[top] = true
	}
	for top := range mayImport {
		if !strings.Contains(top, "/") && !has[top] {
			broken = append(broken, top+" has no code")
		}
	}
	return broken
}

func banned(r repository) (broken []string) {
	for _, p := range r.packages {
		for _, path := range slices.Concat(p.Deps, p.testImports()) {
			if under(path, "k8s.io/kubernetes") || under(path, "github.com/fsnotify") || under(path, "gopkg.in/fsnotify.v1") {
				broken = append(broken, p.folder()+" links "+path)
			}
		}
	}
	return broken
}

// noTesting keeps package testing out of the commands and of what they link of ours, but for what go-cni links itself (its testutils.go).
func noTesting(r repository) (broken []string) {
	linked := map[string]bool{}
	for _, p := range r.packages {
		if under(p.folder(), "cmd") {
			linked[p.ImportPath] = true
			for _, path := range p.Deps {
				linked[path] = true
			}
		}
	}
	for _, p := range r.packages {
		byUs := slices.Contains(p.Imports, "testing") || slices.Contains(p.Deps, "testing") && !slices.Contains(p.Deps, "github.com/containerd/go-cni")
		if linked[p.ImportPath] && byUs {
			broken = append(broken, p.folder()+" links testing")
		}
	}
	return broken
}

// onlyCNI keeps the CNI libraries out of what an embedder of the scanner, the state or the Manager links.
func onlyCNI(r repository) (broken []string) {
	for _, p := range r.packages {
		paths := slices.Concat(p.Imports, p.testImports())
		if !under(p.folder(), "cmd") && !under(p.folder(), "conformance") {
			paths = append(paths, p.Deps...)
		}
		for _, path := range paths {
			cni := under(path, "github.com/containerd/go-cni") || under(path, "github.com/containernetworking")
			if cni && !under(p.folder(), "register/cni") {
				broken = append(broken, p.folder()+" links "+path)
			}
		}
	}
	return broken
}

func onlyDependencies(r repository) (broken []string) {
	check := func(p pkg, imports []string, inTest bool) {
		for _, path := range imports {
			first, _, _ := strings.Cut(path, "/")
			if !strings.Contains(first, ".") || under(path, module) {
				continue // the standard library's, or ours
			}
			known := false
			for _, d := range dependencies {
				known = known || under(path, d.module) && (inTest || !d.testsOnly)
			}
			if !known {
				broken = append(broken, p.folder()+" imports "+path)
			}
		}
	}
	for _, p := range r.packages {
		check(p, p.Imports, false)
		check(p, p.testImports(), true)
	}
	return broken
}

func shortFiles(r repository) (broken []string) {
	for _, f := range r.files {
		if f.lines > maxLines && !isTest(f.path) && !f.generated {
			broken = append(broken, fmt.Sprintf("%s has %d lines, more than %d", f.path, f.lines, maxLines))
		}
	}
	return broken
}

func packageComments(r repository) (broken []string) {
	for _, p := range r.packages {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			broken = append(broken, p.folder()+" has no package comment")
		}
	}
	return broken
}

func isTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

func TestRules(t *testing.T) {
	r := repository{files: readFiles(t)}
	for _, system := range []string{"linux", "windows", "darwin"} {
		r.packages = append(r.packages, list(t, system)...)
	}
	for name, rule := range rules {
		for _, b := range sortedSet(rule(r)) {
			t.Errorf("%s: %s", name, b)
		}
	}
}

// list asks the go command, whose answers the test cache does not know of: readFiles reads all that they depend on.
func list(t *testing.T, system string) (packages []pkg) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list",
		"-json=ImportPath,Doc,GoFiles,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v", system, err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list for %s: %v", system, err)
		}
		packages = append(packages, p)
	}
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func readFiles(t *testing.T) (files []file) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (d.Name() == "testdata" || d.Name() == "bin" || d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		isGo := filepath.Ext(path) == ".go"
		if d.IsDir() || !isGo && path != "go.mod" && path != "go.sum" {
			return nil
		}
		content, err := os.ReadFile(path)
		if isGo {
			files = append(files, file{
				path:      filepath.ToSlash(path),
				lines:     bytes.Count(content, []byte("\n")),
				generated: generated.Match(content),
			})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// good is a small repository that keeps all rules.
func good() repository {
	var r repository
	for folder := range mayImport {
		r.packages = append(r.packages, pkg{ImportPath: module + "/" + folder, Doc: "It is.", GoFiles: []string{"doc.go"}})
		r.files = append(r.files, file{path: folder + "/doc.go", lines: maxLines})
	}
	r.packages = append(r.packages,
		pkg{ImportPath: module, XTestImports: []string{"testing", module + "/state"}},
		pkg{
			ImportPath:   module + "/register/cni",
			Doc:          "It is.",
			GoFiles:      []string{"doc.go"},
			Imports:      []string{"fmt", module + "/scanner", "github.com/containerd/go-cni"},
			Deps:         []string{"fmt", module + "/scanner", "github.com/containerd/go-cni"},
			TestImports:  []string{module + "/conformance/simfs", "testing", "github.com/google/go-cmp/cmp"},
			XTestImports: []string{module + "/register/cni", "testing/synctest"},
		},
		pkg{
			ImportPath: module + "/cmd/plugpoll",
			Doc:        "It is.",
			GoFiles:    []string{"main.go"},
			Imports:    []string{"github.com/spf13/cobra", module + "/register/cni"},
			Deps:       []string{"github.com/spf13/cobra", module + "/register/cni", "github.com/containerd/go-cni"},
		})
	r.files = append(r.files,
		file{path: "imports_test.go", lines: maxLines + 1},
		file{path: "register/pages.go", lines: maxLines + 1, generated: true})
	return r
}

// TestRulesCanFail plants a violation of each rule and expects that rule, and no other, to find it.
func TestRulesCanFail(t *testing.T) {
	add := func(p pkg) func(*repository) {
		p.ImportPath, p.Doc = module+"/"+p.ImportPath, "It is."
		return func(r *repository) { r.packages = append(r.packages, p) }
	}
	addFile := func(f file) func(*repository) { return func(r *repository) { r.files = append(r.files, f) } }
	imports := func(paths ...string) []string { return paths }
	tests := []struct {
		rule, want string
		plant      func(*repository)
	}{
		{"directions", "scanner imports state", add(pkg{ImportPath: "scanner", Imports: imports(module + "/state")})},
		{"directions", "state imports register", add(pkg{ImportPath: "state", Imports: imports(module + "/register")})},
		{"directions", "state imports register in a test", add(pkg{ImportPath: "state", XTestImports: imports(module + "/register")})},
		{"directions", "register imports conformance", add(pkg{ImportPath: "register", Imports: imports(module + "/conformance")})},
		{"directions", "register/csi imports cmd/plugpoll", add(pkg{ImportPath: "register/csi", Imports: imports(module + "/cmd/plugpoll")})},
		{"directions", "conformance imports cmd", add(pkg{ImportPath: "conformance", Imports: imports(module + "/cmd")})},
		{"directions", "conformance/simfs imports scanner", add(pkg{ImportPath: "conformance/simfs", Imports: imports(module + "/scanner")})},
		{"folders", "hack is not a code folder, but has hack/x.go", addFile(file{path: "hack/x.go"})},
		{"folders", "doc.go is code outside the code folders", addFile(file{path: "doc.go"})},
		{"folders", "state has no code", func(r *repository) {
			r.files = slices.DeleteFunc(r.files, func(f file) bool { return under(f.path, "state") })
		}},
		{"banned", "cmd/plugpoll links github.com/fsnotify/fsnotify", add(pkg{ImportPath: "cmd/plugpoll", Deps: imports("github.com/fsnotify/fsnotify")})},
		{"banned", "register links k8s.io/kubernetes/pkg/kubelet", add(pkg{ImportPath: "register", Deps: imports("k8s.io/kubernetes/pkg/kubelet")})},
		{"testing", "cmd/plugpoll links testing", add(pkg{ImportPath: "cmd/plugpoll", Deps: imports("flag", "testing")})},
		{"testing", "cmd/plugpoll links testing", add(pkg{ImportPath: "cmd/plugpoll", Imports: imports("testing"), Deps: imports("testing", "github.com/containerd/go-cni")})},
		{"testing", "register/cni links testing", func(r *repository) {
			for i, p := range r.packages {
				if p.folder() == "register/cni" {
					r.packages[i].Imports = append(p.Imports, "testing")
				}
			}
		}},
		{"cni", "register links github.com/containerd/go-cni", add(pkg{ImportPath: "register", Deps: imports("github.com/containerd/go-cni")})},
		{"cni", "cmd/plugpoll links github.com/containernetworking/cni/libcni", add(pkg{ImportPath: "cmd/plugpoll", Imports: imports("github.com/containernetworking/cni/libcni")})},
		{"dependencies", "scanner imports example.com/new", add(pkg{ImportPath: "scanner", Imports: imports("example.com/new")})},
		{"dependencies", "scanner imports github.com/google/go-cmp/cmp", add(pkg{ImportPath: "scanner", Imports: imports("github.com/google/go-cmp/cmp")})},
		{"dependencies", "scanner imports example.com/assert", add(pkg{ImportPath: "scanner", TestImports: imports("example.com/assert")})},
		{"lines", "state/core.go has 401 lines, more than 400", addFile(file{path: "state/core.go", lines: maxLines + 1})},
		{"comment", "register/dra has no package comment", func(r *repository) {
			r.packages = append(r.packages, pkg{ImportPath: module + "/register/dra", GoFiles: []string{"rule.go"}})
		}},
	}
	planted := map[string]bool{"": true}
	for _, test := range append(tests, struct {
		rule, want string
		plant      func(*repository)
	}{plant: func(*repository) {}}) {
		r := good()
		test.plant(&r)
		for name, rule := range rules {
			var want []string
			if name == test.rule {
				want = []string{test.want}
			}
			if got := sortedSet(rule(r)); !slices.Equal(got, want) {
				t.Errorf("planted %q: rule %s finds %q, want %q", test.want, name, got, want)
			}
		}
		planted[test.rule] = true
	}
	for name := range rules {
		if !planted[name] {
			t.Errorf("no violation of rule %s is planted", name)
		}
	}
}

func sortedSet(s []string) []string {
	set := map[string]bool{}
	for _, v := range s {
		set[v] = true
	}
	return slices.Sorted(maps.Keys(set))
}
