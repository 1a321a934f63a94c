package cni

import (
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"
)

// refusingFS does not say what is in a directory.
type refusingFS struct {
	afero.Fs
	path string
}

func (f refusingFS) Stat(name string) (fs.FileInfo, error) {
	if name == f.path {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: syscall.EACCES}
	}
	return f.Fs.Stat(name)
}

func TestMissing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths here are not Windows'")
	}
	mem := afero.NewMemMapFs()
	for path, mode := range map[string]os.FileMode{"/a/x": 0o755, "/b/x": 0o644, "/b/y": 0o644, "/a/group": 0o010, "/c/z": 0o755, "/c/y": 0o755} {
		if err := afero.WriteFile(mem, path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := mem.MkdirAll("/b/z", 0o755); err != nil {
		t.Fatal(err)
	}
	fsys := refusingFS{mem, "/b/secret"}
	needs := func(types ...string) []network { return []network{{name: "n", plugins: types}} }
	tests := []struct {
		name     string
		dirs     []string
		networks []network
		want     []string
	}{
		{"nobody needs any", nil, nil, nil},
		{"there", []string{"/a"}, needs("x", "group"), nil},
		{"in the second directory", []string{"/nowhere", "/a"}, needs("x"), nil},
		{"nowhere", []string{"/a", "/b c"}, needs("x", "w"), []string{`plugin "w": it is in none of /a, "/b c"; install it in /a`}},
		{"no directories", nil, needs("x"), []string{`plugin "x": there is no directory to look for it in; configure one`}},
		{"not executable", []string{"/b"}, needs("x"), []string{`plugin "x": /b/x is not executable; chmod +x it`}},
		// libcni runs the first file of that name, and fails.
		{"not executable, and another one that is", []string{"/b", "/c"}, needs("y"), []string{`plugin "y": /b/y is not executable; chmod +x it`}},
		{"a directory", []string{"/b"}, needs("z"), []string{`plugin "z": /b/z is no regular file; install it in /b`}},
		{"a directory, and a binary behind it", []string{"/b", "/c"}, needs("z"), nil},
		{"not to be seen", []string{"/b", "/nowhere"}, needs("secret"), []string{`plugin "secret": permission denied at /b/secret; install it in /b`}},
		{"a path", []string{"/a"}, needs("../a/x"), []string{`plugin "../a/x": it is no name of a file; write the name of the plugin's binary, without its directory`}},
		{"each once", []string{"/nowhere"}, needs("x", "w", "x"), []string{`plugin "x": it is in none of /nowhere; install it in /nowhere`, `plugin "w": it is in none of /nowhere; install it in /nowhere`}},
	}
	for _, test := range tests {
		var got []string
		for _, m := range missing(fsys, test.dirs, test.networks) {
			got = append(got, m.Error())
			if len(m.Networks) != 1 || len(m.Dirs) != len(test.dirs) {
				t.Errorf("%s: %+v", test.name, m)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}

	ipam := missingIPAM(fsys, []string{"/b", "/a"}, []network{{name: "n", ipam: []string{"", "w", "y", "group"}}, {name: "m", ipam: []string{"w", "a\x00b"}}})
	want := map[string]string{
		"w": `IPAM plugin "w": it is in none of /b, /a; install it in /b`, "y": `IPAM plugin "y": /b/y is not executable; chmod +x it`, "group": "",
		"a\x00b": `IPAM plugin "a\x00b": it is no name of a file; write the name of the plugin's binary, without its directory`,
	}
	if diff := cmp.Diff(want, ipam); diff != "" {
		t.Error(diff)
	}

	shared := missing(fsys, []string{"/a"}, []network{{name: "n", plugins: []string{"w", "x"}}, {name: "m", plugins: []string{"w", "w", "v"}}})
	var networks [][]string
	for _, m := range shared {
		networks = append(networks, m.Networks)
	}
	if diff := cmp.Diff([][]string{{"n", "m"}, {"m"}}, networks); diff != "" {
		t.Error(diff)
	}
	if m := missing(nil, []string{t.TempDir()}, needs("x")); len(m) != 1 {
		t.Errorf("on the system's filesystem: %v", m)
	}
}
