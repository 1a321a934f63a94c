package scanner

import (
	"io/fs"
	"strings"
	"testing"
	"time"
)

func TestNormalPath(t *testing.T) {
	for _, test := range [][2]string{
		{`C:\x\a.sock`, `C:\x\a.sock`},
		{`c:\x`, `C:\x`},
		{`C:/x/a.sock`, `C:\x\a.sock`},
		{`C:\x/y\\z\`, `C:\x\y\z`},
		{`C:\x\.\y\..\z`, `C:\x\z`},
		{`C:\..\..\x`, `C:\x`},
		{`C:\`, `C:\`},
		{`C:/`, `C:\`},
		{`C:`, `C:`},
		{`c:x\y`, `C:x\y`},
		{`C:..\x`, `C:..\x`},
		{`\\?\C:\x`, `C:\x`},
		{`\\?\c:\x\`, `C:\x`},
		{`\\?\C:`, `\\?\C:`},
		{`//?/C:/x`, `C:\x`},
		{`\??\C:\x`, `C:\x`},
		{`\\?\C:\x.`, `\\?\C:\x.`},
		{`\\?\C:\x \y`, `\\?\C:\x \y`},
		{`\\?\C:\..\y`, `\\?\C:\..\y`},
		{`\\?\Volume{1-2}\x`, `\\?\Volume{1-2}\x`},
		{`\\?\UNC\server\share\x`, `\\server\share\x`},
		{`\\?\unc\server\share`, `\\server\share`},
		{`\\server\share\x\..\..\y`, `\\server\share\y`},
		{`\\server\share\`, `\\server\share`},
		{`//server/share/x`, `\\server\share\x`},
		{`\\.\pipe\x`, `\\.\pipe\x`},
		{`\x\y`, `\x\y`},
		{`/x/y`, `\x\y`},
		{`\`, `\`},
		{`x\..\..\y`, `..\y`},
		{`.\x`, `x`},
		{`x\..`, `.`},
		{`.`, `.`},
		{``, ``},
	} {
		if got := NormalPath(test[0], "windows"); got != test[1] {
			t.Errorf("%s is %s, want %s", test[0], got, test[1])
		}
		if got := NormalPath(test[0], "linux"); got != test[0] {
			t.Errorf("on Linux %s became %s", test[0], got)
		}
	}
}

// FuzzNormalPath: a normal form is its own, has no slash, and case aside means the same as the path in other dress.
func FuzzNormalPath(f *testing.F) {
	for _, path := range []string{`C:\x`, `\\?\C:\x`, `//server/share/../x`, `\\?\UNC\a\b`, `..\x`, `c:`, `\\`, `\??\`} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := NormalPath(path, "windows")
		if again := NormalPath(got, "windows"); again != got {
			t.Errorf("%q, then %q, then %q", path, got, again)
		}
		if strings.Contains(got, "/") {
			t.Errorf("%q has a slash", got)
		}
		if other := NormalPath(strings.ReplaceAll(path, `\`, "/"), "windows"); other != got {
			t.Errorf("%q with slashes is %q, not %q", path, other, got)
		}
		if !Nested(path, got, "windows") {
			t.Errorf("%q and %q are two", path, got)
		}
	})
}

func TestNested(t *testing.T) {
	for _, c := range []struct {
		a, b, goos string
		want       bool
	}{
		{`C:\a`, `c:\A\b`, "windows", true},
		{`C:\a`, `C:/a`, "windows", true},
		{`C:\`, `C:\a`, "windows", true},
		{`C:\a`, `C:\ab`, "windows", false},
		{`C:\a`, `D:\a`, "windows", false},
		{"/a", "/A", "linux", false},
		{`/a`, `/a\b`, "linux", false},
		{"/", "/a", "linux", true},
	} {
		if got := Nested(c.a, c.b, c.goos); got != c.want || Nested(c.b, c.a, c.goos) != got {
			t.Errorf("Nested(%q, %q) on %s is %v", c.a, c.b, c.goos, got)
		}
	}
}

// Reparse points: what leads to a directory is not followed, what is one is read.
func TestReparsePoints(t *testing.T) {
	const irregular, directory = fs.ModeIrregular, fs.ModeIrregular | fs.ModeDir
	is := func(typ fs.FileMode) answer { return answer{asked: true, typ: typ} }
	gone := answer{asked: true, err: fs.ErrNotExist}
	for i, test := range []struct {
		listed         fs.FileMode
		lstat, stat    answer
		linux, windows class
	}{
		{irregular, answer{}, answer{}, askLstat, askLstat},
		{irregular, is(irregular), answer{}, classMaybe, askStat},
		{irregular, is(irregular), is(fs.ModeDir), classMaybe, classLinkToDirectory},
		{irregular, is(irregular), is(fs.ModeSocket), classMaybe, classSocket},
		{irregular, is(irregular), is(irregular), classMaybe, classMaybe},
		{irregular, is(irregular), is(0), classMaybe, classNotSocket},
		{irregular, is(irregular), gone, classMaybe, classMaybe},
		{directory, answer{}, answer{}, classDirectory, classDirectory},
		{irregular, is(directory), answer{}, classDirectory, classDirectory},
	} {
		if got := classify("linux", test.listed, test.lstat, test.stat); got != test.linux {
			t.Errorf("case %d on Linux: %d, want %d", i, got, test.linux)
		}
		if got := classify("windows", test.listed, test.lstat, test.stat); got != test.windows {
			t.Errorf("case %d on Windows: %d, want %d", i, got, test.windows)
		}
	}
	for typ, want := range map[fs.FileMode]bool{fs.ModeDir: true, directory: true, irregular: true, fs.ModeSocket: false, 0: false} {
		if got := listable("windows", typ); got != want {
			t.Errorf("a root of the type %v: %v", typ, got)
		}
		if got := listable("linux", typ); got != typ.IsDir() {
			t.Errorf("on Linux a root of the type %v: %v", typ, got)
		}
	}
}

// I3, I4: what each kind of filesystem gives.
func TestCertain(t *testing.T) {
	fine, coarse := int64(7*time.Second+time.Millisecond), int64(7*time.Second)
	full := Stamp{Device: 1, Inode: 2, ModTime: fine, ChangeTime: fine}
	for name, test := range map[string]struct {
		id   Identity
		want bool
	}{
		"ext4, tmpfs, xfs":        {Identity{Stamp: full}, true},
		"ext4 with small inodes":  {Identity{Stamp: Stamp{Device: 1, Inode: 2, ModTime: coarse, ChangeTime: coarse}}, false},
		"FAT":                     {Identity{Stamp: Stamp{Device: 1, Inode: 2, ModTime: coarse, ChangeTime: coarse}}, false},
		"Windows":                 {Identity{Stamp: Stamp{ModTime: fine}}, false},
		"in memory":               {Identity{Stamp: Stamp{ModTime: fine}}, false},
		"no change time":          {Identity{Stamp: Stamp{Device: 1, Inode: 2, ModTime: fine}}, false},
		"a link":                  {Identity{Stamp: full, Link: full}, true},
		"a link from FAT to ext4": {Identity{Stamp: full, Link: Stamp{Inode: 1, ChangeTime: coarse}}, false},
		"nothing":                 {Identity{}, false},
	} {
		if got := test.id.Certain(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
