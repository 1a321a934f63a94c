package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAsk holds what is said of a daemon that does not answer, or is none, to what somebody can do about it.
func TestAsk(t *testing.T) {
	ours := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			_, _ = fmt.Fprint(w, body)
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"another program": {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>") }, "is not plugpoll (HTTP 200): name the daemon's address with --address"},
		"a redirect":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "is not plugpoll (HTTP 302)"},
		"an error":        {func(w http.ResponseWriter, _ *http.Request) { fail(w, 503, "too many\x1b[31m") }, `does not answer this: too many\x1b[31m`},
		"half an answer":  {ours(`{"version":"v1","soc`), "gave half an answer: ask again"},
		"another version": {ours(`{"version":"v2"}`), "speaks version v2, this plugpoll v1: use the daemon's own"},
		"no view":         {ours(`{"version":"v1","sockets":7}`), "cannot unmarshal"},
		"silence":         {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "does not answer within 200ms: see its log"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			a, err := newAsker(server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			a.timeout = 200 * time.Millisecond
			if _, _, err := a.view(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), server.Listener.Addr().String()) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	stale := filepath.Join(shortDir(t), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	a, err := newAsker("unix:" + stale)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.view(t.Context()); err == nil || !strings.Contains(err.Error(), "no daemon answers at unix:"+stale+" (connection refused): start one") {
		t.Errorf("a socket that was left behind: %v", err)
	}
}

// TestWhyOlder asks a daemon that is older than network configuration.
func TestWhyOlder(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"version": "v1", "error": "there is nothing at /v1/cni: see /"}`)
	}))
	defer server.Close()
	a, err := newAsker(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if all, _, err := a.cni(t.Context()); err != nil || len(all.Directories) > 0 {
		t.Errorf("the directories are %v, %v", all.Directories, err)
	}
	if _, _, err := a.someCNI(t.Context()); err == nil || !strings.Contains(err.Error(), "knows nothing of CNI directories, it is an older one: start it from this plugpoll") {
		t.Errorf("got %v", err)
	}
}
