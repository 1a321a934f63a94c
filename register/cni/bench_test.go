//go:build unix

package cni

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocni "github.com/containerd/go-cni"

	"github.com/plugpoll/plugpoll/scanner"
)

// filled makes a directory of n files, of which the first makes the network a, and one of its plugins.
func filled(b *testing.B, n int) (conf, bin string) {
	b.Helper()
	conf, bin = b.TempDir(), b.TempDir()
	write := func(path, content string, mode os.FileMode) {
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			b.Fatal(err)
		}
	}
	write(filepath.Join(bin, "bridge"), script, 0o755)
	write(filepath.Join(conf, "10-a.conflist"), list("a"), 0o644)
	for i := 1; i < n; i++ {
		write(filepath.Join(conf, fmt.Sprintf("%d-n.conflist", 20+i)), list(fmt.Sprintf("n%d", i)), 0o644)
	}
	return conf, bin
}

// BenchmarkPoll is one poll of a directory in which nothing has changed, with all that Run does about it, and beside it go-cni's own Load of the directory.
func BenchmarkPoll(b *testing.B) {
	for _, n := range []int{3, 20} {
		conf, bin := filled(b, n)
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			s, err := New(Config{ConfDir: conf, BinDirs: []string{bin}})
			if err != nil {
				b.Fatal(err)
			}
			var last *scanner.Snapshot
			poll := func() {
				p := &scanned{started: time.Now()}
				p.snapshot, p.err = s.scanner.Scan(b.Context(), last)
				if p.snapshot != last {
					set := load(conf, slices.Collect(p.snapshot.All()), choose{max: 1})
					p.set, last = &set, p.snapshot
				}
				p.ended = time.Now()
				s.core.step(p.ended, p)
			}
			poll()
			poll()
			if s.core.building == nil {
				b.Fatal("nothing was decided")
			}
			b.ReportAllocs()
			for b.Loop() {
				poll()
			}
		})
		b.Run(fmt.Sprintf("files=%d/Load", n), func(b *testing.B) { benchmarkLoad(b, conf, bin) })
	}
}

func benchmarkLoad(b *testing.B, conf, bin string) {
	made, err := gocni.New(gocni.WithPluginConfDir(conf), gocni.WithPluginDir([]string{bin}))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := made.Load(gocni.WithDefaultConf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReload is the time from the rename of a file to the instance that it makes, at the default settings and at a random moment between two polls. The figures of p50
// and p99 are what counts; run it with -benchtime 300x.
func BenchmarkReload(b *testing.B) {
	conf, bin := filled(b, 3)
	s, err := New(Config{ConfDir: conf, BinDirs: []string{bin}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	<-s.Synced()
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		// The polls are quick for a second after a change: this begins when they are not any more.
		<-time.After(1500*time.Millisecond + rand.N(scanner.DefaultInterval))
		name := fmt.Sprintf("r%d", n)
		temporary := filepath.Join(conf, ".new")
		if err := os.WriteFile(temporary, []byte(list(name)), 0o644); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began := time.Now()
		if err := os.Rename(temporary, filepath.Join(conf, "10-a.conflist")); err != nil {
			b.Fatal(err)
		}
		events, stop := context.WithTimeout(ctx, time.Minute)
		for range s.Events(events) {
			if s.CNI().GetConfig().Networks[0].Config.Name == name {
				break
			}
		}
		stop()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
}
