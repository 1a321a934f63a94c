package dra_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/plugpoll/plugpoll/register/dra"
)

func TestValidateName(t *testing.T) {
	for name, want := range map[string]string{
		"gpu.nvidia.com":                    "", // NVIDIA/k8s-dra-driver-gpu
		"gpu.intel.com":                     "", // intel/intel-resource-drivers-for-kubernetes
		"dra.cpu":                           "", // kubernetes-sigs/dra-driver-cpu
		"gpu.example.com":                   "", // kubernetes-sigs/dra-example-driver
		"test-driver.cdi.k8s.io":            "", // kubernetes/kubernetes test/e2e/dra
		"pluginB":                           "", // kubelet's own registration test
		"0":                                 "",
		strings.Repeat("a", 63):             "",
		strings.Repeat("a", 64):             `" has 64 bytes, want 1 to 63`,
		strings.Repeat("a.", 1<<19) + "a":   "has 1048577 bytes",
		"":                                  `driver name "" is empty`,
		"a..b":                              "not a domain name",
		".gpu.example.com":                  "not a domain name",
		"gpu.example.com.":                  "not a domain name",
		"gpu-.example.com":                  "not a domain name",
		"gpu_1.example.com":                 "not a domain name",
		"gpu.example.com/pool":              "not a domain name",
		"..":                                "not a domain name",
		"a\n":                               `"a\n" is not a domain name`,
		"a\x00":                             "not a domain name",
		"\xff":                              `"\xff" is not a domain name`,
		"\u212aelvin.example.com":           "not a domain name", // lowers to "k"
		"\u0130.example.com":                "not a domain name", // lowers to "i"
		"\u017f.example.com":                "not a domain name", // folds to "s"
		strings.Repeat("\U000e0001", 1<<10): "has 4096 bytes",
	} {
		check(t, dra.Validate(name, []string{"v1.DRAPlugin"}), want)
	}
}

func TestValidateVersions(t *testing.T) {
	none := `want the gRPC service "v1.DRAPlugin" or "v1beta1.DRAPlugin" among them`
	tests := []struct {
		versions []string
		want     string
	}{
		{versions: []string{drav1.DRAPluginService}},
		{versions: []string{"v1beta1.DRAPlugin"}},
		{versions: []string{"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth"}},
		{versions: []string{"v1alpha4.Node", "v1beta1.DRAPlugin"}},
		{versions: []string{"1.0.0", "v1.DRAPlugin"}},
		{versions: append(slices.Repeat([]string{"x"}, 5000), "v1.DRAPlugin")},
		{versions: nil, want: "versions [] are empty"},
		{versions: []string{""}, want: `versions [""] (1 in all)`},
		{versions: []string{"1.0.0"}, want: none}, // before Kubernetes 1.32
		{versions: []string{"v1alpha3.Node"}, want: none},
		{versions: []string{"v1alpha4.Node"}, want: none}, // 1.31, gone in 1.34
		{versions: []string{"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}, want: none},
		{versions: []string{"k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"}, want: none},
		{versions: []string{"v1.draplugin", " v1.DRAPlugin", "v1.DRAPlugin\n", "v1"}, want: none},
		{versions: slices.Repeat([]string{strings.Repeat("\U000e0001", 1000)}, 5000), want: "(5000 in all)"},
	}
	for _, test := range tests {
		check(t, dra.Validate("gpu.example.com", test.versions), test.want)
	}
}

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
	for _, name := range []string{"", "gpu.example.com", "A-b.c", "a..b", "-a", "\u212a", "\xff", strings.Repeat("a", 64)} {
		f.Add(name, "v1.DRAPlugin")
		f.Add(name, "1.0.0,\xff,v1beta1.DRAPlugin")
	}
	f.Fuzz(func(t *testing.T, name, list string) {
		versions := strings.Split(list, ",")
		err := dra.Validate(name, versions)
		if err != nil {
			checkText(t, err)
		}
		service := slices.Contains(versions, "v1.DRAPlugin") || slices.Contains(versions, "v1beta1.DRAPlugin")
		if got, want := err == nil, domain(name) && service; got != want {
			t.Errorf("name %q, versions %q accepted: %v, want %v", name, versions, got, want)
		}
	})
}

// domain is the name rule again, by hand and byte by byte.
func domain(name string) bool {
	alnum := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || !alnum(label[0]) || !alnum(label[len(label)-1]) {
			return false
		}
		for i := range len(label) {
			if !alnum(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return len(name) <= 63
}
