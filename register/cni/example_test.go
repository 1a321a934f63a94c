package cni_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/register/cni"
)

// A container runtime that takes its pods' network from a directory.
func Example() {
	conf, bin, remove := node() // directories with the network mynet and its plugin
	defer remove()

	s, err := cni.New(cni.Config{ConfDir: conf, BinDirs: []string{bin}})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Synced()
	if err := s.LastStatus(); err != nil { // the condition NetworkReady is false, and this is its message
		log.Fatal(cni.MessagePrefix + err.Error())
	}
	network := s.CNI() // the newest one, for each Setup; keep it with the pod, whose Remove wants the same
	fmt.Println(network.GetConfig().Networks[0].Config.Name)
	cancel()
	check(<-ended)
	// Output: mynet
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

const mynet = `{"cniVersion": "1.0.0", "name": "mynet", "plugins": [{"type": "bridge"}]}`

func node() (conf, bin string, remove func()) {
	base, err := os.MkdirTemp("", "cni")
	check(err)
	conf, bin = filepath.Join(base, "net.d"), filepath.Join(base, "bin")
	check(errors.Join(os.Mkdir(conf, 0o755), os.Mkdir(bin, 0o755)))
	check(os.WriteFile(filepath.Join(conf, "10-mynet.conflist"), []byte(mynet), 0o644))
	check(os.WriteFile(filepath.Join(bin, "bridge"), nil, 0o755))
	return conf, bin, func() { check(os.RemoveAll(base)) }
}

// What follows is an example of docs/testing.md, word for word (TestTestingDocument).

func TestConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its minutes take no time
		node := simfs.New(simfs.Config{})
		defer node.Close()
		for name, content := range map[string]string{"/net.d/10-mynet.conflist": mynet, "/bin/bridge": ""} { // yours
			err := errors.Join(node.MkdirAll(filepath.Dir(name), 0o755), afero.WriteFile(node, name, []byte(content), 0o755))
			if err != nil {
				t.Fatal(err)
			}
		}
		s, err := cni.New(cni.Config{FS: node, ConfDir: "/net.d", BinDirs: []string{"/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Run(t.Context()) }()
		<-s.Synced()
		node.Inject("/net.d", simfs.OpList, simfs.Fault{Err: syscall.EIO}) // the disk breaks
		<-time.After(time.Minute)
		if v := s.View(); !v.Ready || v.DefaultNetwork != "mynet" || v.ScanError == "" {
			t.Errorf("a disk that breaks takes the network away: %s %s", v.State, v.Message)
		}
	})
}
