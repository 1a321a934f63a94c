package cni

import (
	"fmt"
	"runtime"
	"testing"

	gocni "github.com/containerd/go-cni"
)

func TestInstance(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("go-cni's defaults are others there")
	}
	networks := load("/conf", entries("/conf/10-a.conflist", `{"name":"a","plugins":[{"type":"x"}]}`, "/conf/20-b.conf", `{"name":"b","type":"x"}`), choose{}).networks
	extra := gocni.WithConfListBytes([]byte(`{"name":"own","plugins":[{"type":"x"}]}`))
	tests := []struct {
		name     string
		networks []network
		o        instanceOptions
		want     string // names and interfaces, directories, the number of files, the directory, and what Status says
	}{
		{"nothing set", networks, instanceOptions{}, "[a:eth0 b:eth1] [/opt/cni/bin] 1"},
		{"loopback comes last", networks, instanceOptions{loopback: true}, "[a:eth0 b:eth1 cni-loopback:lo] [/opt/cni/bin] 1"},
		{"all set", networks[:1], instanceOptions{confDir: "/conf", binDirs: []string{"/x", "/y"}, prefix: "net", max: 3, min: 2, loopback: true}, "[a:net0 cni-loopback:lo] [/x /y] 3/conf"},
		{"too few", networks[:1], instanceOptions{min: 2}, "[a:eth0] [/opt/cni/bin] 1: cni plugin not initialized"},
		{"the caller's settings", networks[:1], instanceOptions{prefix: "net", options: []gocni.Opt{gocni.WithInterfacePrefix("own"), gocni.WithPluginDir([]string{"/own"})}}, "[a:own0] [/own] 1"},
		{"the caller's networks", networks, instanceOptions{loopback: true, options: []gocni.Opt{extra}}, "[a:eth0 b:eth1 own:eth2 cni-loopback:lo] [/opt/cni/bin] 1"},
		{"the caller's loopback", networks, instanceOptions{options: []gocni.Opt{gocni.WithLoNetwork}}, "[a:eth0 b:eth1 cni-loopback:lo] [/opt/cni/bin] 1"},
		{"no networks", nil, instanceOptions{}, "[] [/opt/cni/bin] 1: cni plugin not initialized"},
	}
	for _, test := range tests {
		made, err := instance(test.networks, test.o)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		config := made.GetConfig()
		names := []string{}
		for _, n := range config.Networks {
			names = append(names, n.Config.Name+":"+n.IFName)
		}
		got := fmt.Sprint(names, " ", config.PluginDirs, " ", config.PluginMaxConfNum, config.PluginConfDir)
		if err := made.Status(); err != nil {
			got += ": " + err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}

	if _, err := instance(networks, instanceOptions{options: []gocni.Opt{gocni.WithConfListBytes([]byte("{"))}}); err == nil {
		t.Error("no error of an option that fails")
	}
}
