package register

import (
	"context"
	"net"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// Understand returns what a Manager makes of an answer to GetInfo at the socket with this path, before it asks a Handler: a type and a name must be there, all texts
// are bounded (R16), and the endpoint is the absolute path of a unix socket (X5), the socket's own if none is given (R1). The error is what the plugin would be
// told. It takes the operating system, as in runtime.GOOS, as data.
func Understand(answer *registerapi.PluginInfo, socket, goos string) (state.Info, error) {
	return understand(answer, socket, goos)
}

// DialUnix is the Dialer that a Manager has if it is given none: of the operating system's unix sockets, on Linux of the very socket in e, whatever the length of
// its path (R15).
func DialUnix(ctx context.Context, e scanner.Entry) (net.Conn, error) { return dialUnix(ctx, e) }
