// Package dra says whether a plugin that announces itself with the type
// DRAPlugin (dynamic resource allocation) announces something a kubelet could
// use.
//
// [Validate] is pure: no I/O, no state, safe for concurrent use and for hostile
// input.
//
// The rule has two halves.
//
// Name: the driver name of the resource.k8s.io API (kubernetes/kubernetes
// pkg/apis/resource/validation/validation.go, validateDriverName): a DNS
// subdomain of 1 to 63 bytes (k8s.io/api resource/v1, DriverNameMaxLength), upper
// case allowed: the rule of csi.ValidateName.
//
// Versions: for this type they are names of gRPC services, and one of them is
// v1.DRAPlugin or v1beta1.DRAPlugin (pkg/kubelet/cm/dra/plugin:
// validateSupportedServices in dra_plugin_manager.go, servicesSupportedByKubelet
// in dra_plugin.go). Others beside it are fine; v1.DRAResourceHealth is one that
// drivers announce. A plain version such as "1.0.0", as drivers before
// Kubernetes 1.32 announced it, is refused since 1.34 [k#132574].
//
// Where this differs from the kubelet:
//   - Stricter: the kubelet's ValidatePlugin does not look at the name, and takes
//     an empty one. The API server refuses the driver's ResourceSlices later.
//   - Stricter: only ASCII. The API server lowers the case by Unicode's rules
//     first, so that U+212A (Kelvin sign) and U+0130 pass as "k" and "i".
package dra
