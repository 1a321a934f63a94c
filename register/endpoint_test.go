package register

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// R14, X5: the forms in which plugins name their endpoint, on every system; what is not the absolute path of a socket is refused.
func TestEndpoint(t *testing.T) {
	const socket = "the socket"
	for _, c := range []struct {
		endpoint, goos, want string // want "": an error
	}{
		{"", "linux", socket},
		{"", "windows", socket},
		{"/run/a.sock", "linux", "/run/a.sock"},
		{"unix:/run/a.sock", "linux", "/run/a.sock"},
		{"unix:///run/a.sock", "linux", "/run/a.sock"},
		{"unix:////run/a.sock", "linux", "//run/a.sock"},
		{"/run/with blank #?%41.sock", "linux", "/run/with blank #?%41.sock"},
		{"unix:///run/with blank #?%41.sock", "darwin", "/run/with blank #?%41.sock"},
		{"/run/\xff.sock", "linux", "/run/\xff.sock"},
		{"unix://run/a.sock", "linux", ""},
		{"unix:", "linux", ""},
		{"unix://", "linux", ""},
		{"unix:a.sock", "linux", ""},
		{"a.sock", "linux", ""},
		{"./a.sock", "linux", ""},
		{"@a", "linux", ""},
		{"unix:@a", "linux", ""},
		{"\x00a", "linux", ""},
		{"/run/a\x00.sock", "linux", ""},
		{"unix-abstract:a", "linux", ""},
		{"tcp://127.0.0.1:80", "linux", ""},
		{"tcp://127.0.0.1:80", "windows", ""},
		{"dns:///a", "windows", ""},
		{"UNIX:/run/a.sock", "linux", ""},
		{" /run/a.sock", "linux", ""},
		{`C:\run\a.sock`, "linux", ""},
		{`C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`C:/run/a.sock`, "windows", `C:\run\a.sock`},
		{`unix:C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`unix://C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`unix:///\\?\C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`unix:///C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`unix:///C:/run/a.sock`, "windows", `C:\run\a.sock`},
		{`\\?\C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`unix:\\?\C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`unix://\\?\C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`\run\a.sock`, "windows", `\run\a.sock`},
		{`/run/a.sock`, "windows", `\run\a.sock`},
		{`unix:///run/a.sock`, "windows", `\run\a.sock`},
		{`C:a.sock`, "windows", ""},
		{`1:\a.sock`, "windows", ""},
		{`run\a.sock`, "windows", ""},
		{`unix:///`, "windows", `\`},
		{`unix:///C:`, "windows", `\C:`},
		{`\\?\C:\run \a.sock`, "windows", `\\?\C:\run \a.sock`}, // without the prefix the system would drop the blank
		{`/run/../a.sock`, "windows", `\a.sock`},
		{`\\\run\a.sock`, "windows", `\run\a.sock`},
		// Other machines, pipes and devices are no files of this system.
		{`\\host\share\a.sock`, "windows", ""},
		{`//host/share/a.sock`, "windows", ""},
		{`\/host\share/a.sock`, "windows", ""},
		{`\\host\share\..\..\a.sock`, "windows", ""},
		{`unix:\\host\share\a.sock`, "windows", ""},
		{`unix:////host/share/a.sock`, "windows", ""},
		{`unix:///\\host\share\a.sock`, "windows", ""},
		{`\\?\UNC\host\share\a.sock`, "windows", ""},
		{`//?/unc/host/share/a.sock`, "windows", ""},
		{`\??\UNC\host\share\a.sock`, "windows", ""},
		{`\\.\pipe\a`, "windows", ""},
		{`//./pipe/a`, "windows", ""},
		{`\\.\C:\a.sock`, "windows", ""},
		{`\\?\pipe\a`, "windows", ""},
		{`\\?\GLOBALROOT\Device\x`, "windows", ""},
		{`\??\GLOBALROOT\Device\x`, "windows", ""},
		{`\\?\Volume{1}\a.sock`, "windows", ""},
		{`\\?\C:a.sock`, "windows", ""},
		{`\\?\C:`, "windows", ""},
		{`\??\C:\run\a.sock`, "windows", `C:\run\a.sock`},
		{`\a\..\??\UNC\host\share\a`, "windows", ""},
		{`\\host`, "windows", ""},
		{`\\`, "windows", `\`},
	} {
		got, err := endpointPath(c.endpoint, socket, c.goos)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q on %s is %q, %v; want %q", c.endpoint, c.goos, got, err, c.want)
		}
	}
}

// rooted are the paths of Windows without a drive that are of this machine.
var rooted = regexp.MustCompile(`^\\([^\\?]|$)`)

// Whatever a plugin says, the answer is its socket, an absolute path without NUL that is the end of what it said, or an error that is one short line.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"", "/a", "unix:/a", "unix:///a", `unix:///C:\a`, `\\?\C:\a`, `//a/b`, `\\.\a`, `\??\a`, "tcp://a", "@a", "/\x00", "unix://\n" + strings.Repeat("x", 500)} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, endpoint string, windows bool) {
		goos := "linux"
		if windows {
			goos = "windows"
		}
		got, err := endpointPath(endpoint, "/socket", goos)
		switch {
		case err != nil:
			if text := err.Error(); got != "" || len(text) > 600 || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\x1b\x00") {
				t.Errorf("the error is %q with %q", text, got)
			}
		case endpoint == "":
			if got != "/socket" {
				t.Errorf("the empty endpoint is %q", got)
			}
		case !windows && !strings.HasSuffix(endpoint, got) || strings.ContainsRune(got, 0):
			t.Errorf("%q is %q", endpoint, got)
		case !windows && got[0] != '/', windows && !drive(got) && !drive(strings.TrimPrefix(got, `\\?\`)) && !rooted.MatchString(got):
			t.Errorf("%q is %q, which is not absolute, or not of this machine", endpoint, got)
		default:
			if again, err := endpointPath(got, "/socket", goos); again != got || err != nil {
				t.Errorf("%q is %q, and that is %q, %v", endpoint, got, again, err)
			}
		}
	})
}

// D10, R15: what net would take for something else than a path, and what does not fit.
func TestUnixAddress(t *testing.T) {
	long := "/" + strings.Repeat("x", 102)
	for _, c := range []struct{ path, goos, want string }{
		{"/a", "linux", "/a"},
		{"a", "linux", "a"},
		{"@a", "linux", "./@a"},
		{"/@a", "linux", "/@a"},
		{long, "darwin", long},
		{long + "x", "darwin", ""},
		{long + "xxxx", "linux", long + "xxxx"},
		{long + "xxxxx", "linux", ""},
		{long + "xxxx", "windows", long + "xxxx"},
	} {
		got, err := SocketAddress(c.path, c.goos)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q on %s is %q, %v", c.path, c.goos, got, err)
		}
	}
	_, err := SocketAddress(long+"xxxxx", "linux")
	if want := "path too long for a socket address (108 > 107 bytes): use a shorter directory"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
