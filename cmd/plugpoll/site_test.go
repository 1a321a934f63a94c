package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/state"
)

func TestSiteAnswers(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	path, _ := n.plugin("a.sock", pluginOptions{})
	slash, _ := n.plugin("b.sock", pluginOptions{typ: "DevicePlugin", name: "example.com/gpu", versions: []string{"v1beta1"}})
	n.phase(path, state.Registered)
	n.phase(slash, state.Registered)
	until(t, "it is ready", func() bool { code, _ := n.get("/readyz"); return code == 200 })
	for _, test := range []struct {
		path string
		code int
		says []string
	}{
		{"/healthz", 200, []string{"ok"}},
		{"/readyz?verbose", 200, []string{`"ready":true`, `"good_scan_age_seconds":`}},
		{"/metrics", 200, []string{"go_goroutines", `plugpoll_sockets{phase="registered"} 2`}},
		{"/v1/view", 200, []string{`"version":"v1"`, `"types":["CSIPlugin","DRAPlugin","DevicePlugin"]`}},
		{"/v1/roots", 200, []string{`"roots":[{"path":"` + n.dir}},
		{"/v1/sockets", 200, []string{`"sockets":[{"path":"` + path, `"phase":"registered"`}},
		{"/v1/plugins", 200, []string{`"plugins":[{"type":"CSIPlugin","name":"demo.example.com","sockets":[{"path":"` + path, `"message":"recorded`}},
		{"/v1/plugins/CSIPlugin/demo.example.com", 200, []string{`"type":"CSIPlugin","name":"demo.example.com","sockets":[{`}},
		{"/v1/plugins/DevicePlugin/example.com/gpu", 200, []string{`"name":"example.com/gpu"`}},
		{"/v1/plugins/DevicePlugin/example.com%2Fgpu", 200, []string{`"name":"example.com/gpu"`}},
		{"/v1/plugins/CSIPlugin/other", 404, []string{`"error":"no socket announces`}},
		{"/v1/other", 404, []string{`"error":"there is nothing at /v1/other`}},
		{"/", 200, []string{"<title>plugpoll"}},
	} {
		code, body := n.get(test.path)
		if code != test.code {
			t.Errorf("%s: %d, want %d", test.path, code, test.code)
		}
		for _, want := range test.says {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %s: %.500s", test.path, want, body)
			}
		}
	}
}

// X2: nothing can be changed, and no page from elsewhere gets an answer.
func TestSiteRefuses(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	for _, test := range []struct {
		name   string
		change func(*http.Request)
		code   int
	}{
		{"plain", func(*http.Request) {}, 200},
		{"localhost", func(r *http.Request) { r.Host = "LocalHost:9808" }, 200},
		{"loopback", func(r *http.Request) { r.Host = "[::1]:9808" }, 200},
		{"numeric", func(r *http.Request) { r.Host = "10.1.2.3" }, 200},
		{"rebound", func(r *http.Request) { r.Host = "evil.example:9808" }, 421},
		{"looks local", func(r *http.Request) { r.Host = "localhost.evil.example" }, 421},
		{"looks numeric", func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 421},
		{"post", func(r *http.Request) { r.Method = http.MethodPost }, 405},
		{"delete", func(r *http.Request) { r.Method = http.MethodDelete }, 405},
		{"options", func(r *http.Request) { r.Method = http.MethodOptions }, 405},
		{"another site's page", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"another site's link", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
		}, 200},
	} {
		if code, body := fetch(t, n.url+"/v1/view", test.change); code != test.code {
			t.Errorf("%s: %d, want %d: %s", test.name, code, test.code, body)
		}
	}
	answer, err := http.Get(n.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	for header, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if got := answer.Header.Get(header); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q", header, got)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy is not strict: %s", policy)
	}
}

