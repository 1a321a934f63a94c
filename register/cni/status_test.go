package cni

import (
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
)

// TestStatusText says what becomes of a plugin's own words.
func TestStatusText(t *testing.T) {
	tests := []struct {
		said types.Error
		want string
	}{
		{types.Error{Code: 50, Msg: "no addresses left"}, "no addresses left (code 50)"},
		{types.Error{Code: 51, Msg: "a", Details: "b"}, "a; b (code 51)"},
		{types.Error{}, "it fails and does not say why"},
		{types.Error{Code: 999}, "it fails and does not say why (code 999)"},
		{types.Error{Msg: "two\nlines\x1b[2J"}, `two\nlines\x1b[2J`},
	}
	for _, test := range tests {
		if got := statusText(&test.said); got != test.want {
			t.Errorf("%+v: %s\nwant %s", test.said, got, test.want)
		}
	}
	if got := statusText(&types.Error{Msg: strings.Repeat("x", 1<<20)}); len(got) > maxText {
		t.Errorf("%d bytes", len(got))
	}
}

func TestOlderText(t *testing.T) {
	tests := []struct {
		supported []string
		want      string
	}{
		{nil, ""},
		{[]string{"1.0.0", "1.1.0"}, ""},
		{[]string{"1.0.0", "0.4.0", "no\nversion"}, "/bin/x does not support cniVersion 1.1.0, only up to 1.0.0, and has no good answer to STATUS: no; install a newer one, or set the network's cniVersion to 1.0.0"},
		{[]string{"7.0.0"}, "/bin/x does not support cniVersion 1.1.0, and has no good answer to STATUS: no; install a newer one"},
	}
	for _, test := range tests {
		if got := olderText("/bin/x", "1.1.0", "no", test.supported); got != test.want {
			t.Errorf("%q: %s\nwant %s", test.supported, got, test.want)
		}
	}
}
