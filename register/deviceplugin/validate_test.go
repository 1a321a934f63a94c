package deviceplugin_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/plugpoll/plugpoll/register/deviceplugin"
)

func TestValidateName(t *testing.T) {
	malformed := "is not a qualified name"
	for name, want := range map[string]string{
		"nvidia.com/gpu":                       "", // NVIDIA/k8s-device-plugin
		"nvidia.com/mig-1g.5gb.shared":         "",
		"intel.com/sriov_netdevice":            "", // k8snetworkplumbingwg/sriov-network-device-plugin
		"squat.ai/fuse":                        "", // squat/generic-device-plugin
		"hardware-vendor.example/foo":          "", // kubernetes.io, device plugin guide
		"example.com/MyDevice":                 "",
		"example/0":                            "",
		"kubernetes.io.example.com/x":          "",
		"request.example.com/x":                "",
		domain(244) + "/x":                     "",
		domain(245) + "/x":                     malformed,
		"example.com/" + repeat("x", 63):       "",
		"example.com/" + repeat("x", 64):       malformed,
		domain(244) + "/" + repeat("x", 63):    "",
		domain(244) + "/" + repeat("x", 64):    "has 309 bytes",
		repeat("/", 1<<20):                     "has 1048576 bytes",
		"":                                     `resource name "" is empty`,
		"gpu":                                  "has no domain",
		"cpu":                                  "has no domain",
		"hugepages-2Mi":                        "has no domain",
		"kubernetes.io/gpu":                    "kubernetes.io domain",
		"device.kubernetes.io/gpu":             "kubernetes.io domain",
		"notkubernetes.io/gpu":                 "kubernetes.io domain",
		"requests.example.com/gpu":             "which quotas use",
		"requests.nvidia.com/gpu":              "which quotas use",
		"/gpu":                                 malformed,
		"example.com/":                         malformed,
		"example.com/a/b":                      malformed,
		"Example.com/gpu":                      malformed,
		"example..com/gpu":                     malformed,
		"-example.com/gpu":                     malformed,
		"example.com/_gpu":                     malformed,
		"example.com/gpu.":                     malformed,
		"example.com/g pu":                     malformed,
		"example.com/gpu\n":                    `"example.com/gpu\n" is not a qualified name`,
		"example.com/\xff":                     malformed,
		"\u212a.example.com/gpu":               malformed,
		"example.com/\u212a":                   malformed,
		repeat("\U000e0001", 70) + "/x":        malformed,
		"a/" + repeat("\x00", 100):             malformed,
		"kubernetes.io/" + repeat("\xff", 200): "kubernetes.io domain",
	} {
		check(t, deviceplugin.Validate(name, []string{"v1beta1"}), want)
	}
}

func TestValidateVersions(t *testing.T) {
	none := `want "v1beta1" among them`
	tests := []struct {
		versions []string
		want     string
	}{
		{versions: []string{v1beta1.Version}},
		{versions: v1beta1.SupportedVersions[:]},
		{versions: []string{"v1alpha", "v1beta1", "v2"}},
		{versions: append(slices.Repeat([]string{"x"}, 5000), "v1beta1")},
		{versions: nil, want: "versions [] are empty"},
		{versions: []string{}, want: "versions [] are empty"},
		{versions: []string{""}, want: `versions [""] (1 in all)`},
		{versions: []string{"v1alpha"}, want: none},
		{versions: []string{"V1beta1", " v1beta1", "v1beta1\n"}, want: none},
		{versions: []string{"1.0.0"}, want: none},
		{versions: []string{"v1beta1.DevicePlugin"}, want: none},
		{versions: slices.Repeat([]string{repeat("\U000e0001", 1000)}, 5000), want: "(5000 in all)"},
	}
	for _, test := range tests {
		check(t, deviceplugin.Validate("example.com/gpu", test.versions), test.want)
	}
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }

// domain returns a DNS subdomain of n bytes.
func domain(n int) string { return repeat("a.", n)[:n-1] + "a" }

// check wants no error if want is empty, else a bounded one that contains it.
func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want == "":
	case err == nil:
		t.Errorf("no error, want one with %q", want)
	case want == "" || !strings.Contains(err.Error(), want):
		t.Errorf("error %q, want %q", err, want)
	default:
		checkText(t, err)
	}
}

func checkText(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 1024 || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00") {
		t.Errorf("error of %d bytes is too long, not UTF-8 or not one line: %q", len(text), text)
	}
}

func FuzzValidate(f *testing.F) {
	for _, name := range []string{
		"", "nvidia.com/gpu", "a/b/c", "kubernetes.io/x", "requests.a/b", "a-.b/c",
		"intel.com/sriov_netdevice", "\u212a/k", "\xff/\xff", domain(245) + "/x",
	} {
		f.Add(name, "v1beta1")
		f.Add(name, "v1alpha,\xff,")
	}
	f.Fuzz(func(t *testing.T, name, list string) {
		versions := strings.Split(list, ",")
		err := deviceplugin.Validate(name, versions)
		if err != nil {
			checkText(t, err)
		}
		if got, want := err == nil, extended(name) && slices.Contains(versions, "v1beta1"); got != want {
			t.Errorf("name %q, versions %q accepted: %v, want %v", name, versions, got, want)
		}
	})
}

// extended is the name rule again, by hand and byte by byte.
func extended(name string) bool {
	prefix, short, found := strings.Cut(name, "/")
	if !found || len(prefix) > 244 || strings.HasPrefix(name, "requests.") ||
		strings.HasSuffix(prefix, "kubernetes.io") || len(short) > 63 || !word(short, "-_.", true) {
		return false
	}
	for label := range strings.SplitSeq(prefix, ".") {
		if !word(label, "-", false) {
			return false
		}
	}
	return true
}

// word: letters and digits, and inner only between them.
func word(s, inner string, upper bool) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', upper && 'A' <= c && c <= 'Z':
		case i > 0 && i < len(s)-1 && strings.IndexByte(inner, c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
