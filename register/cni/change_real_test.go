//go:build linux

package cni

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/afero"
	"golang.org/x/sys/unix"
)

// polled is how many polls a change is given after the state it leads to is reached: one may have begun before it, and two must agree.
const polled = 4

// subject is a case on directories of the operating system, with a Syncer of the default settings.
type subject struct {
	changeCase
	disk   *disk
	s      *Syncer
	log    output
	before sight
	faults []string
	lacks  string // why it cannot be run here

	mu     sync.Mutex
	events []EventKind
	ended  chan error
}

// CN1, CN2, CN4: each change, on real directories and at the default settings. All cases take their steps at the same time, so that the polls are waited for once.
func TestChanges(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, plugin := range []string{"bridge", "portmap", "ptp"} {
		if err := os.WriteFile(filepath.Join(bin, plugin), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mountsAt := ""
	if os.Geteuid() == 0 && os.Getenv("PLUGPOLL_NOINOTIFY") == "" {
		mountsAt = mountable(t)
	}
	subjects := map[string]*subject{}
	for _, c := range changeCases {
		s := &subject{changeCase: c, ended: make(chan error, 1)}
		switch {
		case c.on == root && os.Geteuid() != 0:
			s.lacks = "only root is kept out by no mode"
		case c.on != mounts && c.on != binds:
			s.start(t, t.TempDir(), bin)
		case mountsAt != "":
			dir, err := os.MkdirTemp(mountsAt, "case") //nolint:usetesting // where a janitor takes away what is mounted
			if err != nil {
				t.Fatal(err)
			}
			s.start(t, dir, bin)
		default:
			s.lacks = "only root can mount, and not in the user namespace of noinotify.sh"
		}
		subjects[c.name] = s
	}
	var settling sync.WaitGroup
	for _, s := range subjects {
		settling.Go(func() {
			state, network := s.network()
			s.settle(func(now sight) bool { return now.State == state && now.DefaultNetwork == network })
		})
	}
	settling.Wait()
	for i := 0; takeStep(t, subjects, i); i++ {
	}
	for _, c := range changeCases {
		t.Run(c.name, func(t *testing.T) {
			s := subjects[c.name]
			switch {
			case s.lacks != "" && os.Getenv("PLUGPOLL_NOINOTIFY") != "":
				t.Skip(s.lacks)
			case s.lacks != "":
				lacking(t, s.lacks)
			}
			for _, fault := range s.faults {
				t.Error(fault)
			}
			if t.Failed() {
				t.Log("log:\n" + s.log.String())
			}
		})
	}
}

// takeStep has each case that has one make its change number i, and notes what has come of it. It reports whether any has.
func takeStep(t *testing.T, subjects map[string]*subject, i int) bool {
	var taking []*subject
	for _, s := range subjects {
		if i < len(s.steps) && s.lacks == "" && len(s.faults) == 0 {
			taking = append(taking, s)
		}
	}
	for _, s := range taking {
		s.before = s.sight()
		s.steps[i].do(s.disk)
	}
	var settling sync.WaitGroup
	for _, s := range taking {
		settling.Go(func() { s.settle(func(now sight) bool { return s.steps[i].reached(s.before, now) }) })
	}
	settling.Wait()
	for _, s := range taking {
		for _, fault := range s.steps[i].check(s.before, s.sight(), s.disk.revision(t)) {
			s.fault(i, fault)
		}
	}
	return len(taking) > 0
}

func (s *subject) fault(i int, text string) {
	s.faults = append(s.faults, fmt.Sprintf("change %d: %s", i+1, text))
}

// start lays what is there before in base, and starts a Syncer.
func (s *subject) start(t *testing.T, base, bin string) {
	s.disk = &disk{fs: afero.NewOsFs(), top: filepath.Join(base, "top"), link: os.Link, mount: mountAt, unmount: unmountAt}
	s.disk.lay(s.changeCase)
	made, err := New(Config{
		ConfDir: s.disk.at(""), BinDirs: []string{bin},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &s.log, DisableTime: true}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.s = made
	ctx, cancel := context.WithCancel(t.Context())
	seq := made.Events(ctx)
	var reader sync.WaitGroup
	reader.Go(func() {
		for e := range seq {
			s.mu.Lock()
			s.events = append(s.events, e.Kind)
			s.mu.Unlock()
		}
	})
	go func() { s.ended <- made.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-s.ended; err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		reader.Wait()
	})
}

func (s *subject) sight() sight {
	now := sight{View: s.s.View(), log: s.log.String()}
	s.mu.Lock()
	defer s.mu.Unlock()
	now.events = append(now.events, s.events...)
	return now
}

// settle waits until what is seen is as wanted, for 20 s at most, and for some polls more.
func (s *subject) settle(is func(now sight) bool) {
	if s.lacks != "" {
		return
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(20 * time.Second)
	polls, last := 0, s.s.View().LastScan
	for polls < polled {
		now := s.sight()
		switch {
		case s.disk.err != nil:
			s.faults = append(s.faults, s.disk.err.Error())
			return
		case time.Now().After(deadline):
			s.faults = append(s.faults, "it did not become as it should within 20 s")
			return
		case !is(now):
			polls = 0
		case now.LastScan != last:
			polls, last = polls+1, now.LastScan
		}
		<-ticker.C
	}
}

// mountAt mounts an empty filesystem, or what is at from.
func mountAt(from, path string) error {
	if from == "" {
		return os.NewSyscallError("mount", unix.Mount("plugpoll", path, "tmpfs", 0, "mode=755"))
	}
	return os.NewSyscallError("mount", unix.Mount(from, path, "", unix.MS_BIND, ""))
}

// unmountAt ends a mount, whoever looks into it just now.
func unmountAt(path string) error {
	return os.NewSyscallError("umount", unix.Unmount(path, unix.MNT_DETACH))
}
