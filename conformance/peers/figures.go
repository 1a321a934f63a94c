package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/conformance/peers/measured"
)

// figures measures the registrars by turns, each pinned to the same processor, and prints a table row by row.
type figures struct {
	ctx   context.Context
	out   io.Writer
	short bool
	pin   []string      // the command that does it
	kept  *measured.Run // for pictures
}

func newFigures(ctx context.Context, out io.Writer, short bool, kept *measured.Run) *figures {
	f := &figures{ctx: ctx, out: out, short: short, kept: kept}
	var set unix.CPUSet
	if _, err := exec.LookPath("taskset"); err == nil && unix.SchedGetaffinity(0, &set) == nil {
		for cpu := len(set)*64 - 1; cpu >= 0; cpu-- {
			if set.IsSet(cpu) {
				f.pin = []string{"taskset", "-c", strconv.Itoa(cpu)}
				break
			}
		}
	}
	return f
}

// shorter is n, or in short what stands for it.
func shorter[T any](f *figures, n, short T) T {
	if f.short {
		return short
	}
	return n
}

// part is some rows of the table.
type part struct {
	name    string
	measure func()
}

// all measures everything.
func (f *figures) all() error {
	how := "not pinned: there is no taskset"
	if f.pin != nil {
		how = "each registrar pinned to one processor"
	}
	fmt.Fprintf(f.out, "Default settings, plugins in another process, %s.\n\n", how)
	fmt.Fprintf(f.out, "| what | plugpoll | kubelet | ratio | bar | |\n|---|---|---|---|---|---|\n")
	parts := []part{
		{"one plugin", f.single},
		{"renamed over", func() { f.replaced("replace", "renamed over") }},
		{"removed and bound", func() { f.replaced("rebind", "removed and bound") }},
	}
	for _, n := range []int{100, 1000} {
		parts = append(parts, part{fmt.Sprintf("burst of %d", n), func() { f.burst(n) }})
	}
	for _, n := range []int{0, 10, 100, 1000} {
		parts = append(parts, part{fmt.Sprintf("idle with %d plugins", n), func() { f.idle(n) }})
	}
	return f.each(parts)
}

// each measures parts one after the other. A fault has a row in place of what the part had yet to print, and the next one is measured all the same.
func (f *figures) each(parts []part) error {
	var errs []error
	for _, p := range parts {
		if f.ctx.Err() != nil {
			break
		}
		if err := catch(p.measure); err != nil && f.ctx.Err() == nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			fmt.Fprintf(f.out, "| %s | not measured: %s | | | | |\n", p.name, cell(err.Error()))
		}
	}
	return errors.Join(append(errs, f.ctx.Err())...)
}

// catch returns the fault that do panics with.
func catch(do func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fault:
			err = p.error
		default:
			panic(p)
		}
	}()
	do()
	return nil
}

// cell is text that fits into a cell of a table.
func cell(text string) string { return strings.NewReplacer("|", "/", "\n", " ").Replace(text) }

// row shows a figure of both. A ratio and a limit of 0 are no bars.
func row[T time.Duration | float64 | int64](f *figures, what string, ours, theirs T, show func(T) string, ratio float64, limit T) {
	bar, ok := "", true
	got := float64(ours) / float64(theirs)
	if ratio > 0 {
		bar, ok = fmt.Sprintf("≤ %.2f ×", ratio), got <= ratio
	}
	if limit > 0 {
		if bar != "" {
			bar += ", "
		}
		bar, ok = bar+"≤ "+show(limit), ok && ours <= limit
	}
	verdict := ""
	if bar != "" {
		verdict = map[bool]string{true: "ok", false: "OVER"}[ok]
	}
	times := fmt.Sprintf("%.2f", got)
	if theirs == 0 {
		times = "-"
	}
	fmt.Fprintf(f.out, "| %s | %s | %s | %s | %s | %s |\n", what, show(ours), show(theirs), times, bar, verdict)
}

