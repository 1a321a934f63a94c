package cni

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
)

// Whatever is done to the directory, the plugins and the filesystem, once there is quiet the revision in use is that of what is there, or the state says why not
// (CN4–CN10); meanwhile an instance once there stays, and everything that can be seen agrees.
func TestRandom(t *testing.T) {
	histories := 60
	if testing.Short() {
		histories = 10
	}
	for seed := range uint64(histories) {
		bubble(t, Config{MaxConfNum: []int{1, 2, -1}[seed%3], DefaultNetwork: []string{"", "", "a"}[seed%3], Grace: []time.Duration{0, time.Second}[seed%2]}, func(w *world) {
			chaos{w, rand.New(rand.NewPCG(seed, 1))}.run()
			if w.Failed() {
				w.Fatalf("seed %d", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
}

type chaos struct {
	*world
	*rand.Rand
}

func (c chaos) run() {
	w := c.world
	w.run()
	had := false
	for range 60 {
		c.act()
		w.pass(c.pick(0, 5*time.Millisecond, 30*time.Millisecond, 250*time.Millisecond, 3*time.Second))
		w.agrees(w.s.View())
		had = had || w.s.CNI() != nil
		if had && w.s.CNI() == nil {
			w.Errorf("CN6: the instance is gone")
		}
	}
	w.node.ClearFaults()
	w.answers(nil)
	for _, plugin := range []string{"bridge", "portmap", "ptp"} {
		w.install(plugin)
	}
	w.pass(time.Minute)
	c.check()
}

func (c chaos) pick(of ...time.Duration) time.Duration { return of[c.IntN(len(of))] }

var (
	fileNames = []string{"10-a.conflist", "20-b.conf", "30-c.json", "05-d.conflist", "a/x.conf", "a/y.conf", "b/x.conf", "notes.txt", ".hidden.conf"}
	contents  = []string{
		list("a"), list("b"), list("a", "bridge", "portmap"), broken, "", "\xef\xbb\xbf" + list("a"), `{"name": "b", "cniVersion": "0.4.0", "type": "ptp"}`,
		`{"type": "ptp"}`, `{"type": "portmap"}`, listOf("1.1.0", "a"), listOf("1.1.0", "b", "firewall"), "null",
	}
)

// act does one thing. What it is does not matter if it fails.
func (c chaos) act() {
	w, fs := c.world, c.node
	name, other := at(fileNames[c.IntN(len(fileNames))]), at(fileNames[c.IntN(len(fileNames))])
	content := []byte(contents[c.IntN(len(contents))])
	var err error
	switch c.IntN(20) {
	case 0, 1, 2, 3:
		err = afero.WriteFile(fs, name, content, 0o644)
	case 4, 5:
		err = fs.Remove(name)
	case 6:
		err = fs.Rename(name, other)
	case 7:
		err = fs.Mkdir(at([]string{"a", "b", "other"}[c.IntN(3)]), 0o755)
	case 8:
		err = fs.RemoveAll(confDir)
	case 9, 10:
		err = fs.MkdirAll(confDir, 0o755)
	case 11:
		err = errors.Join(fs.Rename(confDir, "/away"), fs.Rename("/away", confDir))
	case 12:
		err = fs.SymlinkIfPossible(other, name)
	case 13:
		err = fs.Mknod(name, os.ModeNamedPipe|0o644)
	case 14:
		op := []simfs.Op{simfs.OpOpen, simfs.OpList, simfs.OpLstat, simfs.OpStat, simfs.OpRead}[c.IntN(5)]
		fs.Inject([]string{confDir, name, at("a")}[c.IntN(3)], op, simfs.Fault{Err: []error{syscall.EIO, syscall.EACCES, syscall.ENOENT}[c.IntN(3)], Times: c.IntN(4)})
	case 15:
		fs.ClearFaults()
	case 16:
		err = fs.Remove(binDir + "/bridge")
	case 17:
		w.install("bridge")
	case 18:
		failure := []error{nil, errors.New("no")}[c.IntN(2)]
		delay := c.pick(0, time.Second, time.Hour)
		w.answers(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(delay):
				return failure
			}
		})
	case 19:
		w.s.Retry()
	}
	_ = err
}

// check compares what is in use with what is there.
func (c chaos) check() {
	w := c.world
	look, err := scanner.New(scanner.Config{FS: w.node, Root: confDir, Select: scanner.Files(extensions...), MaxDepth: 1})
	w.must(err)
	snapshot, scanErr := look.Scan(w.Context(), nil)
	want := load(confDir, slices.Collect(snapshot.All()), choose{max: max(w.s.cfg.MaxConfNum, 0), pin: w.s.cfg.DefaultNetwork})
	v := w.s.View()
	now := fmt.Sprintf("it is %s (%q, %q), applied %s, observed %s; there is %s (%v, %v)", v.State, v.Message, v.LastError, v.Applied, v.Observed, want.revision, want.err, scanErr)
	if v.Observed != want.revision {
		w.Errorf("CN4: another set was seen: %s", now)
	}
	switch {
	case want.err != nil:
		if v.Error == nil || v.Error.Error() != want.err.Error() || v.State != NotReady && v.State != Stale || v.LastError == "" {
			w.Errorf("CN7: %s", now)
		}
	case len(want.networks) == 0:
		if v.State != NotReady || v.LastError == "" {
			w.Errorf("CN8: %s", now)
		}
	case v.Applied != want.revision || v.Networks[0].Name != want.networks[0].name || len(v.Networks) != len(want.networks):
		w.Errorf("CN5: %s", now)
	default:
		needs := missing(w.node, []string{binDir}, want.networks)
		if ready := v.State == Ready; ready != (len(needs) == 0) || !ready && v.State != NotReady {
			w.Errorf("CN10: %s, and missing are %v", now, needs)
		}
	}
}
