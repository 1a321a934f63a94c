package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/state"
)

// TestReadersThatNeverRead has two hundred subscribe to the events and take none of them: plugins are registered, others are answered, and memory is bounded.
func TestReadersThatNeverRead(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	for i := range 50 {
		n.dead(fmt.Sprintf("%s-%d.sock", strings.Repeat("x", 60), i))
	}
	until(t, "all are seen", func() bool { return len(n.manager.View().Sockets) == 50 })
	w := &web{log: hclog.NewNullLogger(), unfollow: func() {}}
	at, err := w.open(t.Context(), address{"tcp", "127.0.0.1:0"}, n.site.status(address{"tcp", "127.0.0.1:0"}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	subscribe := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := heap()
	var conns []net.Conn
	for range 200 {
		conns = append(conns, subscribe())
	}
	until(t, "all are subscribed", func() bool { return len(n.site.readers) == 200 })
	// Much more than the kernel holds for them.
	line := encodeJSON(state.Event{Version: "v1", Kind: state.EventFailing, Error: strings.Repeat("e", 4000)})
	began := time.Now()
	for range 20 * feedLength {
		n.site.feed.add(feedEvent{time: time.Now().Add(time.Hour), line: line})
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the feed took %v", took)
	}
	path, _ := n.plugin("late.sock", pluginOptions{})
	n.phase(path, state.Registered)
	until(t, "others are answered", func() bool { // so many Views at once have used up what they may cost, so this one is up to a second old
		code, _ := fetch(t, "http://"+at.String()+"/v1/plugins/CSIPlugin/demo.example.com", nil)
		return code == 200
	})
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	// Who comes when all places are taken is told so.
	for range maxReaders - 200 {
		conns = append(conns, subscribe())
	}
	until(t, "all places are taken", func() bool { return len(n.site.readers) == maxReaders })
	if line, _ := bufio.NewReader(subscribe()).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 503") {
		t.Errorf("one too many gets %q", line)
	}
	// One that reads again is told what it has lost.
	lost := false
	_ = conns[0].SetReadDeadline(time.Now().Add(patience))
	for lines := bufio.NewReader(conns[0]); !lost; {
		text, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		lost = strings.Contains(text, `"kind":"lost"`)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	until(t, "their places are free", func() bool { return len(n.site.readers) == 0 })
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestConnectionsAreLimited holds more connections than are let in; who waits is answered when one goes.
func TestConnectionsAreLimited(t *testing.T) {
	w := &web{log: hclog.NewNullLogger(), unfollow: func() {}}
	at, err := w.open(t.Context(), address{"tcp", "127.0.0.1:0"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	var conns []net.Conn
	for range maxConns {
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(r); err == nil {
		t.Error("one more connection than allowed is answered")
	}
	for _, c := range conns {
		_ = c.Close()
	}
	if code, _ := fetch(t, "http://"+at.String()+"/", nil); code != 200 {
		t.Errorf("then it is answered %d", code)
	}
}
