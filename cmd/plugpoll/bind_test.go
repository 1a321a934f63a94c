package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// socketDir is a fresh directory with a name short enough for sockets.
func socketDir(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("not tried on Windows")
	}
	dir, err := os.MkdirTemp("", "pp") //nolint:usetesting // the name of t.TempDir is too long for the address of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// leave makes the socket of a process that is no more.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBindRace: of many processes that start at once where a socket was left behind one gets the place, and no other takes it from that one (X4). Then
// that one is killed, so that in the next round its own socket is the one left behind.
func TestBindRace(t *testing.T) {
	const processes, rounds = 16, 6
	dir := socketDir(t)
	path := filepath.Join(dir, "a.sock")
	leave(t, path)
	for round := range rounds {
		kill := race(t, path, processes)
		if conn, err := net.Dial("unix", path); err != nil {
			t.Errorf("round %d: nobody listens after the race: %v", round, err)
		} else {
			_ = conn.Close()
		}
		kill()
		if names := namesIn(t, dir); names != "a.sock" {
			t.Fatalf("round %d: the directory holds %s", round, names)
		}
	}
}

// race starts n plugins at path and waits until one is left. The function it returns kills that one.
func race(t *testing.T, path string, n int) (kill func()) {
	t.Helper()
	type plugin struct {
		*exec.Cmd
		log string
	}
	logs, running, ended := t.TempDir(), map[int]plugin{}, make(chan int, n)
	for i := range n {
		p := plugin{exec.CommandContext(t.Context(), "plugpoll", "plugin", "--socket", path), filepath.Join(logs, strconv.Itoa(i))}
		log, err := os.Create(p.log)
		if err != nil {
			t.Fatal(err)
		}
		p.Stdout, p.Stderr = log, log
		if err := errors.Join(p.Start(), log.Close()); err != nil {
			t.Fatal(err)
		}
		running[i] = p
		go func() {
			_ = p.Wait()
			ended <- i
		}()
	}
	for len(running) > 1 {
		select {
		case i := <-ended:
			if text := read(t, running[i].log); !strings.Contains(text, "in use") {
				t.Errorf("one that has ended says %q", text)
			}
			delete(running, i)
		case <-time.After(patience):
			t.Fatalf("%d processes took the place, want 1", len(running))
		}
	}
	for _, p := range running {
		if !poll(func() bool { return strings.Contains(read(t, p.log), "listening") }) {
			t.Fatalf("the one that is left says %q", read(t, p.log))
		}
		return func() {
			_ = p.Process.Kill()
			<-ended
		}
	}
	return nil
}

// TestBindAgain is a sharper race: each of the processes takes the place again and again, and leaves its socket behind each time (X4).
func TestBindAgain(t *testing.T) {
	path := filepath.Join(socketDir(t), "a.sock")
	var processes sync.WaitGroup
	for range 16 {
		processes.Go(func() {
			if out, err := exec.CommandContext(t.Context(), "binds", path, "2s").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	processes.Wait()
}

// binds is a process of TestBindAgain. It fails if a socket of its own is taken away while it lives.
func binds() {
	path := os.Args[1]
	duration, err := time.ParseDuration(os.Args[2])
	if err != nil {
		panic(err)
	}
	for end := time.Now().Add(duration); time.Now().Before(end); {
		b, err := bind(context.Background(), path) //nolint:usetesting // it is a process of its own
		if err != nil && strings.Contains(err.Error(), "in use") {
			continue
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for held := time.Now().Add(2 * time.Millisecond); time.Now().Before(held); {
			if now, err := os.Lstat(path); err != nil || !os.SameFile(now, b.info) {
				fmt.Println("its socket was taken away:", err)
				os.Exit(1)
			}
		}
		_ = b.Close()
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDisplace: between the proof that a socket is dead and its removal a program that knows no lock may have bound another one. That one stays, at its
// own name (X4).
func TestDisplace(t *testing.T) {
	dir := socketDir(t)
	path := filepath.Join(dir, "a.sock")
	leave(t, path)
	dead, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(dir, "keeps its number")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	leave(t, filepath.Join(dir, asideName)) // as a crash does
	p, err := openPlace(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.displace(t.Context(), dead); !errors.Is(err, errJustBound) {
		t.Errorf("the error is %v, want %v", err, errJustBound)
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Errorf("the socket that lives was taken away: %v", err)
	} else {
		_ = conn.Close()
	}
	if names := namesIn(t, dir); names != "a.sock keeps its number" {
		t.Errorf("the directory holds %s", names)
	}
}

// TestLocked: in a directory that somebody keeps locked, or that cannot be locked, nothing is removed; a place that is free can be had.
func TestLocked(t *testing.T) {
	dir := socketDir(t)
	p, err := openPlace(filepath.Join(dir, "a.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	unlock, err := p.lock(t.Context(), patience)
	if err != nil {
		t.Fatal(err)
	}
	_, locked := p.lock(t.Context(), 10*time.Millisecond)
	if !errors.Is(locked, errLocked) {
		t.Errorf("locked twice, with the error %v", locked)
	}
	if err := p.vacate(t.Context(), locked); err != nil {
		t.Errorf("a free place is refused: %v", err)
	}
	leave(t, p.path)
	const want = "was left behind, but cannot be replaced safely, remove it yourself: lock the directory: another process has kept it locked"
	if err := p.vacate(t.Context(), locked); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if names := namesIn(t, dir); names != "a.sock" {
		t.Errorf("the directory holds %q", names)
	}
	unlock()
	b, err := bind(t.Context(), p.path)
	if err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
}

// TestBindLong binds where no address would reach, and with a name that does not fit into one (R15).
func TestBindLong(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limit of an address holds here")
	}
	dir := filepath.Join(socketDir(t), strings.Repeat("d", 200), strings.Repeat("e", 200))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.sock", "@a.sock", strings.Repeat("n", 80), strings.Repeat("n", 95), strings.Repeat("n", 255), strings.Repeat("\xff", 255)} {
		path := filepath.Join(dir, name)
		if len(name) > 90 { // it is renamed, and a crash has left what that takes
			crashed, err := bind(t.Context(), filepath.Join(dir, nextName))
			if err != nil {
				t.Fatal(err)
			}
			_ = crashed.Close()
		}
		for range 2 { // the second one replaces what the first one leaves
			b, err := bind(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if names := namesIn(t, dir); names != name {
				t.Errorf("the directory holds %q, want %q", names, name)
			}
			if _, err := bind(t.Context(), path); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Errorf("bound twice, with the error %v", err)
			}
			_ = b.Close()
		}
		b, err := bind(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.remove(), b.Close()); err != nil {
			t.Error(err)
		}
		if names := namesIn(t, dir); names != "" {
			t.Errorf("the directory holds %q at the end", names)
		}
	}
}

func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
