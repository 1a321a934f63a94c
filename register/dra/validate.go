package dra

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// The services repeat DRAPluginService of k8s.io/kubelet/pkg/apis/dra/v1 and
// v1beta1: importing them for two words would link gRPC, and with v1beta1 the
// whole of apimachinery's runtime.
const (
	serviceV1      = "v1.DRAPlugin"
	serviceV1beta1 = "v1beta1.DRAPlugin"
)

// maxName is the longest driver name in bytes (k8s.io/api resource/v1,
// DriverNameMaxLength).
const maxName = 63

const wantName = `1 to 63 letters, digits, "-" and ".", each part between dots beginning and ending ` +
	`with a letter or digit, such as "gpu.example.com"`

// Validate returns nil if a plugin of type DRAPlugin may register under name
// with the gRPC services it announces as its versions. An error names what was
// given and what would be right, in valid UTF-8 of less than 1 KiB (R3).
func Validate(name string, versions []string) error {
	if err := validateName(name); err != nil {
		return err
	}
	if len(versions) == 0 {
		return fmt.Errorf("versions [] are empty, want the gRPC service %q or %q among them", serviceV1, serviceV1beta1)
	}
	if !slices.ContainsFunc(versions, supported) {
		return fmt.Errorf("versions %.28q (%d in all) name no supported service, want the gRPC service %q or %q among them",
			versions[:min(len(versions), 3)], len(versions), serviceV1, serviceV1beta1)
	}
	return nil
}

func supported(service string) bool { return service == serviceV1 || service == serviceV1beta1 }

func validateName(name string) error {
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
