package csi

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/version"
)

// maxName is the longest driver name in bytes (CSI spec.md, GetPluginInfo).
const maxName = 63

const wantName = `1 to 63 letters, digits, "-" and ".", each part between dots beginning and ending ` +
	`with a letter or digit, such as "hostpath.csi.k8s.io"`

// Validate returns nil if a plugin of type CSIPlugin may register under name
// with the CSI versions it announces. An error names what was given and what
// would be right, in valid UTF-8 of less than 1 KiB (R3).
func Validate(name string, versions []string) error {
	if err := ValidateName(name); err != nil {
		return err
	}
	_, err := Highest(versions)
	return err
}

// Highest returns the version a kubelet would record for a driver that
// announces versions: the highest below 2.0, which must be a 1.x. What does not
// parse, and 2.0 and above, is passed over, as a kubelet does: CSI 2.x promises
// nothing to a caller of 1.x. 0.x alone is an error; Kubernetes 1.17 dropped it.
// The syntax is the one of k8s.io/apimachinery's version.ParseGeneric: two or
// more numbers, an optional "v", anything behind them.
func Highest(versions []string) (*version.Version, error) {
	if len(versions) == 0 {
		return nil, errors.New(`versions [] are empty, want at least one CSI version 1.x, such as "1.0.0"`)
	}
	highest, err := version.HighestSupportedVersion(versions)
	if err != nil {
		// The cause is not wrapped: it repeats every version, at any length.
		return nil, fmt.Errorf(`versions %.28q (%d in all) name no CSI version 1.x, want one such as "1.0.0"`,
			versions[:min(len(versions), 3)], len(versions))
	}
	return highest, nil
}

// ValidateName is the name's half of Validate. The API server has the same rule for the drivers of dynamic resource allocation.
func ValidateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("driver name %q is empty, want %s", name, wantName)
	case len(name) > maxName:
		return fmt.Errorf("driver name %.63q has %d bytes, want %s", name, len(name), wantName)
	case !subdomain(name):
		return fmt.Errorf("driver name %.63q is not a domain name, want %s", name, wantName)
	}
	return nil
}

// subdomain asks for ASCII first: ToLower turns U+212A and U+0130 into "k" and "i".
func subdomain(s string) bool {
	ascii := !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
	return ascii && len(content.IsDNS1123Subdomain(strings.ToLower(s))) == 0
}
