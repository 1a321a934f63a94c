package conformance_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance"
	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// The tests of this file are the examples of docs/testing.md, word for word (TestTestingDocument).

func TestNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its minutes take no time
		node := simfs.New(simfs.Config{})
		defer node.Close()
		for _, name := range []string{"a", "b", "c"} {
			if _, err := node.Bind("/"+name+".sock", simfs.Plugin{Type: "CSIPlugin", Name: name + ".example.com", Versions: []string{"1.0.0"}}); err != nil {
				t.Fatal(err)
			}
		}
		dial := func(ctx context.Context, e scanner.Entry) (net.Conn, error) { return node.Dial(ctx, e.Path) }
		m, err := register.NewManager(register.Config{Roots: []scanner.Config{{FS: node, Root: "/"}}, Dial: dial})
		if err != nil || m.AddHandler("CSIPlugin", record.Handler{}) != nil { // or your own handler
			t.Fatal(err)
		}
		go func() { _ = m.Run(t.Context()) }()
		<-m.Synced()
		node.Inject("/", simfs.OpList, simfs.Fault{Err: syscall.EIO}) // the disk breaks
		<-time.After(time.Minute)
		if s := m.View().Sockets; len(s) != 3 || s[0].Phase != state.Registered {
			t.Errorf("a disk that breaks lets plugins go: %+v", s)
		}
	})
}

func TestPlugin(t *testing.T) {
	socket := startPlugin(t) // your plugin, as its main function starts it
	conformance.Test(t, conformance.Plugin(conformance.PluginSubject{
		Socket:   socket,
		Notifies: true, // tell it that it is registered
		Rejects:  true, // tell it that it is not, and expect that it stays
		Remakes:  true, // remove its socket, and expect another one
	}))
}

func TestFilesystem(t *testing.T) {
	node := simfs.New(simfs.Config{}) // your filesystem
	defer node.Close()
	conformance.Test(t, conformance.FS(conformance.FSSubject{
		FS:     node,
		Dir:    "/",
		Socket: func(path string) error { return node.Mknod(path, fs.ModeSocket|0o755) },
		Lacks:  []string{}, // the ids of rules that it is known not to keep
	}))
}

func TestHandler(t *testing.T) {
	conformance.Test(t, conformance.Handler(conformance.HandlerSubject{
		Handler: record.Handler{}, // your handler
		Registration: func(n int) state.Registration {
			name := fmt.Sprintf("driver%d.example.com", n)
			path := "/run/plugins/" + name + ".sock"
			return state.Registration{
				Entry: scanner.Entry{Path: path}, Type: "CSIPlugin", Name: name, Endpoint: path, Versions: []string{"1.0.0"},
			}
		},
	}))
}

func TestRegistrar(t *testing.T) {
	conformance.Test(t, conformance.Registrar(conformance.RegistrarSubject{
		Run: func(ctx context.Context, dir string, handlers map[string]register.KubeletHandler) error {
			m, err := register.NewManager(register.Config{Roots: []scanner.Config{{Root: dir}}, LivenessGrace: 2 * time.Second}) // your registrar
			if err != nil {
				return err
			}
			for pluginType, h := range handlers {
				if err := m.AddHandler(pluginType, register.Kubelet(h, false)); err != nil {
					return err
				}
			}
			return m.Run(ctx)
		},
		Grace:    2 * time.Second,  // that it gives a plugin which does not answer any more
		Patience: 30 * time.Second, // on a machine that is busy; 0: 10 s
		Lacks:    []string{},       // the ids of rules that it is known not to keep
	}))
}

func startPlugin(t *testing.T) (socket string) {
	t.Helper()
	p := &fakePlugin{}
	p.start(t)
	return p.path
}

func ExampleCheck() {
	node := simfs.New(simfs.Config{})
	defer node.Close()
	if _, err := node.Bind("/gpu.sock", simfs.Plugin{Type: "DRAPlugin", Name: "gpu.example.com", Versions: []string{"1.0.0"}}); err != nil {
		fmt.Println(err)
	}
	rules := conformance.Plugin(conformance.PluginSubject{Socket: "/gpu.sock", FS: node, Dial: node.Dial})
	for result := range conformance.Check(context.Background(), rules) {
		if result.Err != nil {
			fmt.Println(result.Err)
		}
	}
	// Output:
	// P6: versions ["1.0.0"] (1 in all) name no supported service, want the gRPC service "v1.DRAPlugin" or "v1beta1.DRAPlugin" among them. That breaks: Its versions fit its type.
}

// A registrar that does nothing is told so once.
func ExampleRegistrar() {
	rules := conformance.Registrar(conformance.RegistrarSubject{
		Run: func(ctx context.Context, _ string, _ map[string]register.KubeletHandler) error {
			<-ctx.Done()
			return nil
		},
		Patience: 100 * time.Millisecond,
	})
	skipped := 0
	for result := range conformance.Check(context.Background(), rules) {
		switch {
		case result.Err != nil:
			fmt.Println(result.Err)
		case result.Skipped != "":
			skipped++
		}
	}
	fmt.Println("skipped:", skipped == len(rules)-1)
	// Output:
	// R1: no Notify(true) of "a" within 100ms. That breaks: A plugin is asked, validated, registered and told that it is, in this order.
	// skipped: true
}
