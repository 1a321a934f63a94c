package simfs_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// bubble runs a test of one plugin in a synctest bubble, which fails when a goroutine is left.
func bubble(t *testing.T, p simfs.Plugin, test func(t *testing.T, node *simfs.FS, plugin *simfs.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		node := newFS(t, simfs.Config{})
		plugin, err := node.Bind("/p.sock", p)
		must(t, err)
		test(t, node, plugin)
	})
}

// client is a gRPC client over one connection to a socket.
func client(t *testing.T, node *simfs.FS, name string) (registrationv1.RegistrationClient, *grpc.ClientConn) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return node.Dial(ctx, name) }))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return registrationv1.NewRegistrationClient(conn), conn
}

func getInfo(ctx context.Context, c registrationv1.RegistrationClient) (*registrationv1.PluginInfo, error) {
	return c.GetInfo(ctx, &registrationv1.InfoRequest{})
}

func notify(ctx context.Context, c registrationv1.RegistrationClient, registered bool, text string) error {
	_, err := c.NotifyRegistrationStatus(ctx, &registrationv1.RegistrationStatus{PluginRegistered: registered, Error: text})
	return err
}

func TestRegistration(t *testing.T) {
	p := simfs.Plugin{Type: "CSIPlugin", Name: "n", Endpoint: "/e.sock", Versions: []string{"1.0.0", "v1"}}
	bubble(t, p, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		p.Versions[0] = "changed by the caller"
		if i := lstat(t, node, "/p.sock"); i.Mode().Type() != fs.ModeSocket {
			t.Errorf("bound: %v", i)
		}
		must(t, node.SymlinkIfPossible("p.sock", "/link"))
		c, _ := client(t, node, "/link")
		got, err := getInfo(t.Context(), c)
		must(t, err)
		if got.GetType() != "CSIPlugin" || got.GetName() != "n" || got.GetEndpoint() != "/e.sock" ||
			!cmp.Equal(got.GetSupportedVersions(), []string{"1.0.0", "v1"}) {
			t.Errorf("GetInfo: %v", got)
		}
		must(t, notify(t.Context(), c, false, "no"))
		must(t, notify(t.Context(), c, true, ""))
		want := simfs.Record{Dials: 1, Conns: 1, GetInfos: 1, Notices: []simfs.Notice{{Error: "no"}, {Registered: true}}}
		if diff := cmp.Diff(want, plugin.Record()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDialErrors(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.Mkdir("/d", 0o755))
	write(t, node, "/f", "")
	must(t, node.Mknod("/s", fs.ModeSocket|0o755))
	must(t, node.SymlinkIfPossible("s", "/l"))
	must(t, node.SymlinkIfPossible("x", "/dangling"))
	for name, want := range map[string]error{
		"/x": syscall.ENOENT, "/dangling": syscall.ENOENT, "/f/x": syscall.ENOTDIR, "": syscall.ENOENT,
		"/d": syscall.ECONNREFUSED, "/f": syscall.ECONNREFUSED, "/s": syscall.ECONNREFUSED, "/l": syscall.ECONNREFUSED,
	} {
		_, err := node.Dial(t.Context(), name)
		wantErr(t, "dial "+name, err, want)
		if opErr, ok := errors.AsType[*net.OpError](err); !ok || opErr.Op != "dial" || opErr.Addr.String() != name {
			t.Errorf("dial %s: %#v", name, err)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := node.Dial(canceled, "/s")
	wantErr(t, "dial, canceled", err, context.Canceled)
	_, err = node.Bind("/s", simfs.Plugin{})
	wantErr(t, "bind twice", err, syscall.EADDRINUSE)
	_, err = node.Bind("/x/s", simfs.Plugin{})
	wantErr(t, "bind nowhere", err, syscall.ENOENT)
	plugin, err := node.Bind("/live", simfs.Plugin{})
	must(t, err)
	node.Close()
	node.Close()
	for _, name := range []string{"/live", "/s"} {
		_, err = node.Dial(t.Context(), name)
		wantErr(t, "dial after Close", err, net.ErrClosed)
	}
	_, err = node.Bind("/new", simfs.Plugin{})
	wantErr(t, "bind after Close", err, net.ErrClosed)
	must(t, plugin.Stop(t.Context()))
}

func TestFailures(t *testing.T) {
	p := simfs.Plugin{
		Name:    "n",
		GetInfo: simfs.Call{Code: codes.Unavailable, Times: 2},
		Notify:  simfs.Call{Code: codes.Unimplemented},
	}
	bubble(t, p, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		c, _ := client(t, node, "/p.sock")
		for _, want := range []codes.Code{codes.Unavailable, codes.Unavailable, codes.OK, codes.OK} {
			if _, err := getInfo(t.Context(), c); status.Code(err) != want {
				t.Errorf("GetInfo: %v, want %v", err, want)
			}
		}
		for range 3 {
			if err := notify(t.Context(), c, true, ""); status.Code(err) != codes.Unimplemented {
				t.Errorf("Notify: %v", err)
			}
		}
		plugin.Change(p)
		if _, err := getInfo(t.Context(), c); status.Code(err) != codes.Unavailable {
			t.Errorf("changed: GetInfo: %v", err)
		}
		plugin.Change(simfs.Plugin{Name: "other"})
		info, err := getInfo(t.Context(), c)
		must(t, err)
		must(t, notify(t.Context(), c, true, ""))
		if info.GetName() != "other" {
			t.Errorf("changed: %v", info)
		}
		if r := plugin.Record(); r.GetInfos != 6 || len(r.Notices) != 4 {
			t.Errorf("record %+v", r)
		}
	})
}

func TestSlow(t *testing.T) {
	p := simfs.Plugin{GetInfo: simfs.Call{Delay: 3 * time.Second}, Notify: simfs.Call{Delay: time.Minute}}
	bubble(t, p, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		c, _ := client(t, node, "/p.sock")
		start := time.Now()
		_, err := getInfo(t.Context(), c)
		must(t, err)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("GetInfo took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := notify(ctx, c, true, "late"); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("Notify: %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("Notify took %v", took)
		}
		if r := plugin.Record(); len(r.Notices) != 1 || r.Notices[0].Error != "late" {
			t.Errorf("record %+v", r)
		}
		// A crash ends a slow call at once.
		result := make(chan error, 1)
		go func() { result <- notify(t.Context(), c, true, "") }()
		_, err = plugin.Wait(t.Context(), func(r simfs.Record) bool { return len(r.Notices) == 2 })
		must(t, err)
		start = time.Now()
		plugin.Crash()
		if err := <-result; status.Code(err) != codes.Unavailable || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestRefusedDials(t *testing.T) {
	bubble(t, simfs.Plugin{RefuseDials: 2}, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		for _, want := range []error{syscall.ECONNREFUSED, syscall.ECONNREFUSED, nil} {
			conn, err := node.Dial(t.Context(), "/p.sock")
			wantErr(t, "dial", err, want)
			if err == nil {
				must(t, conn.Close())
			}
		}
		plugin.Change(simfs.Plugin{RefuseDials: -1})
		for range 3 {
			_, err := node.Dial(t.Context(), "/p.sock")
			wantErr(t, "dial", err, syscall.ECONNREFUSED)
		}
		if r := plugin.Record(); r.Dials != 6 || r.Conns != 0 {
			t.Errorf("record %+v", r)
		}
	})
}

func TestSilent(t *testing.T) {
	bubble(t, simfs.Plugin{Silent: true}, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		c, _ := client(t, node, "/p.sock")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := getInfo(ctx, c); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("GetInfo: %v", err)
		}
		conn, err := node.Dial(t.Context(), "/p.sock")
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = conn.Read(make([]byte, 1))
		wantErr(t, "read", err, os.ErrDeadlineExceeded)
		must(t, conn.SetReadDeadline(time.Time{}))
		must(t, plugin.Stop(t.Context()))
		_, err = conn.Read(make([]byte, 1))
		wantErr(t, "read after Stop", err, io.EOF)
		must(t, conn.Close())
	})
}

func TestCrash(t *testing.T) {
	bubble(t, simfs.Plugin{}, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		c, conn := client(t, node, "/p.sock")
		_, err := getInfo(t.Context(), c)
		must(t, err)
		raw, err := node.Dial(t.Context(), "/p.sock")
		must(t, err)
		start := time.Now()
		plugin.Crash()
		_, err = raw.Read(make([]byte, 1))
		wantErr(t, "read", err, io.EOF)
		_, err = raw.Write([]byte("x"))
		wantErr(t, "write", err, syscall.EPIPE)
		must(t, raw.Close())
		_, err = raw.Read(make([]byte, 1))
		wantErr(t, "read when closed", err, net.ErrClosed)
		wantErr(t, "close again", raw.Close(), net.ErrClosed)
		synctest.Wait()
		if s := conn.GetState(); s == connectivity.Ready {
			t.Errorf("the client is %v", s)
		}
		if time.Since(start) != 0 {
			t.Errorf("it took %v", time.Since(start))
		}
		if i := lstat(t, node, "/p.sock"); i.Mode().Type() != fs.ModeSocket {
			t.Errorf("the socket: %v", i)
		}
		_, err = node.Dial(t.Context(), "/p.sock")
		wantErr(t, "dial", err, syscall.ECONNREFUSED)
		if r := plugin.Record(); r.Conns != 0 || r.Dials != 2 {
			t.Errorf("record %+v", r)
		}
		_, err = node.Bind("/p.sock", simfs.Plugin{})
		wantErr(t, "bind over the left socket", err, syscall.EADDRINUSE)
	})
}

func TestStop(t *testing.T) {
	p := simfs.Plugin{GetInfo: simfs.Call{Delay: time.Second}}
	bubble(t, p, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		c, _ := client(t, node, "/p.sock")
		result := make(chan error, 1)
		go func() {
			_, err := getInfo(t.Context(), c)
			result <- err
		}()
		_, err := plugin.Wait(t.Context(), func(r simfs.Record) bool { return r.GetInfos == 1 })
		must(t, err)
		start := time.Now()
		must(t, plugin.Stop(t.Context()))
		if took := time.Since(start); took != time.Second {
			t.Errorf("Stop took %v, the call under way needed 1s", took)
		}
		wantErr(t, "the call under way", <-result, nil)
		_, err = node.Dial(t.Context(), "/p.sock")
		wantErr(t, "dial", err, syscall.ECONNREFUSED)
	})
}

