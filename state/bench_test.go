package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// succeed has everything that out asks for succeed at once, and returns how many Steps that took.
func succeed(c *Core, now time.Time, out []Effect) (steps int) {
	for len(out) > 0 {
		var next []Effect
		for _, e := range out {
			var in Input
			switch e := e.(type) {
			case Ask:
				in = Asked{ID: e.ID, Info: Info{Type: csi, Name: e.Path, Endpoint: e.Path}, Connected: true}
			case Validate:
				in = Called{ID: e.ID}
			case Register:
				in = Called{ID: e.ID}
			case Deregister:
				in = Called{ID: e.ID}
			case Notify:
				in = Notified{ID: e.ID}
			default:
				continue
			}
			next = append(next, c.Step(now, in)...)
			steps++
		}
		out = next
	}
	return steps
}

func many(n int, generation uint64) *scanner.Snapshot {
	var entries []scanner.Entry
	for i := range n {
		entries = append(entries, sock(fmt.Sprintf("%04d.sock", i), uint64(i+1)+generation, 1))
	}
	return scanner.NewSnapshot(entries, nil)
}

func newBench() *Core {
	c := New(Config{Roots: []Root{{Path: dir}}})
	c.Step(start, HandlerAdded{Type: csi})
	return c
}

// BenchmarkStep: a hundred sockets; in turn one is replaced and goes through its whole registration.
func BenchmarkStep(b *testing.B) {
	c, now := newBench(), start
	snapshots := make([]*scanner.Snapshot, 100)
	for n := range snapshots {
		var entries []scanner.Entry
		for i := range 100 {
			inode := uint64(i + 1)
			if i <= n {
				inode += 1000
			}
			entries = append(entries, sock(fmt.Sprintf("%04d.sock", i), inode, 1))
		}
		snapshots[n] = scanner.NewSnapshot(entries, nil)
	}
	first := many(100, 0)
	succeed(c, now, c.Step(now, Scanned{Root: dir, Snapshot: first}))
	steps, n := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		s := snapshots[n%100]
		n++
		steps += 1 + succeed(c, now, c.Step(now, Scanned{Root: dir, Snapshot: s, Ended: now}))
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkUnchangedScan: what a poll costs the Core when a thousand sockets are registered and nothing has changed.
func BenchmarkUnchangedScan(b *testing.B) {
	c := newBench()
	snapshot := many(1000, 0)
	succeed(c, start, c.Step(start, Scanned{Root: dir, Snapshot: snapshot}))
	var in Input = Scanned{Root: dir, Snapshot: snapshot}
	b.ReportAllocs()
	for b.Loop() {
		if out := c.Step(start, in); out != nil {
			b.Fatal(out)
		}
	}
}

// BenchmarkBurst1000: a thousand sockets are found at once and registered.
func BenchmarkBurst1000(b *testing.B) {
	snapshot := many(1000, 0)
	steps := 0
	b.ReportAllocs()
	for b.Loop() {
		c := newBench()
		steps += succeed(c, start, c.Step(start, Scanned{Root: dir, Snapshot: snapshot}))
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkView: a View of a thousand sockets after a change of one.
func BenchmarkView(b *testing.B) {
	c := newBench()
	snapshot := many(1000, 0)
	succeed(c, start, c.Step(start, Scanned{Root: dir, Snapshot: snapshot}))
	b.ReportAllocs()
	for b.Loop() {
		c.version++
		c.View(start)
	}
}
