//go:build linux

package register

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// What kubelet 1.37.2 was measured to do (docs/design.md), and the bars that follow from it.
const (
	kubeletAppear   = 490 * time.Millisecond // p50; p99 is a second
	kubeletRemove   = 500 * time.Millisecond // p50
	kubeletBurst    = 1282 * time.Millisecond
	kubeletMemory   = 107 << 20
	barIdle         = 0.2 // % of a core
	barGap          = 10 * time.Millisecond
	barHealthy      = scanner.DefaultInterval + 30*time.Millisecond
	barGoroutines   = 600
	barBinary       = 20 << 20
	barLinesAtFirst = 110
	barLinesLater   = 10
)

// figures prints a table, row by row as it is measured.
type figures struct{ *testing.B }

// BenchmarkFigures measures a Manager with its default settings, in a process of its own, with plugins in other processes, and prints what came out beside
// what the kubelet does and the bars. It takes about six minutes on an idle machine; with -short less than one, for trying it out.
func BenchmarkFigures(b *testing.B) {
	f := &figures{b}
	for b.Loop() {
		fmt.Println()
		f.line("what", "measured", "kubelet", "bar", "")
		f.line(strings.Repeat("-", 58), strings.Repeat("-", 28), strings.Repeat("-", 22), strings.Repeat("-", 12), "----")
		f.single()
		f.replaced()
		for _, n := range []int{100, 1000} {
			f.burst(n)
		}
		for _, n := range []int{0, 10, 100, 1000} {
			f.idle(n)
		}
		f.deadSockets()
		f.hung(200, "1378, 212 descriptors")
		if !testing.Short() {
			f.hung(1000, "")
		}
		f.binary()
	}
	b.ReportMetric(0, "ns/op")
}

// shorter is n, or with -short what stands for it.
func shorter[T any](n, short T) T {
	if testing.Short() {
		return short
	}
	return n
}

func (f *figures) line(what, measured, kubelet, bar, verdict string) {
	fmt.Printf("%-58s  %-28s  %-22s  %-12s  %s\n", what, measured, kubelet, bar, verdict)
}

// row compares a value with its bar; a bar of 0 is none.
func row[T time.Duration | float64 | int | int64](f *figures, what string, value T, show func(T) string, more, kubelet string, bar T) {
	limit, verdict := "", ""
	if bar > 0 {
		limit, verdict = "≤ "+show(bar), "ok"
		if value > bar {
			verdict = "OVER"
		}
	}
	f.line(what, show(value)+more, kubelet, limit, verdict)
}

func ms(d time.Duration) string {
	if d < 5*time.Millisecond {
		return fmt.Sprintf("%.2f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
}

func count[T int | int64](n T) string  { return fmt.Sprint(n) }
func megabytes(n int64) string         { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
func percent(p float64) string         { return fmt.Sprintf("%.2f %%", p) }
func among(n int, failed error) string { return failure(fmt.Sprintf(" of %d", n), failed) }

func failure(text string, err error) string {
	if err != nil {
		return text + ", FAILED: " + err.Error()
	}
	return text
}

// within returns the wait that so many percent of all do not exceed.
func within(waits []time.Duration, percent int) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[(len(waits)*percent+99)/100-1]
}

// scene is a directory, a daemon for it, and a farm.
type scene struct {
	ctx          context.Context
	root, aside  string
	farm, daemon *child
	end          func()
}

// scene makes one whose daemon does not run yet.
func (f *figures) scene() *scene {
	dir, err := os.MkdirTemp("", "f") //nolint:usetesting // short
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Minute)
	s := &scene{ctx: ctx, root: filepath.Join(dir, "root"), aside: filepath.Join(dir, "aside")}
	for _, d := range []string{s.root, s.aside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			f.Fatal(err)
		}
	}
	s.farm, s.daemon = startProcess(f, "farm"), startProcess(f, "daemon")
	s.end = func() {
		cancel()
		s.farm.kill()
		s.daemon.kill()
		_ = os.RemoveAll(dir)
	}
	f.Cleanup(s.end)
	return s
}