func ms(d time.Duration) string {
	if d < 5*time.Millisecond {
		return fmt.Sprintf("%.2f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
func percent(p float64) string { return fmt.Sprintf("%.3f %%", p) }

// percentile returns the wait that so many percent of all do not exceed.
func percentile(waits []time.Duration, percent int) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[(len(waits)*percent+99)/100-1]
}

func (f *figures) scene(peer string) (*scene, func()) {
	s, end, err := newScene(f.ctx, peer, f.pin...)
	must(err)
	return s, end
}

// calm waits until nothing of what was is left to do, and then for any phase of a second.
func (s *scene) calm() { s.pause(1200*time.Millisecond + rand.N(time.Second)) }

// tenTimes runs rounds in ten scenes at once, each in a phase of its own.
func (f *figures) tenTimes(peer string, rounds int, round func(*scene, int) error) {
	var all sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		all.Go(func() {
			errs[i] = catch(func() {
				s, end := f.scene(peer)
				defer end()
				s.run()
				for r := range rounds {
					must(round(s, r))
				}
			})
		})
	}
	all.Wait()
	for _, err := range errs {
		must(err) // the others say the same, as a rule
	}
}

// samples are waits by peer and kind.
type samples struct {
	sync.Mutex
	waits map[[2]string][]time.Duration
}

func newSamples() *samples { return &samples{waits: map[[2]string][]time.Duration{}} }

func (a *samples) add(peer, kind string, wait time.Duration) {
	a.Lock()
	defer a.Unlock()
	key := [2]string{peer, kind}
	a.waits[key] = append(a.waits[key], wait)
}

// milliseconds are the waits of a kind by peer, shortest first.
func (a *samples) milliseconds(kind string) map[string][]float64 {
	all := map[string][]float64{}
	for key, waits := range a.waits {
		if key[1] != kind {
			continue
		}
		for _, w := range slices.Sorted(slices.Values(waits)) {
			all[key[0]] = append(all[key[0]], float64(w.Microseconds())/1000)
		}
	}
	return all
}

// row shows a percentile of a kind; 100 is the maximum.
func (a *samples) row(f *figures, what, kind string, of int, ratio float64, limit time.Duration) {
	ours, theirs := a.waits[[2]string{"plugpoll", kind}], a.waits[[2]string{"kubelet", kind}]
	name := map[int]string{50: "p50", 99: "p99", 100: "max"}[of]
	row(f, fmt.Sprintf("%s, %s of %d", what, name, len(ours)), percentile(ours, of), percentile(theirs, of), ms, ratio, limit)
}

// single has ten registrars wait for a plugin each, again and again. Its socket is removed while it lives on, which only a look at the directory can see.
func (f *figures) single() {
	got := newSamples()
	for _, peer := range []string{"plugpoll", "kubelet"} {
		f.tenTimes(peer, shorter(f, 12, 3), func(s *scene, i int) error {
			name := fmt.Sprintf("p%d", i)
			s.calm()
			listening := s.start(name, name)
			told, err := s.told(name, time.Minute)
			if err != nil {
				return err
			}
			got.add(peer, "appears", told.At-listening)
			s.calm()
			removed := s.tell(order{Do: "unlink", Path: s.path(name)})
			gone, err := within(s, s.peer, 0, 1, "deregister", name, time.Minute)
			got.add(peer, "leaves", gone.At-removed)
			return err
		})
	}
	f.kept.Appears = got.milliseconds("appears")
	got.row(f, "listening → told registered, random phase", "appears", 50, 0.25, 0)
	got.row(f, "listening → told registered, random phase", "appears", 99, 0.25, 0)
	got.row(f, "socket removed → deregistered", "leaves", 50, 0.30, 0)
	got.row(f, "socket removed → deregistered", "leaves", 100, 0, 0)
}

// replaced has plugins take over a path.
func (f *figures) replaced(do, how string) {
	got := newSamples()
	for _, peer := range []string{"plugpoll", "kubelet"} {
		f.tenTimes(peer, shorter(f, 5, 2), func(s *scene, i int) error {
			if i == 0 {
				s.start("a", "a")
				if _, err := s.told("a", time.Minute); err != nil {
					return err
				}
			}
			s.calm()
			here, there := s.farm.mark(), s.peer.mark()
			s.order(s.farm, order{Do: do, Path: s.path("a"), Name: "a"})
			told, err := within(s, s.farm, here, 1, "told", "a", time.Minute)
			if err != nil {
				return err
			}
			listening := s.farm.since(here, what("listening", "a"))[0]
			got.add(peer, "waits", told.At-listening.At)
			without, err := within(s, s.peer, there, 1, "deregister", "a", time.Minute)
			if err != nil {
				return err
			}
			with, err := within(s, s.peer, there, 1, "register", "a", time.Minute)
			got.add(peer, "gap", with.At-without.At)
			return err
		})
	}
	got.row(f, how+": handler without the plugin", "gap", 100, 0, 10*time.Millisecond)
	got.row(f, how+": new one listening → told", "waits", 50, 0, 0)
	got.row(f, how+": new one listening → told", "waits", 100, 0, 0)
}

// populate starts plugins in a directory.
func (s *scene) populate(dir string, n int) {
	all := order{Do: "all"}
	for i := range n {
		all.All = append(all.All, order{Do: "start", Path: filepath.Join(dir, strconv.Itoa(i)), Name: strconv.Itoa(i)})
	}
	s.order(s.farm, all)
}

// everybody waits until n plugins are told.
func (s *scene) everybody(n int) []note {
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	told, err := s.farm.awaitAll(ctx, 0, n, func(n note) bool { return n.What == "told" })
	must(err)
	return told
}

// burst is from the first of many sockets to the last plugin that is told.
func (f *figures) burst(n int) {
	got := newSamples()
	for range shorter(f, 5, 2) {
		for _, peer := range []string{"plugpoll", "kubelet"} {
			func() {
				s, end := f.scene(peer)
				defer end()
				aside := filepath.Join(s.dir, "aside")
				must(os.Mkdir(aside, 0o755))
				s.populate(aside, n)
				s.run()
				s.calm()
				before := s.order(s.peer, order{Do: "usage"}).Usage
				all := order{Do: "all"}
				for i := range n {
					all.All = append(all.All, order{Do: "rename", Path: filepath.Join(aside, strconv.Itoa(i)), To: s.path(strconv.Itoa(i))})
				}
				shown := s.tell(all)
				last := slices.MaxFunc(s.everybody(n), func(a, b note) int { return int(a.At - b.At) })
				after := s.order(s.peer, order{Do: "usage"}).Usage
				got.add(peer, "last", last.At-shown)
				got.add(peer, "work", after.CPU-before.CPU)
			}()
		}
	}
	ratio := 0.0
	if n == 1000 {
		ratio = 0.6
	}
	what := fmt.Sprintf("burst of %d: ", n)
	got.row(f, what+"last told", "last", 50, ratio, 0)
	got.row(f, what+"last told", "last", 100, 0, 0)
	got.row(f, what+"processor time", "work", 50, 0, 0)
}

// idle is what a registrar takes while nothing happens.
func (f *figures) idle(n int) {
	cpu, took := map[string]float64{}, map[string]*usage{}
	for _, peer := range []string{"plugpoll", "kubelet"} {
		func() {
			s, end := f.scene(peer)
			defer end()
			s.populate(s.root, n)
			s.run()
			s.everybody(n)
			s.pause(3 * time.Second) // eager polling ends, and the directory settles
			before := s.order(s.peer, order{Do: "usage"})
			s.pause(shorter(f, 20*time.Second, 8*time.Second))
			now := s.order(s.peer, order{Do: "usage"})
			cpu[peer], took[peer] = 100*float64(now.Usage.CPU-before.Usage.CPU)/float64(now.At-before.At), now.Usage
		}()
	}
	f.kept.Idle = append(f.kept.Idle, measured.Idle{Plugins: n, Percent: cpu})
	what := fmt.Sprintf("idle with %d plugins: ", n)
	limit, ratio := 0.0, 0.0
	if n > 0 {
		limit = 0.2
	}
	if n == 1000 {
		ratio = 0.05
	}
	row(f, what+"of a processor", cpu["plugpoll"], cpu["kubelet"], percent, ratio, limit)
	row(f, what+"RSS", took["plugpoll"].RSS, took["kubelet"].RSS, megabytes, 0, 0)
	if n == 1000 {
		row(f, what+"RSS, plugpoll's beside the kubelet's high water", took["plugpoll"].RSS, took["kubelet"].HighWater, megabytes, 1, 0)
	}
}
