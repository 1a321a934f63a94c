//go:build unix

package register

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

var paces = []time.Duration{50, 100, 150, 200, 250, 500} // ms

// BenchmarkPace is what an interval costs and gives: the time of a processor that a Manager of one directory takes while nothing happens, in percent of
// one, and how long a plugin that appears at any moment waits until it is told that it is registered. One iteration of each takes half a minute.
func BenchmarkPace(b *testing.B) {
	for _, ms := range paces {
		interval := ms * time.Millisecond
		for _, plugins := range []int{0, 20} {
			b.Run(fmt.Sprintf("idle/interval=%v/plugins=%d", interval, plugins), func(b *testing.B) { idle(b, interval, plugins) })
		}
		b.Run(fmt.Sprintf("appear/interval=%v", interval), func(b *testing.B) { appear(b, interval) })
	}
	for _, plugins := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("idle/interval=%v/plugins=%d", scanner.DefaultInterval, plugins), func(b *testing.B) { idle(b, scanner.DefaultInterval, plugins) })
	}
}

func idle(b *testing.B, interval time.Duration, plugins int) {
	c := newCrowd(b, plugins, false)
	all := c.expect(plugins)
	m, stop := c.startAt(b, interval)
	defer stop()
	<-m.Synced()
	if plugins > 0 {
		wait(b, all)
	}
	<-time.After(3 * time.Second) // eager polling ends, and the directory settles
	var took, cost time.Duration
	for b.Loop() {
		began, before := time.Now(), processor()
		<-time.After(20 * time.Second)
		took, cost = took+time.Since(began), cost+processor()-before
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*cost.Seconds()/took.Seconds(), "%core")
}

// processor is the time of processors that this process has taken.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// appear has ten Managers with a directory each wait for a plugin, ten times.
func appear(b *testing.B, interval time.Duration) {
	var mu sync.Mutex
	var waits []time.Duration
	for b.Loop() {
		var all sync.WaitGroup
		for range 10 {
			c := newCrowd(b, 1, true)
			m, stop := c.startAt(b, interval)
			defer stop()
			<-m.Synced()
			all.Go(func() {
				for range 10 {
					// A second after the last change, when polling is eager no more, and in any phase of the interval.
					<-time.After(1200*time.Millisecond + rand.N(2*interval))
					registered := c.expect(1)
					began := time.Now()
					if err := os.Rename(c.hidden(0), c.socket(0)); err != nil {
						b.Error(err)
						return
					}
					select {
					case <-registered:
					case <-time.After(time.Minute):
						b.Error("it was not registered within a minute")
						return
					}
					mu.Lock()
					waits = append(waits, time.Since(began))
					mu.Unlock()
					if err := os.Rename(c.socket(0), c.hidden(0)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	slices.Sort(waits)
	b.ReportMetric(0, "ns/op")
	for _, percent := range []int{50, 99} {
		b.ReportMetric(waits[(len(waits)-1)*percent/100].Seconds()*1000, fmt.Sprintf("p%d-ms", percent))
	}
}