func (f *figures) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (s *scene) run() error {
	_, err := s.daemon.order(s.ctx, order{Do: "run", Daemon: &daemonConfig{Root: s.root}})
	return err
}

func (s *scene) usage() (*usage, error) {
	n, err := s.daemon.order(s.ctx, order{Do: "usage"})
	return n.Usage, err
}

func socketOf(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("%d.sock", i)) }

// populate starts plugins, all in one mode.
func (s *scene) populate(dir string, n int, mode string) error {
	all := order{Do: "all"}
	for i := range n {
		all.All = append(all.All, order{Do: "start", Path: socketOf(dir, i), Name: fmt.Sprintf("p%d", i), Mode: mode})
	}
	_, err := s.farm.order(s.ctx, all)
	return err
}

// show moves what was made aside into the root, back to back.
func (s *scene) show(n int) error {
	all := order{Do: "all"}
	for i := range n {
		all.All = append(all.All, order{Do: "rename", Path: socketOf(s.aside, i), To: socketOf(s.root, i)})
	}
	_, err := s.farm.order(s.ctx, all)
	return err
}

// calm waits until polling is eager no more, and then for any phase of the interval.
func calm() {
	<-time.After(1200*time.Millisecond + rand.N(2*scanner.DefaultInterval))
}

// appear starts a plugin and returns how long it waited from listening to being told that it is registered.
func (s *scene) appear(farm *child, o order) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	mark := farm.mark()
	if _, err := farm.order(ctx, o); err != nil {
		return 0, err
	}
	listening, err := farm.await(ctx, mark, happened("listening", o.Path))
	if err != nil {
		return 0, err
	}
	told, err := farm.await(ctx, mark, happened("told", o.Path))
	return told.At - listening.At, err
}

// single has ten daemons wait for a plugin each, again and again. It goes by turns in two ways: its socket is removed and it lives on, which only a scan can
// see, or it is stopped as a plugin should be, which closes its connection as well.
func (f *figures) single() {
	var registered []time.Duration
	deregistered := map[string][]time.Duration{}
	var mu sync.Mutex
	err := f.tenTimes(shorter(12, 2), func(s *scene, round int) error {
		path, way := socketOf(s.root, round), []string{"unlink", "stop"}[round%2]
		calm()
		wait, err := s.appear(s.farm, order{Do: "start", Path: path, Name: "a"})
		if err != nil {
			return err
		}
		calm()
		here, there := s.farm.mark(), s.daemon.mark()
		if _, err := s.farm.order(s.ctx, order{Do: way, Path: path}); err != nil {
			return err
		}
		removed, err := s.farm.await(s.ctx, here, happened("removed", path))
		if err != nil {
			return err
		}
		gone, err := s.daemon.await(s.ctx, there, happened("deregister", path))
		mu.Lock()
		defer mu.Unlock()
		registered, deregistered[way] = append(registered, wait), append(deregistered[way], gone.At-removed.At)
		return err
	})
	n := among(len(registered), err)
	row(f, "listening → told registered, random phase, p50", within(registered, 50), ms, n, "490–680 ms", kubeletAppear/4)
	row(f, "                                           p99", within(registered, 99), ms, n, "1000 ms", time.Second/4)
	for _, way := range [][2]string{{"unlink", "socket removed"}, {"stop", "stopped, its socket removed"}} {
		waits := deregistered[way[0]]
		n := among(len(waits), nil)
		row(f, way[1]+" → deregistered, p50", within(waits, 50), ms, n, "500–700 ms", kubeletRemove*3/10)
		row(f, way[1]+" → deregistered, max", within(waits, 100), ms, n, "1000 ms", 0)
	}
}

