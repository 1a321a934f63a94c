//go:build linux

package scanner

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// U4: a call that does not return is given up after CallTimeout. What it was about is stale, all else is as ever; however many scans follow, there is one call
// that hangs; and when it returns, all is well.
func TestFUSEHang(t *testing.T) {
	t.Setenv("PLUGPOLL_FAULTY_PLAIN", "1")
	tests := []struct {
		hang  string
		stale []string
	}{
		{"opendir sub", []string{"sub/x"}},
		{"lookup sub", []string{"sub/x"}},
		{"lookup sub/x", []string{"sub/x"}},
		{"lookup b", []string{"b"}},
		{"opendir .", everything},
		{"lookup .", everything},
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.hang, " ", "_"), func(t *testing.T) {
			f := newFaulty(t)
			w := f.watch(Config{CallTimeout: 200 * time.Millisecond}, everything...)
			f.tell(test.hang + " hang")
			for n := range 5 {
				began := time.Now()
				if err := w.unchanged(); err == nil {
					t.Error("a call that hangs is no error")
				}
				if took := time.Since(began); took > 5*time.Second || n > 0 && took > 2*time.Second {
					t.Errorf("scan %d took %v", n, took)
				}
				if stale := w.stale(); !slices.Equal(stale, test.stale) {
					t.Errorf("scan %d: %q are stale, want %q", n, stale, test.stale)
				}
			}
			if hung, err := strconv.Atoi(f.tell("hung")); err != nil || hung != 1 {
				t.Errorf("%d calls hang, want 1", hung)
			}
			if len(test.stale) < len(everything) {
				f.bind("new")
				changes, _ := w.scan()
				if len(changes) != 1 || changes[0].Kind != Added || changes[0].Entry.Path != filepath.Join(f.dir, "new") {
					t.Errorf("a socket made elsewhere while a call hangs: %v", changes)
				}
			}
			f.tell("clear")
			for deadline := time.Now().Add(10 * time.Second); ; wait(5 * time.Millisecond) {
				_ = w.unchanged()
				if len(w.stale()) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%q are stale still", w.stale())
				}
			}
			w.heals()
		})
	}
}

// U4: the server is killed while a call hangs in it, and another one takes its place.
func TestFUSEHangKilled(t *testing.T) {
	t.Setenv("PLUGPOLL_FAULTY_PLAIN", "1")
	f := newFaulty(t)
	w := f.watch(Config{CallTimeout: 200 * time.Millisecond, RootGrace: 200 * time.Millisecond}, everything...)
	f.tell("opendir sub hang")
	_ = w.unchanged()
	f.kill()
	for range 3 {
		if err := w.unchanged(); err == nil {
			t.Error("a dead server is no error")
		}
	}
	f.detach()
	f.serve()
	for deadline := time.Now().Add(10 * time.Second); ; wait(5 * time.Millisecond) {
		if _, err := w.scan(); err == nil && len(w.stale()) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q are stale still", w.stale())
		}
	}
	w.heals()
}

// U4: statfs hangs in the server. It does so once, and nothing is the worse for it.
func TestFUSEHangStatfs(t *testing.T) {
	f := newFaulty(t)
	f.tell("statfs . hang")
	w := f.watch(Config{CallTimeout: 200 * time.Millisecond}, everything...)
	for n := range 5 {
		began := time.Now()
		if err := w.unchanged(); err != nil || len(w.stale()) != 0 {
			t.Errorf("scan %d: %v, %q are stale", n, err, w.stale())
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("scan %d took %v", n, took)
		}
	}
	if hung := f.tell("hung"); hung != "1" {
		t.Errorf("%s calls hang, want 1", hung)
	}
	if stuck := w.scanner.Stuck(); len(stuck) != 1 || stuck[0].Op != "statfs" {
		t.Errorf("stuck are %v", stuck)
	}
	w.heals()
	f.tell("clear")
	w.scanner.Wait(t.Context())
	if stuck := w.scanner.Stuck(); len(stuck) != 0 {
		t.Errorf("stuck are %v", stuck)
	}
	if _ = w.unchanged(); w.scanner.Filesystem() != "fuse" {
		t.Errorf("it is said to be %s", w.scanner.Filesystem())
	}
}

// S1: a scan whose context ends while a call hangs returns within a second.
func TestFUSEHangStopped(t *testing.T) {
	f := newFaulty(t)
	w := f.watch(Config{CallTimeout: time.Minute}, everything...)
	f.tell("opendir sub hang")
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = w.scanner.Scan(ctx, w.last)
	}()
	for deadline := time.Now().Add(10 * time.Second); f.tell("hung") != "1"; wait(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing hangs")
		}
	}
	cancel()
	began := time.Now()
	select {
	case <-returned:
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("S1: the scan returned %v after its context ended", took)
		}
	case <-time.After(10 * time.Second):
		t.Error("S1: the scan did not return")
		f.kill()
		<-returned
	}
}
