package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/scanner"
)

// maxAnswer is more than a plugin may say: what is too long is to be seen, not cut off.
const maxAnswer = 4 << 20

// talk is one connection to the plugin.
type talk struct {
	*grpc.ClientConn
	registerapi.RegistrationClient
	patience time.Duration
}

// dial connects, once.
func (p plugin) dial(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	conn, err := p.Dial(ctx, path)
	if err == nil {
		return conn, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // its text has the path in it, unquoted
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("not within %v: %w", p.Patience, err)
	}
	return nil, fmt.Errorf("connecting to %s: %w", scanner.Quote(path), err)
}

// open connects and puts gRPC on the connection.
func (p plugin) open(ctx context.Context) (*talk, error) {
	raw, err := p.dial(ctx, p.Socket)
	if err != nil {
		return nil, err
	}
	given := make(chan net.Conn, 1)
	given <- raw
	conn, err := grpc.NewClient("passthrough:///plugin", // the path never passes through a target (R14)
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-given:
				return c, nil
			default:
				return nil, errors.New("the plugin closed the connection")
			}
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithIdleTimeout(0),
	)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &talk{conn, registerapi.NewRegistrationClient(conn), p.Patience}, nil
}

// said is the error of a call, without what gRPC puts before it.
func (t *talk) said(call string, err error) error {
	switch s := status.Convert(err); {
	case err == nil:
		return nil
	case s.Code() == codes.DeadlineExceeded:
		return fmt.Errorf("%s: no answer within %v", call, t.patience)
	case s.Code() == codes.Unimplemented:
		return fmt.Errorf("%s: the socket does not offer it (%s)", call, s.Message())
	default:
		return fmt.Errorf("%s: %s (%v)", call, s.Message(), s.Code())
	}
}

func (t *talk) ask(ctx context.Context) (*registerapi.PluginInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	info, err := t.GetInfo(ctx, &registerapi.InfoRequest{})
	return info, t.said("GetInfo", err)
}

func (t *talk) tell(ctx context.Context, registered bool, why string) error {
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	_, err := t.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: registered, Error: why})
	return t.said(fmt.Sprintf("NotifyRegistrationStatus(%v)", registered), err)
}

// with opens a connection for do, and closes it.
func (p plugin) with(ctx context.Context, do func(*talk) error) error {
	t, err := p.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(t), t.Close())
}

// ask is a question over a connection of its own.
func (p plugin) ask(ctx context.Context) (info *registerapi.PluginInfo, err error) {
	err = p.with(ctx, func(t *talk) error {
		info, err = t.ask(ctx)
		return err
	})
	return info, err
}