func TestStopGivesUp(t *testing.T) {
	p := simfs.Plugin{GetInfo: simfs.Call{Delay: time.Hour}}
	bubble(t, p, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		c, _ := client(t, node, "/p.sock")
		result := make(chan error, 1)
		go func() {
			_, err := getInfo(t.Context(), c)
			result <- err
		}()
		_, err := plugin.Wait(t.Context(), func(r simfs.Record) bool { return r.GetInfos == 1 })
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		wantErr(t, "Stop", plugin.Stop(ctx), context.DeadlineExceeded)
		if took := time.Since(start); took != time.Second {
			t.Errorf("Stop took %v", took)
		}
		if err := <-result; status.Code(err) != codes.Unavailable {
			t.Errorf("the call under way: %v", err)
		}
	})
}

// A client that sees EOF after a GOAWAY, byte by byte.
func TestStopSaysGoaway(t *testing.T) {
	bubble(t, simfs.Plugin{}, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		conn, err := node.Dial(t.Context(), "/p.sock")
		must(t, err)
		_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		must(t, err)
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- plugin.Stop(t.Context()) }()
		all, err := io.ReadAll(conn)
		must(t, err)
		var goaways int
		for len(all) >= 9 {
			length := int(all[0])<<16 | int(all[1])<<8 | int(all[2])
			if all[3] == 7 {
				goaways++
			}
			all = all[9+length:]
		}
		if goaways == 0 {
			t.Error("no GOAWAY came")
		}
		must(t, conn.Close())
		must(t, <-stopped)
	})
}
