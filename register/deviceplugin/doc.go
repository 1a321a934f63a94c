// Package deviceplugin says whether a plugin that announces itself with the
// type DevicePlugin announces something a kubelet could use.
//
// [Validate] is pure: no I/O, no state, safe for concurrent use and for hostile
// input.
//
// The rule has two halves, both asked by the kubelet in
// kubernetes/kubernetes pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go,
// ValidatePlugin.
//
// Name: an extended resource (pkg/apis/core/v1/helper/helpers.go,
// IsExtendedResourceName), DOMAIN/NAME where DOMAIN is a DNS subdomain outside
// kubernetes.io.
//
// Versions: one of them is v1beta1 exactly (server.go beside the handler,
// isVersionCompatibleWithPlugin, and SupportedVersions of
// k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1).
//
// It accepts and refuses what the kubelet does; only the order differs, name
// first, and the error texts.
package deviceplugin
