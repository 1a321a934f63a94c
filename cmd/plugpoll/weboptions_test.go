package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

// TestPortTaken takes the port first: where it is merely the usual one the daemon goes on.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	cfg := register.Config{Roots: []scanner.Config{{Root: t.TempDir()}}}
	m, err := register.NewManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{false, true} {
		var log bytes.Buffer
		o := webOptions{status: address{"tcp", l.Addr().String()}, asked: asked}
		w, err := o.serve(t.Context(), followed{plugins: m}, hclog.New(&hclog.LoggerOptions{Output: &log}))
		if asked {
			if err == nil || !strings.HasPrefix(err.Error(), "--listen: "+l.Addr().String()+": another process listens there") {
				t.Errorf("asked for: %v", err)
			}
			continue
		}
		if err != nil || !strings.Contains(log.String(), "[WARN]  not answering") || !strings.Contains(log.String(), "--listen") {
			t.Fatalf("%v: %s", err, log.String())
		}
		w.close()
	}
}

// TestOthersCanRead warns where the names leave the machine (X2).
func TestOthersCanRead(t *testing.T) {
	cfg := register.Config{Roots: []scanner.Config{{Root: t.TempDir()}}}
	m, err := register.NewManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for at, warned := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false, "localhost:0": false} {
		var log bytes.Buffer
		o := webOptions{status: address{"tcp", at}, asked: true}
		w, err := o.serve(t.Context(), followed{plugins: m}, hclog.New(&hclog.LoggerOptions{Output: &log}))
		if err != nil {
			t.Fatal(err)
		}
		w.close()
		if got := strings.Contains(log.String(), "other machines can read"); got != warned {
			t.Errorf("%s: %s", at, log.String())
		}
	}
}
