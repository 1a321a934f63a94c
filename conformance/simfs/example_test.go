package simfs_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"syscall"

	"github.com/spf13/afero"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// A node with one plugin, which is found, asked, and told that it is registered.
func Example() {
	node := simfs.New(simfs.Config{})
	defer node.Close()
	plugin, err := node.Bind("/a.sock", simfs.Plugin{Type: "CSIPlugin", Name: "a.example.com"})
	if err != nil {
		log.Fatal(err)
	}

	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return node.Dial(ctx, "/a.sock")
		}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := registrationv1.NewRegistrationClient(conn)
	info, err := client.GetInfo(context.Background(), &registrationv1.InfoRequest{})
	if err != nil {
		log.Fatal(err)
	}
	status := &registrationv1.RegistrationStatus{PluginRegistered: true}
	if _, err := client.NotifyRegistrationStatus(context.Background(), status); err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.GetType(), info.GetName())
	fmt.Printf("%+v\n", plugin.Record())
	// Output:
	// CSIPlugin a.example.com
	// {Dials:1 Conns:1 GetInfos:1 Notices:[{Registered:true Error:}]}
}

// The first listing of a directory breaks off after one of two entries.
func ExampleFS_Inject() {
	node := simfs.New(simfs.Config{})
	defer node.Close()
	for _, name := range []string{"/a", "/b"} {
		if err := afero.WriteFile(node, name, nil, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	node.Inject("/", simfs.OpList, simfs.Fault{Err: syscall.EIO, After: 1, Times: 1})
	for range 2 {
		dir, err := node.Open("/")
		if err != nil {
			log.Fatal(err)
		}
		names, err := dir.Readdirnames(-1)
		fmt.Println(names, err != nil)
		if err := dir.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// [a] true
	// [a b] false
}
