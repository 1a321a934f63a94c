package main

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/plugpoll/plugpoll/scanner"
)

// defaultListen is where the daemon answers and the other commands ask.
const defaultListen = "127.0.0.1:9808"

// address is where a daemon answers: a TCP port or a unix socket. The zero value is nowhere.
type address struct {
	network string // "tcp" or "unix"
	at      string // host:port, or the path of the socket
}

// parseAddress reads HOST:PORT or unix:/PATH; "none" and the empty text are no address. The error names flag.
func parseAddress(flag, text string) (address, error) {
	if text == "" || text == "none" {
		return address{}, nil
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//") // unix:///path
		if !filepath.IsAbs(path) {
			return address{}, usagef("%s is %s: the path of a unix socket must be absolute (unix:/run/plugpoll.sock)", flag, scanner.Quote(text))
		}
		return address{"unix", path}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return address{}, usagef("%s is %s: write HOST:PORT (%s) or unix:/PATH", flag, scanner.Quote(text), defaultListen)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return address{}, usagef("%s is %s: the port must be a number from 0 to 65535", flag, scanner.Quote(text))
	}
	return address{"tcp", net.JoinHostPort(host, port)}, nil
}

func (a address) isZero() bool { return a == address{} }

// String is what parseAddress reads, as it is shown to people.
func (a address) String() string {
	switch a.network {
	case "":
		return "none"
	case "unix":
		return "unix:" + scanner.Quote(a.at)
	}
	return scanner.Quote(a.at)
}

// local reports whether only this machine can reach the address.
func (a address) local() bool {
	if a.network != "tcp" {
		return true
	}
	host, _, _ := net.SplitHostPort(a.at)
	return loopback(host)
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