func TestOwnHost(t *testing.T) {
	named := address{"tcp", "node1.example.com:9808"}
	for host, want := range map[string]bool{"node1.example.com": true, "NODE1.example.com:80": true, "node2.example.com": false, "": false} {
		if got := ownHost(named, host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
	if !ownHost(address{"unix", "/run/x"}, "whatever") {
		t.Error("a unix socket is out of a page's reach, whatever the host")
	}
}

// What monitoring asks has no names in it, and nothing else is there.
func TestNumbersOnly(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	server := httptest.NewServer(n.site.numbers())
	defer server.Close()
	other := func(r *http.Request) { r.Host = "node1.example.com" }
	until(t, "it is ready", func() bool { code, _ := fetch(t, server.URL+"/readyz", other); return code == 200 })
	for path, want := range map[string]int{"/metrics": 200, "/healthz": 200, "/readyz?verbose": 200, "/": 404, "/v1/view": 404, "/v1/events": 404, "/page.js": 404} {
		code, body := fetch(t, server.URL+path, other)
		if code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
		if strings.Contains(body, n.dir) {
			t.Errorf("%s has a path in it", path)
		}
	}
}

func TestReadiness(t *testing.T) {
	now := time.Now()
	good := state.RootView{Path: "/r", LastScan: now, LastGoodScan: now, GoodScanAge: 1}
	late, never := good, state.RootView{Path: "/n", LastScan: now, Error: "missing"}
	late.GoodScanAge = 21
	for _, test := range []struct {
		synced bool
		roots  []state.RootView
		ready  bool
	}{
		{true, []state.RootView{good}, true},
		{false, []state.RootView{good}, false},
		{true, []state.RootView{good, late}, false},
		{true, []state.RootView{never, good}, false},
	} {
		s := &site{lately: lately(0)}
		s.shots = &shots{source: fixed{state.View{Version: "v1", Synced: test.synced, Roots: test.roots}}, place: func() uint64 { return 0 }}
		for _, query := range []string{"", "?verbose"} {
			w := httptest.NewRecorder()
			s.readyz(w, httptest.NewRequest(http.MethodGet, "/readyz"+query, nil), true)
			if (w.Code == 200) != test.ready || query != "" && !strings.Contains(w.Body.String(), fmt.Sprintf(`"ready":%v,"synced":%v`, test.ready, test.synced)) {
				t.Errorf("%+v%s: %d %s", test, query, w.Code, w.Body)
			}
		}
	}
	if lately(time.Hour) < 2*time.Hour {
		t.Error("a long interval is not late")
	}
}

type fixed struct{ v state.View }

func (f fixed) View() state.View { return f.v }

// events reads a stream line by line.
func (n *inside) events(ctx context.Context) (next func() state.Event) {
	n.t.Helper()
	body, err := n.asker.open(ctx, "/v1/events")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = body.Close() })
	lines := bufio.NewReader(body)
	return func() state.Event {
		n.t.Helper()
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				n.t.Fatal(err)
			}
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				var e state.Event
				if err := json.Unmarshal(data, &e); err != nil {
					n.t.Fatal(err)
				}
				return e
			}
		}
	}
}

// O4: a stream begins with the View, and misses nothing after it.
func TestEventStream(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	<-n.manager.Synced()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	next := n.events(ctx)
	first := next()
	if first.Kind != state.EventView || first.View == nil || len(first.View.Roots) != 1 {
		t.Fatalf("the first event is %+v", first)
	}
	path, _ := n.plugin("a.sock", pluginOptions{})
	var kinds []state.EventKind
	for len(kinds) == 0 || kinds[len(kinds)-1] != state.EventAcknowledged {
		e := next()
		if e.Path != path || e.Time.Before(first.Time) {
			t.Errorf("an event of %s at %s", e.Path, e.Time)
		}
		kinds = append(kinds, e.Kind)
	}
	want := []state.EventKind{state.EventFound, state.EventReport, state.EventRegistered, state.EventAcknowledged}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("events %q, want %q", kinds, want)
	}
	if later := n.events(ctx)(); len(later.View.Sockets) != 1 {
		t.Errorf("a later View has %d sockets", len(later.View.Sockets))
	}
}

func TestFeedLoses(t *testing.T) {
	f := newFeed()
	place := f.place()
	for i := range feedLength + 10 {
		f.add(feedEvent{line: []byte{byte(i)}})
	}
	b := f.from(place)
	if b.lost != 10 || len(b.events) != feedLength || b.events[0].line[0] != 10 {
		t.Errorf("lost %d, %d events, the first %v", b.lost, len(b.events), b.events[0].line)
	}
	if b = f.from(b.next); b.lost != 0 || len(b.events) != 0 || b.ended {
		t.Errorf("then %+v", b)
	}
	f.run(func(func(state.Event) bool) {})
	<-b.wake
	if !f.from(b.next).ended {
		t.Error("it does not end")
	}
}

