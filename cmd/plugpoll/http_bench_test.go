//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// loadRate is how many requests come in a second, and crowdSize how many plugins are registered beside.
const (
	loadRate  = 1000
	crowdSize = 1000
)

// crowd is real plugins, all served by this process.
type crowd struct {
	registerapi.UnimplementedRegistrationServer
	told chan string
}

type crowdMember struct {
	*crowd
	name string
}

func (m crowdMember) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: m.name, SupportedVersions: []string{"1.0.0"}}, nil
}

func (m crowdMember) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if s.GetPluginRegistered() {
		m.told <- m.name
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

func (c *crowd) join(t testing.TB, dir, name string) (leave func()) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, crowdMember{c, name + ".example.com"})
	go func() { _ = server.Serve(l) }()
	return server.Stop
}

// latencies adds plugins one after the other for a while, and returns how long each took from listening to being told.
func (c *crowd) latencies(t testing.TB, dir string, span time.Duration, pause func() time.Duration) (took []time.Duration) {
	t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); {
		began := time.Now()
		leave := c.join(t, dir, "new")
		select {
		case <-c.told:
			took = append(took, time.Since(began))
		case <-time.After(patience):
			t.Fatal("a plugin is not registered")
		}
		leave()
		<-time.After(pause())
	}
	slices.Sort(took)
	return took
}

// daemonProcess starts plugpoll run on dir and returns where it answers.
func daemonProcess(t testing.TB, dir string, flags ...string) (url string, pid int) {
	t.Helper()
	cmd := exec.Command("plugpoll", append([]string{"run", "--dir", dir, "--listen", "127.0.0.1:0"}, flags...)...)
	log := filepath.Join(shortDir(t), "log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = f.Close()
	})
	at := ""
	until(t, "it answers", func() bool {
		text, _ := os.ReadFile(log)
		_, rest, ok := strings.Cut(string(text), "flag=--listen address=")
		at, _, _ = strings.Cut(rest, "\n")
		return ok && strings.Contains(rest, "\n")
	})
	return "http://" + at, cmd.Process.Pid
}

// cpuTime is what a process has used; 0 where the system does not tell in this way.
func cpuTime(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[int(p*float64(len(sorted)-1))]
}

// BenchmarkHTTP registers plugins beside a thousand others, without and then with a thousand requests a second, in one run. The bar is a ratio of 1.2.
func BenchmarkHTTP(b *testing.B) {
	dir := shortDir(b)
	c := &crowd{told: make(chan string, crowdSize)}
	for i := range crowdSize {
		b.Cleanup(c.join(b, dir, strconv.Itoa(i)))
	}
	url, pid := daemonProcess(b, dir)
	for range crowdSize {
		select {
		case <-c.told:
		case <-time.After(patience):
			b.Fatal("the crowd is not registered")
		}
	}
	for _, pace := range []struct {
		name  string
		load  time.Duration // how long it lasts
		pause func() time.Duration
	}{
		// Just after a change the directory is read every 20 ms, else every 200.
		{"eager", 20 * time.Second, func() time.Duration { return time.Duration(rand.IntN(int(60 * time.Millisecond))) }},
		{"default", time.Minute, func() time.Duration {
			return 1100*time.Millisecond + time.Duration(rand.IntN(int(220*time.Millisecond)))
		}},
	} {
		b.Run(pace.name, func(b *testing.B) {
			for b.Loop() {
				quiet := c.latencies(b, dir, pace.load/2, pace.pause)
				var out strings.Builder
				asking := exec.Command("load", url+"/v1/view", strconv.Itoa(loadRate), strconv.Itoa(int(pace.load/time.Second)))
				asking.Stdout = &out
				if err := asking.Start(); err != nil {
					b.Fatal(err)
				}
				before := cpuTime(pid)
				loaded := c.latencies(b, dir, pace.load-time.Second, pace.pause)
				used := cpuTime(pid) - before
				if err := asking.Wait(); err != nil {
					b.Fatal(err)
				}
				// The other half comes after the load, so that what else the machine does weighs on both.
				quiet = append(quiet, c.latencies(b, dir, pace.load/2, pace.pause)...)
				slices.Sort(quiet)
				b.ReportMetric(100*used.Seconds()/pace.load.Seconds(), "%cpu-daemon")
				var good, size, worst int64
				_, _ = fmt.Sscan(out.String(), &good, &size, &worst)
				for _, p := range []float64{0.5, 0.9} {
					q, l := percentile(quiet, p), percentile(loaded, p)
					b.ReportMetric(float64(q)/1e6, fmt.Sprintf("p%.0f-quiet-ms", 100*p))
					b.ReportMetric(float64(l)/1e6, fmt.Sprintf("p%.0f-loaded-ms", 100*p))
					b.ReportMetric(float64(l)/float64(q), fmt.Sprintf("p%.0f-ratio", 100*p))
				}
				b.ReportMetric(float64(good)/pace.load.Seconds(), "answers/s")
				b.ReportMetric(float64(size), "B/answer")
				b.ReportMetric(float64(worst)/1e6, "worst-answer-ms")
				b.ReportMetric(float64(len(loaded)), "samples")
			}
		})
	}
}
