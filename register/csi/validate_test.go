package csi_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plugpoll/plugpoll/register/csi"
)

func TestValidateName(t *testing.T) {
	for name, want := range map[string]string{
		"hostpath.csi.k8s.io":                    "", // kubernetes-csi/csi-driver-host-path
		"ebs.csi.aws.com":                        "", // kubernetes-sigs/aws-ebs-csi-driver
		"rook-ceph.rbd.csi.ceph.com":             "", // rook/rook
		"csi-hostpath":                           "", // one label is a domain name too
		"9p.example.com":                         "", // RFC 1123 lets a label begin with a digit
		"Example.COM":                            "",
		"a":                                      "",
		strings.Repeat("a", 63):                  "",
		strings.Repeat("a", 64):                  `" has 64 bytes, want 1 to 63`,
		strings.Repeat("a.", 1<<19) + "a":        `has 1048577 bytes`,
		"":                                       `driver name "" is empty`,
		".":                                      "not a domain name",
		"a..b":                                   "not a domain name",
		".a":                                     "not a domain name",
		"a.":                                     "not a domain name",
		"-a":                                     "not a domain name",
		"a-.b":                                   "not a domain name",
		"a_b.example.com":                        "not a domain name",
		"example.com/driver":                     "not a domain name",
		"../../etc/passwd":                       "not a domain name",
		"a b":                                    "not a domain name",
		"a\n":                                    `"a\n" is not a domain name`,
		"a\x00":                                  "not a domain name",
		"\xff\xfe":                               `"\xff\xfe" is not a domain name`,
		"\u212aelvin.example.com":                "not a domain name", // lowers to "k"
		"\u0130.example.com":                     "not a domain name", // lowers to "i"
		"\u017f.example.com":                     "not a domain name", // folds to "s"
		strings.Repeat("\U000e0001", 1<<10):      "has 4096 bytes",
		"b\u00fccher.example.com":                "not a domain name",
		strings.Repeat("a", 62) + "\u00fc":       "has 64 bytes",
		"xn--bcher-kva.example.com":              "",
		"csi.example.com,other.csi.example.com":  "not a domain name",
		"unix:///var/lib/kubelet/plugins/a.sock": "not a domain name",
	} {
		check(t, csi.Validate(name, []string{"1.0.0"}), want)
	}
}

func TestHighest(t *testing.T) {
	none := "name no CSI version 1.x"
	tests := []struct {
		versions []string
		highest  string
		want     string
	}{
		{versions: []string{"1.0.0"}, highest: "1.0.0"}, // node-driver-registrar announces this one
		{versions: []string{"v1.9.0"}, highest: "1.9.0"},
		{versions: []string{"1.0"}, highest: "1.0"},
		{versions: []string{"0.3.0", "1.0.0"}, highest: "1.0.0"},
		{versions: []string{"1.2.0", "1.10.0", "1.9.9"}, highest: "1.10.0"},
		{versions: []string{"2.0.0", "1.0.0", "3.1.0"}, highest: "1.0.0"},
		{versions: []string{"", "x", "1.0.0", "1"}, highest: "1.0.0"},
		{versions: []string{" 1.1.0-rc1 anything"}, highest: "1.1.0"},
		{versions: nil, want: "versions [] are empty"},
		{versions: []string{""}, want: `versions [""] (1 in all)`},
		{versions: []string{"1"}, want: none},
		{versions: []string{"01.0.0"}, want: none},
		{versions: []string{"0.3.0", "0.2.0"}, want: none},
		{versions: []string{"2.0.0"}, want: none},
		{versions: []string{"0.3.0", "2.0.0"}, want: none},
		{versions: []string{"1.99999999999999999999"}, want: none},
		{versions: []string{"one.two", "v1beta1"}, want: none},
		{versions: []string{"1.0\nforged"}, want: `["1.0\nforged"]`},
		{versions: []string{"\xff", "-1.0.0", "1,0,0"}, want: none},
		{versions: slices.Repeat([]string{strings.Repeat("\U000e0001", 100)}, 5000), want: "(5000 in all)"},
		{versions: []string{"x" + strings.Repeat("1.", 1<<14)}, want: none},
	}
	for _, test := range tests {
		highest, err := csi.Highest(test.versions)
		check(t, err, test.want)
		if err == nil && highest.String() != test.highest {
			t.Errorf("Highest(%q) = %v, want %s", test.versions, highest, test.highest)
		}
		check(t, csi.Validate("csi.example.com", test.versions), test.want)
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
	for _, name := range []string{"", "hostpath.csi.k8s.io", "A-b.c", "a..b", "-a", "\u212a", "\xff", strings.Repeat("a", 64)} {
		f.Add(name, "1.0.0")
		f.Add(name, "0.3.0,2.0.0,v1.1,\xff,")
	}
	f.Fuzz(func(t *testing.T, name, list string) {
		versions := strings.Split(list, ",")
		err := csi.Validate(name, versions)
		if err != nil {
			checkText(t, err)
		} else if !slices.ContainsFunc(versions, major1) {
			t.Errorf("accepted versions %q without a 1.x", versions)
		}
		if got, want := csi.Validate(name, []string{"1.0.0"}) == nil, domain(name); got != want {
			t.Errorf("name %q accepted: %v, want %v", name, got, want)
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

func major1(v string) bool {
	minor, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimLeft(v, "\t\n\f\r "), "v"), "1.")
	return ok && minor != "" && '0' <= minor[0] && minor[0] <= '9'
}
