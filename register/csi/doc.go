// Package csi says whether a plugin that announces itself with the type
// CSIPlugin announces something a kubelet could use.
//
// [Validate] is pure: no I/O, no state, safe for concurrent use and for hostile
// input. It never looks at other plugins; which of several sockets of one name
// is handed on is decided elsewhere (N2).
//
// The rule has two halves.
//
// Name: the driver name of the CSI specification (spec.md, GetPluginInfo,
// GetPluginInfoResponse.name), in the reading of the Kubernetes API server
// (kubernetes/kubernetes pkg/apis/core/validation/validation.go,
// ValidateCSIDriverName): a DNS subdomain of 1 to 63 bytes, upper case allowed.
//
// Versions: at least one of them is a 1.x (kubernetes/kubernetes
// pkg/volume/csi/csi_plugin.go, validateVersions, which asks
// k8s.io/apimachinery pkg/util/version, HighestSupportedVersion); [Highest] of
// them is the one a kubelet records.
//
// Where this differs from the kubelet:
//   - Stricter: the kubelet's ValidatePlugin does not look at the name. A bad
//     one fails while it registers, after the driver was called, when the API
//     server refuses the CSINode (pkg/apis/storage/validation/validation.go,
//     validateCSINodeDriver); a kubelet without API server takes it.
//   - Stricter: only ASCII. The API server lowers the case by Unicode's rules
//     first, so that U+212A (Kelvin sign) and U+0130 pass as "k" and "i"; the
//     specification lists a-z, A-Z and 0-9.
//   - Looser: the kubelet refuses a name that is registered already unless the
//     new version is higher. That needs state and is N2's.
package csi