// replaced has plugins take over a path, in both ways.
func (f *figures) replaced() {
	for _, way := range [][2]string{{"replace", "renamed over"}, {"rebind", "removed and bound"}} {
		do, how := way[0], way[1]
		var gaps, waits []time.Duration
		var mu sync.Mutex
		err := f.tenTimes(shorter(5, 1), func(s *scene, round int) error {
			path := socketOf(s.root, 0)
			o := order{Do: do, Path: path, Name: "a"}
			if round == 0 {
				if _, err := s.appear(s.farm, order{Do: "start", Path: path, Name: "a"}); err != nil {
					return err
				}
			}
			calm()
			mark := s.daemon.mark()
			wait, err := s.appear(s.farm, o)
			if err != nil {
				return err
			}
			without, err := s.daemon.await(s.ctx, mark, happened("deregister", path))
			if err != nil {
				return err
			}
			with, err := s.daemon.await(s.ctx, mark, happened("register", path))
			mu.Lock()
			defer mu.Unlock()
			gaps, waits = append(gaps, with.At-without.At), append(waits, wait)
			return err
		})
		n := among(len(gaps), err)
		row(f, how+": handler without the plugin, max", within(gaps, 100), ms, n, "1000 ms", barGap)
		row(f, how+": new one listening → told, p50", within(waits, 50), ms, n, "1382 ms", 0)
		row(f, how+": new one listening → told, max", within(waits, 100), ms, n, "2001 ms", 0)
	}
}

