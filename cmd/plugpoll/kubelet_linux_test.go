package main

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKubeletBusy: a kubelet that accepts nobody any more, its backlog full, is there all the same, and a path longer than an address is none to hide
// behind (X4).
func TestKubeletBusy(t *testing.T) {
	dir := filepath.Join(socketDir(t), strings.Repeat("d", 200))
	if err := unix.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := openPlace(filepath.Join(dir, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	address := &unix.SockaddrUnix{Name: p.at(p.name)}
	listener := unixSocket(t)
	if err := unix.Bind(listener, address); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(unixSocket(t), address); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(unixSocket(t), address); err != unix.EAGAIN { //nolint:errorlint // an errno is meant
		t.Fatalf("the backlog is not full: %v", err)
	}
	if socket, unsure := kubeletOf(t.Context(), dir, connect); socket == "" || unsure != nil {
		t.Errorf("socket %q, unsure %v", socket, unsure)
	}
}

func unixSocket(t *testing.T) int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}
