package dra

import (
	"fmt"
	"slices"

	"github.com/plugpoll/plugpoll/register/csi"
)

// The services repeat DRAPluginService of k8s.io/kubelet/pkg/apis/dra/v1 and
// v1beta1: importing them for two words would link gRPC, and with v1beta1 the
// whole of apimachinery's runtime.
const (
	serviceV1      = "v1.DRAPlugin"
	serviceV1beta1 = "v1beta1.DRAPlugin"
)

// Validate returns nil if a plugin of type DRAPlugin may register under name
// with the gRPC services it announces as its versions. An error names what was
// given and what would be right, in valid UTF-8 of less than 1 KiB (R3).
func Validate(name string, versions []string) error {
	if err := csi.ValidateName(name); err != nil {
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
