package register_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
)

// A node agent that registers CSI drivers.
func Example() {
	dir, stopDriver := startDriver() // a directory with the socket of one driver
	defer stopDriver()

	m, err := register.NewManager(register.Config{Roots: []scanner.Config{{Root: dir}}})
	check(err)
	check(m.AddHandler("CSIPlugin", record.Handler{})) // or a Handler of your own

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	<-m.Synced()
	for _, s := range m.View().Sockets {
		fmt.Println(filepath.Base(s.Path), s.Phase)
	}
	cancel()
	check(<-ended)
	// Output: driver.sock registered
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

type driver struct {
	registerapi.UnimplementedRegistrationServer
}

func (driver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: "driver.example.com", SupportedVersions: []string{"1.0.0"}}, nil
}

func (driver) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}

func startDriver() (dir string, stop func()) {
	dir, err := os.MkdirTemp("", "plugins")
	check(err)
	l, err := net.Listen("unix", filepath.Join(dir, "driver.sock"))
	check(err)
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, driver{})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return dir, func() {
		server.Stop()
		check(<-ended)
		check(os.RemoveAll(dir))
	}
}
