package register

import (
	"context"
	"time"

	"github.com/plugpoll/plugpoll/state"
)

// KubeletHandler is the method set of the kubelet's own plugin handlers (k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache.PluginHandler, Kubernetes 1.37).
type KubeletHandler interface {
	ValidatePlugin(ctx context.Context, pluginName string, endpoint string, versions []string) error
	RegisterPlugin(ctx context.Context, pluginName, endpoint string, versions []string, pluginClientTimeout *time.Duration) error
	DeRegisterPlugin(ctx context.Context, pluginName, endpoint string)
}

// The time RegisterPlugin is given for its calls to the plugin is what is left less this, at least half of it (R9).
const kubeletReserve = 10 * time.Second

// Kubelet makes a Handler of a handler written for the kubelet. RegisterPlugin is told how long its calls to the plugin may take: what is left of
// Config.HandlerTimeout less 10 s, at least half of it; nil if there is no deadline. DeRegisterPlugin cannot fail. Of several sockets that announce one name (N1) it
// can tell the endpoints apart, not the sockets.
//
// exclusive is whether h takes one instance of a name at a time (N2). The kubelet's CSI handler does; those for device plugins and DRA take all.
func Kubelet(h KubeletHandler, exclusive bool) Handler { return kubelet{h, exclusive} }

type kubelet struct {
	KubeletHandler
	exclusive bool
}

// Exclusive is asked by AddHandler.
func (k kubelet) Exclusive() bool { return k.exclusive }

func (k kubelet) Validate(ctx context.Context, r state.Registration) error {
	return k.ValidatePlugin(ctx, r.Name, r.Endpoint, r.Versions)
}

func (k kubelet) Register(ctx context.Context, r state.Registration, _ func(state.Report)) error {
	return k.RegisterPlugin(ctx, r.Name, r.Endpoint, r.Versions, clientTimeout(ctx))
}

func (k kubelet) Deregister(ctx context.Context, r state.Registration) error {
	k.DeRegisterPlugin(ctx, r.Name, r.Endpoint)
	return nil
}

// clientTimeout is nil without a deadline: the kubelet's handlers then use their own.
func clientTimeout(ctx context.Context) *time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	left := time.Until(deadline)
	left = max(left-kubeletReserve, left/2)
	return &left
}
