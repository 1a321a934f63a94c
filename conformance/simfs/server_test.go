package simfs_test

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// Connections and listeners go by inode; paths only lead to them.
func TestRenameAndRebind(t *testing.T) {
	bubble(t, simfs.Plugin{Name: "old"}, func(t *testing.T, node *simfs.FS, old *simfs.Server) {
		ask := func(name string) string {
			c, conn := client(t, node, name)
			info, err := getInfo(t.Context(), c)
			must(t, err)
			must(t, conn.Close())
			return info.GetName()
		}
		open, _ := client(t, node, "/p.sock")
		_, err := getInfo(t.Context(), open)
		must(t, err)
		inode := keyOf(t, node, "/p.sock").inode
		must(t, node.Rename("/p.sock", "/moved.sock"))
		_, err = node.Dial(t.Context(), "/p.sock")
		wantErr(t, "dial the old path", err, syscall.ENOENT)
		_, err = node.Bind("/p.sock", simfs.Plugin{Name: "new"})
		must(t, err)
		if keyOf(t, node, "/p.sock").inode == inode || keyOf(t, node, "/moved.sock").inode != inode {
			t.Error("the inode did not move with the name")
		}
		if got := [2]string{ask("/p.sock"), ask("/moved.sock")}; got != [2]string{"new", "old"} {
			t.Errorf("asked: %v", got)
		}
		must(t, node.Rename("/p.sock", "/moved.sock"))
		if got := ask("/moved.sock"); got != "new" {
			t.Errorf("replaced by rename: %v", got)
		}
		must(t, node.Remove("/moved.sock"))
		if info, err := getInfo(t.Context(), open); err != nil || info.GetName() != "old" {
			t.Errorf("the open connection: %v, %v", info, err)
		}
		if r := old.Record(); r.Dials != 2 || r.GetInfos != 3 {
			t.Errorf("record %+v", r)
		}
	})
}

func TestPeer(t *testing.T) {
	p := simfs.Plugin{UID: 5, PID: 77, Start: 123}
	bubble(t, p, func(t *testing.T, node *simfs.FS, _ *simfs.Server) {
		conn, err := node.Dial(t.Context(), "/p.sock")
		must(t, err)
		uid, pid, start := conn.(interface {
			Peer() (uid, pid int, start uint64)
		}).Peer()
		if uid != 5 || pid != 77 || start != 123 {
			t.Errorf("peer %d %d %d", uid, pid, start)
		}
		if a := conn.RemoteAddr(); a.Network() != "unix" || a.String() != "/p.sock" {
			t.Errorf("address %v", a)
		}
		must(t, conn.Close())
	})
}

func TestWait(t *testing.T) {
	bubble(t, simfs.Plugin{}, func(t *testing.T, node *simfs.FS, plugin *simfs.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r, err := plugin.Wait(ctx, func(r simfs.Record) bool { return r.Dials > 0 })
		wantErr(t, "Wait", err, context.DeadlineExceeded)
		if diff := cmp.Diff(simfs.Record{}, r); diff != "" {
			t.Error(diff)
		}
		conn, err := node.Dial(t.Context(), "/p.sock")
		must(t, err)
		go func() { _ = conn.Close() }()
		r, err = plugin.Wait(t.Context(), func(r simfs.Record) bool { return r.Dials == 1 && r.Conns == 0 })
		must(t, err)
		if r.Dials != 1 {
			t.Errorf("record %+v", r)
		}
	})
}

func TestManyPlugins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newFS(t, simfs.Config{})
		for i := range 200 {
			name := "/" + string(rune('a'+i%26)) + time.Duration(i).String()
			_, err := node.Bind(name, simfs.Plugin{Name: name})
			must(t, err)
			c, _ := client(t, node, name)
			info, err := getInfo(t.Context(), c)
			must(t, err)
			if info.GetName() != name {
				t.Errorf("asked %s: %v", name, info)
			}
		}
		// Close while every client is still connected.
		node.Close()
	})
}

// A plugin that keeps no idle connection says goodbye and goes on serving.
func TestMaxIdle(t *testing.T) {
	bubble(t, simfs.Plugin{Name: "p", MaxIdle: time.Minute}, func(t *testing.T, node *simfs.FS, p *simfs.Server) {
		c, _ := client(t, node, "/p.sock")
		_, err := getInfo(t.Context(), c)
		must(t, err)
		open := func() int {
			synctest.Wait()
			return p.Record().Conns
		}
		time.Sleep(time.Minute - time.Millisecond) //nolint:forbidigo // the bubble's time
		if n := open(); n != 1 {
			t.Fatalf("%d connections before it is over", n)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // the bubble's time
		if n := open(); n != 0 {
			t.Fatalf("%d connections after it is over", n)
		}
		if info, err := getInfo(t.Context(), c); err != nil || info.GetName() != "p" {
			t.Errorf("asked again: %v, %v", info, err)
		}
	})
}
