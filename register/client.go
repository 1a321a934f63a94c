package register

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// writeBuffer holds any message of ours but a long refusal, in bytes.
const writeBuffer = 1 << 10

// speaker speaks the registration protocol.
type speaker interface {
	// ask dials and asks (R1). A connection that comes with an error is good for telling the plugin what is wrong with its answer.
	ask(ctx context.Context, e scanner.Entry) (state.Info, *connection, error)
	// notify tells the plugin what became of it (R3, R4).
	notify(ctx context.Context, conn *connection, n state.Notify) error
}

// client speaks it over gRPC. It has no state: connections are the Manager's.
type client struct {
	cfg   Config
	files *files
	dials *dials
}

// open dials a socket and puts gRPC on the connection (R17).
func (c client) open(ctx context.Context, e scanner.Entry) (*connection, error) {
	dialCtx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	d, err := c.dials.do(dialCtx, e.Path, func() (dialled, error) { return c.dial(dialCtx, e) })
	if err != nil {
		err = bare(err)
		if ctx.Err() == nil && !errors.Is(err, errHung) && (dialCtx.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
			err = fmt.Errorf("no connection within %v: %w", c.cfg.DialTimeout, err)
		}
		return nil, fmt.Errorf("dial: %w", err)
	}
	raw, peer := d.raw, d.peer
	if err := allowedPeer(peer, c.cfg.AllowedUIDs); err != nil {
		return nil, errors.Join(fmt.Errorf("dial: %w", err), raw.shut())
	}
	// The target is a constant, never the path: gRPC parses targets, and file names may hold anything (R14).
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithContextDialer(once(raw)),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		// What a plugin says is bounded where it comes in (R16).
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		// Each connection is kept and has little to say; gRPC's default is 32 KiB for each direction. What is read goes past a buffer, and gRPC has one for
		// writing only while something is written.
		grpc.WithReadBufferSize(0),
		grpc.WithWriteBufferSize(writeBuffer),
		grpc.WithIdleTimeout(0), // the default would close an idle connection after 30 minutes
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dial: %w", err), raw.shut())
	}
	return &connection{conn, raw, peer}, nil
}

// dial makes the calls that may not return.
func (c client) dial(ctx context.Context, e scanner.Entry) (d dialled, err error) {
	// The connection's, and one for a moment: the socket's while it is dialled (R15), and what Peer reads.
	files := 2
	if err := c.files.take(files); err != nil {
		return d, err
	}
	defer func() { c.files.give(files) }()
	conn, err := c.cfg.Dial(ctx, e)
	if err != nil {
		return d, err
	}
	d.peer, err = c.peerOf(conn)
	if err != nil {
		return d, errors.Join(err, conn.Close())
	}
	files--
	d.raw = &plain{Conn: conn, release: func() { c.files.give(1) }}
	return d, nil
}

// peerOf returns nil if nobody knows.
func (c client) peerOf(conn net.Conn) (*state.Peer, error) {
	if c.cfg.Peer == nil {
		return systemPeer(conn)
	}
	if p, ok := c.cfg.Peer(conn); ok {
		return &p, nil
	}
	return nil, nil
}

func (c client) ask(ctx context.Context, e scanner.Entry) (state.Info, *connection, error) {
	conn, err := c.open(ctx, e)
	if err != nil {
		return state.Info{}, nil, err
	}
	infoCtx, cancel := context.WithTimeout(ctx, c.cfg.InfoTimeout)
	defer cancel()
	answer, err := registerapi.NewRegistrationClient(conn).GetInfo(infoCtx, &registerapi.InfoRequest{})
	if err != nil {
		if tooLarge(err) { // the connection stands
			return state.Info{}, conn, Permanent(fmt.Errorf("GetInfo: the answer is larger than %d bytes: shorten it", maxAnswer))
		}
		return state.Info{}, nil, errors.Join(rpcError("GetInfo", err, conn, c.cfg.InfoTimeout), conn.Close())
	}
	info, err := understand(answer, e.Path, runtime.GOOS)
	if err != nil {
		return state.Info{}, conn, Permanent(fmt.Errorf("GetInfo: %w", err))
	}
	return info, conn, nil
}

func (c client) notify(ctx context.Context, conn *connection, n state.Notify) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.NotifyTimeout)
	defer cancel()
	_, err := registerapi.NewRegistrationClient(conn).NotifyRegistrationStatus(ctx,
		&registerapi.RegistrationStatus{PluginRegistered: n.Registered, Error: n.Message})
	return rpcError("NotifyRegistrationStatus", err, conn, c.cfg.NotifyTimeout)
}

// callError is a failed call, in words that begin with the call and not with "rpc error". It does not keep gRPC's error, which holds all that the plugin sent.
type callError struct {
	call string
	text string
	code codes.Code
}

func (e *callError) Error() string { return e.call + ": " + e.text }

func rpcError(call string, err error, conn *connection, limit time.Duration) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	message := scanner.Clean(s.Message(), maxErrorText)
	e := &callError{call: call, code: s.Code()}
	switch end := conn.raw.ending(); {
	case e.code == codes.DeadlineExceeded:
		e.text = "no answer within " + limit.String()
	case e.code == codes.Unavailable && end != "" && ofTransport.MatchString(message):
		e.text = end
	case e.code == codes.Unimplemented:
		e.text = "the socket does not offer it (" + message + ")"
	default:
		e.text = fmt.Sprintf("%s (%v)", cause(message), e.code)
	}
	return e
}

// ofTransport tells what gRPC's client says of a connection that ended from what a plugin answers. Its words differ with the moment, and each would
// be another cause in the log (O1); how the connection ended says more.
var ofTransport = regexp.MustCompile(`^(connection error|closing transport|transport is closing|error reading from server|failed to write)|preface`)

// cause unwraps what gRPC says when a connection comes to nothing: connection error: desc = "transport: …".
func cause(message string) string {
	quoted, ok := strings.CutPrefix(message, "connection error: desc = ")
	if !ok {
		return message
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return message
	}
	text = strings.TrimPrefix(text, "transport: ")
	return strings.TrimPrefix(text, "Error while dialing: ")
}

// Windows' own numbers: WSAECONNREFUSED, WSAEMFILE and WSAENOBUFS.
const (
	wsaRefused   = syscall.Errno(10061)
	wsaNoFiles   = syscall.Errno(10024)
	wsaNoBuffers = syscall.Errno(10055)
)

// ourCauses say nothing of the plugin: what our own process, or the system, may run out of, and calls that do not return (U4).
var ourCauses = []error{errHung, errManyHung, errNoFile, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, wsaNoFiles, wsaNoBuffers}

// isOurs reports whether an error says nothing of the plugin.
func isOurs(err error) bool {
	return slices.ContainsFunc(ourCauses, func(cause error) bool { return errors.Is(err, cause) })
}

// failureOf says what an error means for the next try (L1, R4, R8, R10, R13).
func failureOf(err error) state.Failure {
	if err == nil {
		return state.Transient
	}
	if _, ok := errors.AsType[*permanentError](err); ok {
		return state.Permanent
	}
	if e, ok := errors.AsType[*callError](err); ok && e.code == codes.Unimplemented {
		return state.Unsupported
	}
	if errors.Is(err, errStale) {
		return state.Stale
	}
	if isOurs(err) {
		return state.Local
	}
	// A refused connection is never the verdict "not a socket" (D2); these are.
	if errors.Is(err, syscall.ENOTSOCK) || errors.Is(err, syscall.EPROTOTYPE) {
		return state.Unsupported
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, wsaRefused) {
		return state.Refused
	}
	return state.Transient
}