// As long as it is cheap each request gets a View of its own; what is dear is shared, for a second at most.
func TestShotsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		s := &shots{source: viewFunc(func() state.View { made++; return state.View{Version: "v1"} }), place: func() uint64 { return 7 }}
		first := s.current(0)
		second := s.current(0)
		if second == first {
			t.Error("the second request gets the first one's View")
		}
		s.cost.Add(int64(shotBurst + 100*time.Millisecond))
		if s.current(0) != second || s.current(7) != second || made != 2 {
			t.Errorf("a View that was dear is made anew: %d", made)
		}
		time.Sleep(maxShotAge / 2)
		if s.current(0) != second {
			t.Error("half a second later it is made anew")
		}
		if s.current(8) == second {
			t.Error("a View older than what was asked for is used")
		}
		third := s.current(0)
		time.Sleep(maxShotAge)
		if s.current(0) == third {
			t.Error("a View of a second ago is used")
		}
		time.Sleep(time.Hour)
		s.current(0)
		if fourth := s.current(0); s.current(0) == fourth {
			t.Error("an hour later there is no budget")
		}
	})
}

type viewFunc func() state.View

func (f viewFunc) View() state.View { return f() }

func TestGzip(t *testing.T) {
	for header, want := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "deflate": false, "*": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", header)
		if got := acceptsGzip(r); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]address{
		"": {}, "none": {}, "127.0.0.1:9808": {"tcp", "127.0.0.1:9808"}, "[::1]:80": {"tcp", "[::1]:80"}, ":0": {"tcp", ":0"},
		"unix:/run/a.sock": {"unix", "/run/a.sock"}, "unix:///run/a.sock": {"unix", "/run/a.sock"},
	} {
		if got, err := parseAddress("--listen", text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"9808", "localhost", "localhost:http", "localhost:70000", "unix:", "unix:a.sock", "http://localhost:9808"} {
		if _, err := parseAddress("--listen", text); exitCode(err) != exitUsage || !strings.HasPrefix(err.Error(), "--listen is ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What a client sends is bounded: it is refused or hung up on, and others are answered.
func TestBadRequests(t *testing.T) {
	n := newInside(t, register.Config{}, nil)
	w := &web{log: hclog.NewNullLogger(), unfollow: func() {}}
	at, err := w.open(t.Context(), address{"unix", filepath.Join(shortDir(t), "s")}, n.site.status(address{network: "unix"}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	say := func(text string) string {
		t.Helper()
		c, err := net.Dial("unix", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(patience))
		go func() { _, _ = io.WriteString(c, text) }()
		line, _ := bufio.NewReader(c).ReadString('\n')
		return line
	}
	t.Run("each", func(t *testing.T) {
		for name, test := range map[string]struct{ text, want string }{
			"noise":        {"\x00\x01\x02\r\n\r\n", "HTTP/1.1 400"},
			"huge header":  {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20), "HTTP/1.1 431"},
			"huge path":    {"GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 431"},
			"no host":      {"GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
			"bad version":  {"GET / HTTP/9.9\r\nHost: a\r\n\r\n", "HTTP/1.1 505"},
			"smuggled":     {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 400"},
			"large upload": {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n", "HTTP/1.1 405"},
			"dots":         {"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 307"},
			"half":         {"GET / HTTP/1.1\r\nHost: local", ""}, // nothing within headerTime, then hung up on
			"slow":         {"", ""},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				if got := say(test.text); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" && !strings.HasPrefix(got, "HTTP/1.1 408") {
					t.Errorf("answer %q, want %q", got, test.want)
				}
				if took := time.Since(began); took > 3*headerTime {
					t.Errorf("it took %v", took)
				}
			})
		}
	})
	if got := say("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("then it answers %q", got)
	}
}

// TestAnswersDocument keeps docs/api.md complete: every JSON field of what is served and printed stands in it.
func TestAnswersDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{rootsAnswer{}, socketsAnswer{}, pluginsAnswer{}, onePluginAnswer{}, readiness{}, problem{}, finding{}} {
		typ := reflect.TypeOf(v)
		for f := range typ.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/api.md does not explain `%s` of %s", name, typ.Name())
			}
		}
	}
	for _, path := range []string{"/v1/view", "/v1/roots", "/v1/sockets", "/v1/plugins", "/v1/plugins/{type}/{name}", "/v1/events", "/healthz", "/readyz", "/metrics"} {
		if !strings.Contains(string(text), "`"+path+"`") {
			t.Errorf("docs/api.md does not name `%s`", path)
		}
	}
}
