// Package record is the handler that takes note: it accepts the plugins that keep the rules of their type, shows them, and does nothing with them.
//
// The daemon uses it for the three types Kubernetes knows, so that an operator sees what a kubelet would be offered. Its Validate applies the rule of
// package csi, deviceplugin or dra; a type that is none of theirs has no rule and is accepted.
package record

import (
	"context"
	"fmt"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register/csi"
	"github.com/plugpoll/plugpoll/register/deviceplugin"
	"github.com/plugpoll/plugpoll/register/dra"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// Types are the plugin types that Kubernetes knows, sorted.
var Types = [...]string{registerapi.CSIPlugin, registerapi.DRAPlugin, registerapi.DevicePlugin}

// Handler is a register.Handler. Its zero value is ready, for any number of types, and has no state.
type Handler struct{}

// Validate applies the rule of the plugin's type.
func (Handler) Validate(_ context.Context, r state.Registration) error {
	switch r.Type {
	case registerapi.CSIPlugin:
		return csi.Validate(r.Name, r.Versions)
	case registerapi.DevicePlugin:
		return deviceplugin.Validate(r.Name, r.Versions)
	case registerapi.DRAPlugin:
		return dra.Validate(r.Name, r.Versions)
	}
	return nil
}

// Register accepts. It reports that the plugin's own API was not looked at.
func (Handler) Register(_ context.Context, r state.Registration, report func(state.Report)) error {
	report(state.Report{Health: state.HealthUnknown, Message: fmt.Sprintf("recorded; the plugin's own API at %s was not called", scanner.Quote(r.Endpoint))})
	return nil
}

// Deregister has nothing to undo.
func (Handler) Deregister(context.Context, state.Registration) error { return nil }
