package deviceplugin

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

const (
	// apiVersion repeats v1beta1.Version of k8s.io/kubelet/pkg/apis/deviceplugin:
	// importing it for one word would link gRPC. A test compares the two.
	apiVersion = "v1beta1"

	// quotaPrefix goes before a resource's name in a ResourceQuota, where the
	// result must still be a qualified name (IsExtendedResourceName).
	quotaPrefix = "requests."

	// nativeSuffix ends the domains that Kubernetes keeps for itself. The kubelet
	// looks for it anywhere in the name, so "notkubernetes.io/x" is native too.
	nativeSuffix = "kubernetes.io/"

	maxDomain = content.DNS1123SubdomainMaxLength - len(quotaPrefix)
	maxShort  = 63 // the name part of a qualified name (content.IsLabelKey)
)

const wantName = `a lower-case DNS domain of at most 244 bytes, "/" and 1 to 63 letters, digits, "-", "_" ` +
	`and "." that begin and end with a letter or digit, such as "vendor.example/gpu"`

// Validate returns nil if a plugin of type DevicePlugin may register the
// resource name with the device plugin API versions it announces. An error
// names what was given and what would be right, in valid UTF-8 of less than
// 1 KiB (R3).
func Validate(name string, versions []string) error {
	if wrong := nameFault(name); wrong != "" {
		return fmt.Errorf("resource name %.63q %s, want %s", name, wrong, wantName)
	}
	if len(versions) == 0 {
		return fmt.Errorf("versions [] are empty, want %q among them", apiVersion)
	}
	if !slices.Contains(versions, apiVersion) {
		return fmt.Errorf("versions %.28q (%d in all) do not contain the device plugin API, want %q among them",
			versions[:min(len(versions), 3)], len(versions), apiVersion)
	}
	return nil
}

// nameFault returns "" for the name of an extended resource.
func nameFault(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxDomain+1+maxShort:
		return fmt.Sprintf("has %d bytes", len(name))
	case !strings.Contains(name, "/"):
		return "has no domain"
	case strings.Contains(name, nativeSuffix):
		return "is in the kubernetes.io domain"
	case strings.HasPrefix(name, quotaPrefix):
		return `begins with "requests.", which quotas use`
	case len(content.IsLabelKey(quotaPrefix+name)) > 0:
		return "is not a qualified name"
	}
	return ""
}
