package cni

import (
	"time"

	gocni "github.com/containerd/go-cni"

	"github.com/plugpoll/plugpoll/scanner"
)

// input is something that happened: the only way to change a core.
type input interface{ input() }

type (
	// scanned is the result of one poll. set is what the snapshot comes to; nil: the snapshot is that of the poll before.
	scanned struct {
		snapshot       *scanner.Snapshot
		set            *set
		err            error
		started, ended time.Time
		filesystem     string
	}
	// built is the result of build.
	built struct {
		id       uint64
		instance gocni.CNI
		err      error
	}
	// found is the result of findPlugins: the plugins that there are no binaries of, and if there are of all, where they are, by type. ipam is why there is
	// none of an IPAM plugin, by type.
	found struct {
		round   uint64
		missing []Missing
		paths   map[string]string
		ipam    map[string]string
	}
	// told is the result of askPlugins.
	told struct {
		round uint64
		err   error
	}
	// checkAsked: somebody wants plugins looked for, and asked, now. core.promised is then the round that does it.
	checkAsked struct{}
	// retryAsked: somebody wants everything tried now that failed.
	retryAsked struct{}
	// tick: the time of core.deadline has come. Every other input does the same on its way.
	tick struct{}
	// stopping: nothing begins any more.
	stopping struct{}
)

func (*scanned) input()   {}
func (built) input()      {}
func (found) input()      {}
func (told) input()       {}
func (checkAsked) input() {}
func (retryAsked) input() {}
func (tick) input()       {}
func (stopping) input()   {}
