package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/scanner"
)

// TestKubeletOf: a kubelet serves a directory if its socket in it or in device-plugins beside it accepts, or takes too long for that (X4).
func TestKubeletOf(t *testing.T) {
	listen := func(t *testing.T, path string) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	link := func(t *testing.T, to, path string) {
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, node string)
		dir     string // below the node; it has a and device-plugins
		want    string // below the node
	}{
		{"nothing", func(*testing.T, string) {}, "a", ""},
		{"inside", func(t *testing.T, n string) { listen(t, n+"/a/kubelet.sock") }, "a", "/a/kubelet.sock"},
		{"below", func(t *testing.T, n string) { listen(t, n+"/device-plugins/kubelet.sock") }, "", "/device-plugins/kubelet.sock"},
		{"inside, slashes", func(t *testing.T, n string) { listen(t, n+"/a/kubelet.sock") }, "a//", "/a/kubelet.sock"},
		{"beside", func(t *testing.T, n string) { listen(t, n+"/device-plugins/kubelet.sock") }, "a", "/device-plugins/kubelet.sock"},
		{"beside, slash", func(t *testing.T, n string) { listen(t, n+"/device-plugins/kubelet.sock") }, "a/", "/device-plugins/kubelet.sock"},
		{"the device plugins' own", func(t *testing.T, n string) { listen(t, n+"/device-plugins/kubelet.sock") }, "device-plugins", "/device-plugins/kubelet.sock"},
		{"beside what is not there yet", func(t *testing.T, n string) { listen(t, n+"/device-plugins/kubelet.sock") }, "later", "/device-plugins/kubelet.sock"},
		{"deeper", func(t *testing.T, n string) { listen(t, n+"/device-plugins/kubelet.sock") }, "a/b", ""},
		{"another's", func(t *testing.T, n string) { listen(t, n+"/a/other.sock") }, "a", ""},
		{"left behind", func(t *testing.T, n string) {
			leave(t, n+"/a/kubelet.sock")
			leave(t, n+"/device-plugins/kubelet.sock")
		}, "a", ""},
		{"one left behind", func(t *testing.T, n string) {
			leave(t, n+"/a/kubelet.sock")
			listen(t, n+"/device-plugins/kubelet.sock")
		}, "a", "/device-plugins/kubelet.sock"},
		{"a file", func(t *testing.T, n string) {
			if err := os.WriteFile(n+"/a/kubelet.sock", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "a", ""},
		{"a file for the directory", func(t *testing.T, n string) {
			if err := os.WriteFile(n+"/file", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "file", ""},
		{"the directory is a link", func(t *testing.T, n string) {
			link(t, n+"/a", n+"/c/link")
			listen(t, n+"/device-plugins/kubelet.sock")
		}, "c/link", "/c/link/../device-plugins/kubelet.sock"},
		{"the directory is a link, beside it", func(t *testing.T, n string) {
			link(t, n+"/c", n+"/link")
			listen(t, n+"/device-plugins/kubelet.sock")
		}, "link", "/device-plugins/kubelet.sock"},
		{"its socket is a link", func(t *testing.T, n string) {
			listen(t, n+"/c/s")
			link(t, "../c/s", n+"/a/kubelet.sock")
		}, "a", "/a/kubelet.sock"},
		{"dangling", func(t *testing.T, n string) { link(t, "nowhere", n+"/a/kubelet.sock") }, "a", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := socketDir(t)
			for _, dir := range []string{"a", "c", "device-plugins"} {
				if err := os.Mkdir(filepath.Join(node, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			test.prepare(t, node)
			got, unsure := kubeletOf(t.Context(), node+"/"+test.dir, connect)
			if unsure != nil {
				t.Errorf("unsure: %v", unsure)
			}
			if test.want != "" {
				test.want = node + test.want
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestKubeletAnswers has connecting end in ways that are hard to bring about. One that hangs counts as an answer, and is waited for a second (X4).
func TestKubeletAnswers(t *testing.T) {
	dir := socketDir(t)
	leave(t, filepath.Join(dir, "kubelet.sock"))
	for _, test := range []struct {
		name    string
		connect func(context.Context) error
		live    bool
		unsure  string
	}{
		{"accepts", func(context.Context) error { return nil }, true, ""},
		{"refuses", func(context.Context) error { return syscall.ECONNREFUSED }, false, ""},
		{"its backlog is full", func(context.Context) error { return syscall.EAGAIN }, true, ""},
		{"hangs", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, true, ""},
		{"hangs, as net says it", func(ctx context.Context) error {
			<-ctx.Done()
			return &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
		}, true, ""},
		{"is closed to us", func(context.Context) error { return syscall.EACCES }, false, "permission denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			socket, unsure := kubeletOf(t.Context(), dir, func(ctx context.Context, _ string) error { return test.connect(ctx) })
			if took := time.Since(began); took > acceptTimeout+patience/3 {
				t.Errorf("it took %v", took)
			}
			if (socket != "") != test.live {
				t.Errorf("the socket is %q, want one: %v", socket, test.live)
			}
			if (unsure == nil) != (test.unsure == "") || unsure != nil && !strings.Contains(unsure.Error(), test.unsure) {
				t.Errorf("unsure: %v, want %q", unsure, test.unsure)
			}
		})
	}
}

// TestKeepAway: each directory that a kubelet serves is named, with what to do.
func TestKeepAway(t *testing.T) {
	node := socketDir(t)
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(node, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", filepath.Join(node, dir, "kubelet.sock"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	err := keepAway(t.Context(), []scanner.Config{{Root: node + "/a"}, {Root: node + "/c"}, {Root: node + "/b"}}, hclog.NewNullLogger())
	var out strings.Builder
	complain(&out, err)
	want := ""
	for _, dir := range []string{"a", "b"} {
		want += "plugpoll: --dir " + node + "/" + dir + ": a kubelet serves it, " + node + "/" + dir +
			"/kubelet.sock answers: give --observe to look on, or --exclusive to register its plugins all the same\n"
	}
	if exitCode(err) != exitUsage || out.String() != want {
		t.Errorf("exit code %d, text\n%swant\n%s", exitCode(err), out.String(), want)
	}
}
