package register

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/plugpoll/plugpoll/scanner"
)

// BenchmarkIdle is what 1000 idle connections to real plugins, which are in another process, cost ours: in heap and stacks, in resident memory, and in goroutines.
func BenchmarkIdle(b *testing.B) {
	const count = 1000
	dir := socketDir(b)
	plugins := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestIdlePlugins$")
	plugins.Env = append(os.Environ(), "PLUGPOLL_IDLE="+dir, fmt.Sprint("PLUGPOLL_COUNT=", count))
	input, err := plugins.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := plugins.StdoutPipe()
	if err == nil {
		err = plugins.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = input.Close(); _ = plugins.Wait() }()
	if n, err := output.Read(make([]byte, 100)); n == 0 {
		b.Fatal(err)
	}
	m, err := NewManager(Config{Roots: []scanner.Config{{Root: dir}}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		heap, resident, goroutines := memory(b)
		var conns []*connection
		for i := range count {
			_, conn, err := m.client.ask(b.Context(), scanner.Entry{Path: filepath.Join(dir, fmt.Sprint(i))})
			if err != nil {
				b.Fatal(err)
			}
			conns = append(conns, conn)
		}
		heap2, resident2, goroutines2 := memory(b)
		b.ReportMetric(float64(heap2-heap)/count, "heap+stack-B/conn")
		b.ReportMetric(float64(resident2-resident)/count, "rss-B/conn")
		b.ReportMetric(float64(goroutines2-goroutines)/count, "goroutines/conn")
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// memory is what is in use when the garbage is gone, and what is resident.
func memory(b *testing.B) (inUse, resident, goroutines int) {
	b.Helper()
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return int(s.HeapAlloc + s.StackInuse), pages * os.Getpagesize(), runtime.NumGoroutine()
}

// TestIdlePlugins is no test but the plugins of BenchmarkIdle. They end with standard input.
func TestIdlePlugins(t *testing.T) {
	dir := os.Getenv("PLUGPOLL_IDLE")
	if dir == "" {
		return
	}
	count, err := strconv.Atoi(os.Getenv("PLUGPOLL_COUNT"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		serveOn(t, listenAt(t, filepath.Join(dir, fmt.Sprint(i))), fmt.Sprint(i))
	}
	_, _ = os.Stdout.WriteString("serving\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}
