package register

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/state"
)

func goodAnswer() *registerapi.PluginInfo {
	return &registerapi.PluginInfo{Type: testType, Name: "a", Endpoint: "/run/a.sock", SupportedVersions: []string{"v1"}}
}

// R16: each bound, just kept and just broken. The text names the field, the bound and what to do.
func TestBounds(t *testing.T) {
	n := func(count int) string { return strings.Repeat("n", count) }
	for name, test := range map[string]struct {
		change func(*registerapi.PluginInfo)
		want   string // empty: it is fine
	}{
		"fine":                 {func(*registerapi.PluginInfo) {}, ""},
		"longest name":         {func(a *registerapi.PluginInfo) { a.Name = n(253) }, ""},
		"name":                 {func(a *registerapi.PluginInfo) { a.Name = n(254) }, "name has 254 bytes, more than 253: shorten it"},
		"longest type":         {func(a *registerapi.PluginInfo) { a.Type = n(253) }, ""},
		"type":                 {func(a *registerapi.PluginInfo) { a.Type = n(254) }, "type has 254 bytes, more than 253: shorten it"},
		"longest endpoint":     {func(a *registerapi.PluginInfo) { a.Endpoint = "/" + n(4095) }, ""},
		"endpoint":             {func(a *registerapi.PluginInfo) { a.Endpoint = "/" + n(4096) }, "endpoint has 4097 bytes, more than 4096: shorten it"},
		"most versions":        {func(a *registerapi.PluginInfo) { a.SupportedVersions = slices.Repeat([]string{"v"}, 64) }, ""},
		"versions":             {func(a *registerapi.PluginInfo) { a.SupportedVersions = slices.Repeat([]string{"v"}, 65) }, "supported_versions has 65 versions, more than 64: name fewer"},
		"longest version":      {func(a *registerapi.PluginInfo) { a.SupportedVersions = []string{n(256)} }, ""},
		"version":              {func(a *registerapi.PluginInfo) { a.SupportedVersions = []string{"v", n(257)} }, "supported_versions[1] has 257 bytes, more than 256: shorten it"},
		"newline":              {func(a *registerapi.PluginInfo) { a.Name = "a\nb" }, `name holds a control character: remove it from a\nb`},
		"escape":               {func(a *registerapi.PluginInfo) { a.Type = "\x1b[2J" }, `type holds a control character: remove it from \x1b[2J`},
		"NUL":                  {func(a *registerapi.PluginInfo) { a.Endpoint = "/a\x00" }, `endpoint holds a control character: remove it from /a\x00`},
		"C1":                   {func(a *registerapi.PluginInfo) { a.SupportedVersions = []string{"\u009b"} }, `supported_versions[0] holds a control character: remove it from \u009b`},
		"not UTF-8":            {func(a *registerapi.PluginInfo) { a.Name = "a\xff" }, `name is not valid UTF-8: a\xff`},
		"other scripts":        {func(a *registerapi.PluginInfo) { a.Name = "ü漢🙂" }, ""},
		"no versions":          {func(a *registerapi.PluginInfo) { a.SupportedVersions = nil }, ""},
		"a version of nothing": {func(a *registerapi.PluginInfo) { a.SupportedVersions = []string{""} }, ""},
	} {
		a := goodAnswer()
		test.change(a)
		_, err := understand(a, "/s", "linux")
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: the error is %v, want %q", name, err, test.want)
		}
	}
}

// R16: whatever an answer holds, what is taken of it is within the bounds, and what is said of it is short and plain.
func FuzzUnderstand(f *testing.F) {
	f.Add("CSIPlugin", "a.example.com", "/run/a.sock", "1.0.0", 1)
	f.Add("", "\x00", "unix:///", "\xff", 65)
	f.Add(strings.Repeat("t", 254), "n", "tcp://h", "v", 0)
	f.Fuzz(func(t *testing.T, pluginType, name, endpoint, version string, count int) {
		a := &registerapi.PluginInfo{Type: pluginType, Name: name, Endpoint: endpoint, SupportedVersions: slices.Repeat([]string{version}, max(0, count%100))}
		for _, goos := range []string{"linux", "windows"} {
			info, err := understand(a, "/socket", goos)
			texts := append([]string{info.Type, info.Name, info.Endpoint}, info.Versions...)
			if err != nil {
				texts = []string{err.Error()}
			}
			for _, text := range texts {
				if len(text) > maxEndpoint || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
					t.Errorf("%q is passed on", text)
				}
			}
			if err == nil && (len(info.Name) > maxName || len(info.Type) > maxType || len(info.Versions) > maxVersions) {
				t.Errorf("%+v is accepted", info)
			}
			if err != nil && len(err.Error()) > 1024 {
				t.Errorf("a text of %d bytes", len(err.Error()))
			}
		}
	})
}

// R16: who says too much is told so, and rejected.
func TestTooMuch(t *testing.T) {
	for name, test := range map[string]struct {
		plugin simfs.Plugin
		want   string
	}{
		"name":   {simfs.Plugin{Name: strings.Repeat("n", 254)}, "GetInfo: name has 254 bytes, more than 253: shorten it"},
		"answer": {simfs.Plugin{Name: strings.Repeat("n", maxAnswer)}, "GetInfo: the answer is larger than 1048576 bytes: shorten it"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(w *world) {
				p := w.bind("a.sock", test.plugin)
				w.run()
				w.phase("a.sock", state.Rejected)
				w.told(p, no(test.want))
				w.pass(9 * time.Minute)
				if r := p.Record(); r.Dials != 1 || r.Conns != 0 {
					t.Errorf("the plugin saw %+v", r)
				}
				w.calls()
				p.Change(simfs.Plugin{Type: testType, Name: "a"})
				w.must(w.m.Retry(at("a.sock")))
				w.pass(time.Second)
				w.phase("a.sock", state.Registered)
			})
		})
	}
}

// R16: a status of the plugin's own that looks like gRPC's is its own loss.
func TestResourceExhausted(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{GetInfo: simfs.Call{Code: codes.ResourceExhausted}})
		w.run()
		w.phase("a.sock", state.Backoff)
	})
}
