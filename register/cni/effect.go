package cni

import (
	gocni "github.com/containerd/go-cni"

	"github.com/plugpoll/plugpoll/state"
)

// effect is something the shell is to do. build, findPlugins and askPlugins end in one input each; the others are done at once.
type effect interface{ effect() }

type (
	// build: make a go-cni instance of these networks. Ends in built. There is one at a time (CN6).
	build struct {
		id       uint64
		networks []network
	}
	// use: this instance is the one from now on.
	use struct{ instance gocni.CNI }
	// findPlugins: look for the binaries of these networks' plugins. Ends in found.
	findPlugins struct {
		round    uint64
		networks []network
	}
	// askPlugins: ask these networks' plugins for their STATUS. Ends in told. Of findPlugins and askPlugins there is one at a time (CN12).
	askPlugins struct {
		round    uint64
		networks []network
	}
	// cancel: end the asking of this round. Its result is waited for.
	cancel struct{ round uint64 }
	// answered: the round with this number has ended.
	answered struct{ round uint64 }
	// emit: print and publish.
	emit struct {
		level state.Level
		event Event
	}
	// synced: it was decided what the directory comes to. Comes once.
	synced struct{}
)

func (build) effect()       {}
func (use) effect()         {}
func (findPlugins) effect() {}
func (askPlugins) effect()  {}
func (cancel) effect()      {}
func (answered) effect()    {}
func (emit) effect()        {}
func (synced) effect()      {}
