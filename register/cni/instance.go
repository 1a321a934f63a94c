package cni

import (
	"fmt"
	"slices"

	gocni "github.com/containerd/go-cni"
)

// instanceOptions are what a go-cni instance is made with, besides the networks.
type instanceOptions struct {
	confDir string   // only told: it is not read
	binDirs []string // empty: go-cni's default
	// prefix is of the names of interfaces. Empty: go-cni's default, "eth".
	prefix string
	// max is only told by GetConfig. 0: go-cni's default, 1.
	max int
	// min is how many networks there must be, as go-cni counts them: the loopback is one. 0: go-cni's default, 1.
	min      int
	loopback bool
	// options are the caller's. They are applied twice: for what they set, and behind the networks for the networks they add.
	options []gocni.Opt
}

// instance makes a fresh go-cni instance of networks (CN6). It reads no file.
//
// The networks come before what else adds some, so that the first one's interface has the number 0.
func instance(networks []network, o instanceOptions) (gocni.CNI, error) {
	settings := []gocni.Opt{gocni.WithPluginConfDir(o.confDir)}
	if len(o.binDirs) > 0 {
		settings = append(settings, gocni.WithPluginDir(o.binDirs))
	}
	if o.prefix != "" {
		settings = append(settings, gocni.WithInterfacePrefix(o.prefix))
	}
	if o.max != 0 {
		settings = append(settings, gocni.WithPluginMaxConfNum(o.max))
	}
	if o.min != 0 {
		settings = append(settings, gocni.WithMinNetworkCount(o.min))
	}
	made, err := gocni.New(slices.Concat(settings, o.options)...)
	if err != nil {
		return nil, fmt.Errorf("make a go-cni instance: %w", err)
	}

	var loads []gocni.Opt
	for _, n := range networks {
		loads = append(loads, gocni.WithConfListBytes(n.list.Bytes))
	}
	loads = append(loads, o.options...)
	if o.loopback {
		loads = append(loads, gocni.WithLoNetwork)
	}
	// It drops what the options added above: it goes behind the networks.
	if err := made.Load(loads...); err != nil {
		return nil, fmt.Errorf("give the networks to go-cni: %w", err)
	}
	return made, nil
}