// tenTimes runs rounds in ten scenes at once, each in a phase of its own.
func (f *figures) tenTimes(rounds int, round func(*scene, int) error) error {
	var all sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		s := f.scene()
		f.must(s.run())
		all.Go(func() {
			defer s.end()
			for r := range rounds {
				if err := round(s, r); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// burst is from the first of many sockets to the last plugin that is told.
func (f *figures) burst(n int) {
	var waits, work []time.Duration
	var dials int64
	for range shorter(3, 1) {
		s := f.scene()
		f.must(s.populate(s.aside, n, ""))
		f.must(s.run())
		calm()
		before, err := s.usage()
		f.must(err)
		mark := s.farm.mark()
		f.must(s.show(n))
		shown, err := s.farm.await(s.ctx, mark, func(n note) bool { return n.What == "listening" })
		f.must(err)
		told, err := s.farm.awaitAll(s.ctx, mark, n, func(n note) bool { return n.What == "told" })
		f.must(err)
		after, err := s.usage()
		f.must(err)
		last := slices.MaxFunc(told, func(a, b note) int { return int(a.At - b.At) })
		waits, work, dials = append(waits, last.At-shown.At), append(work, after.CPU-before.CPU), max(dials, after.Dials-before.Dials)
		s.end()
	}
	kubelet, bar := "450 ms", time.Duration(0)
	if n == 1000 {
		kubelet, bar = "1282 ms, worst 1491", kubeletBurst*6/10
	}
	row(f, fmt.Sprintf("burst of %d: last told, median", n), within(waits, 50), ms, ", worst "+ms(within(waits, 100)), kubelet, bar)
	row(f, fmt.Sprintf("burst of %d: the daemon's processor time, median", n), within(work, 50), ms, fmt.Sprintf(", %d connects at most", dials), "", 0)
}

// idle is what a daemon takes while nothing happens.
func (f *figures) idle(n int) {
	s := f.scene()
	defer s.end()
	f.must(s.populate(s.root, n, ""))
	f.must(s.run())
	_, err := s.farm.awaitAll(s.ctx, 0, n, func(n note) bool { return n.What == "told" })
	f.must(err)
	<-time.After(3 * time.Second) // eager polling ends, and the directory settles
	before, err := s.daemon.order(s.ctx, order{Do: "cpu"})
	f.must(err)
	<-time.After(shorter(20*time.Second, 2*time.Second))
	now, err := s.daemon.order(s.ctx, order{Do: "cpu"})
	f.must(err)
	cpu := 100 * float64(now.Usage.CPU-before.Usage.CPU) / float64(now.At-before.At)
	after, err := s.usage()
	f.must(err)
	kubelet := map[int][2]string{0: {"0.015 %", "32 MB"}, 10: {"0.022 %", ""}, 100: {"0.28 %", "39 MB"}, 1000: {"9–12 %", "55 MB, high water 107"}}[n]
	bars := map[int]struct {
		cpu float64
		rss int64
	}{10: {cpu: barIdle}, 100: {cpu: barIdle}, 1000: {cpu: barIdle, rss: kubeletMemory}}[n]
	row(f, fmt.Sprintf("idle with %d plugins: of a core", n), cpu, percent, "", kubelet[0], bars.cpu)
	row(f, fmt.Sprintf("idle with %d plugins: RSS", n), after.RSS, megabytes, fmt.Sprintf(", high water %.1f", float64(after.HighWater)/(1<<20)), kubelet[1], bars.rss)
	row(f, fmt.Sprintf("idle with %d plugins: goroutines, descriptors", n), after.Goroutines, count[int], fmt.Sprintf(", %d", after.Descriptors), "", 0)
}

// deadSockets is a start among a hundred sockets that nobody serves.
func (f *figures) deadSockets() {
	const n = 100
	s := f.scene()
	defer s.end()
	f.must(s.populate(s.root, n, dead))
	minute := time.After(shorter(time.Minute, 4*time.Second))
	f.must(s.run())
	<-minute
	first, err := s.usage()
	f.must(err)
	<-time.After(shorter(time.Minute, 4*time.Second))
	second, err := s.usage()
	f.must(err)
	view, err := s.daemon.order(s.ctx, order{Do: "view"})
	f.must(err)
	tries := int64(n) // the first refusal, which is none
	for _, one := range view.Sockets {
		tries += int64(one.Tries)
	}
	row(f, "100 dead sockets: log lines in the first minute", first.Lines, count[int64], "", "1103", barLinesAtFirst)
	row(f, "100 dead sockets: log lines in the second minute", second.Lines-first.Lines, count[int64], "", "", barLinesLater)
	row(f, "100 dead sockets: connects per try", float64(second.Dials)/float64(tries), func(r float64) string { return fmt.Sprintf("%.2f", r) },
		fmt.Sprintf(" (%d in two minutes)", second.Dials), "5", 1)
	row(f, "100 dead sockets: goroutines", first.Goroutines, count[int], "", "505", 0)
}

// hung is how long a healthy plugin waits beside many that do not answer.
func (f *figures) hung(n int, kubelet string) {
	s := f.scene()
	defer s.end()
	f.must(s.populate(s.aside, n, hangs))
	f.must(s.run())
	healthy := startProcess(f, "farm")
	defer healthy.kill()
	f.must(s.show(n))
	var waits []time.Duration
	var most usage
	var err error
	for i := 0; i < shorter(10, 2) && err == nil; i++ {
		calm()
		var u *usage
		u, err = s.usage()
		f.must(err)
		most.Goroutines, most.Descriptors = max(most.Goroutines, u.Goroutines), max(most.Descriptors, u.Descriptors)
		var wait time.Duration
		wait, err = s.appear(healthy, order{Do: "start", Path: filepath.Join(s.root, fmt.Sprintf("healthy%d.sock", i)), Name: fmt.Sprintf("h%d", i)})
		waits = append(waits, wait)
	}
	if err != nil {
		waits = []time.Duration{time.Minute}
	}
	row(f, fmt.Sprintf("%d hung: a healthy one listening → told, max", n), within(waits, 100), ms, among(len(waits), err), "not delayed", barHealthy)
	row(f, fmt.Sprintf("%d hung: goroutines", n), most.Goroutines, count[int], fmt.Sprintf(", %d descriptors", most.Descriptors), kubelet, barGoroutines)
}

// binary is its size, built as `make build` does.
func (f *figures) binary() {
	file := filepath.Join(f.TempDir(), "plugpoll")
	cmd := exec.CommandContext(f.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "../cmd/plugpoll")
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("%v: %s", err, out)
	}
	i, err := os.Stat(file)
	f.must(err)
	row(f, "binary", i.Size(), megabytes, "", "", barBinary)
}
