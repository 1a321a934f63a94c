package main

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// site is what is served of a Manager and of Syncers. Everything is read, nothing can be changed (X2).
type site struct {
	shots   *shots
	feed    *feed
	readers chan struct{} // a place for each reader of events
	lately  time.Duration // how old the last good scan of a root that is fine may be
	metrics http.Handler
}

func newSite(m source, longest time.Duration, metrics http.Handler, ofCNI ...syncer) *site {
	f := newFeed()
	return &site{
		shots: &shots{source: m, cni: ofCNI, place: f.place}, feed: f, readers: make(chan struct{}, maxReaders),
		lately: lately(longest), metrics: metrics,
	}
}

// status answers everything, to those who asked for one of our names.
func (s *site) status(a address) http.Handler {
	mux := http.NewServeMux()
	s.addProbes(mux, true)
	mux.HandleFunc("/v1/view", s.view)
	mux.HandleFunc("/v1/roots", s.part("roots", func(v state.View) any {
		return rootsAnswer{v.Version, v.Time, v.Synced, v.Types, v.Roots}
	}))
	mux.HandleFunc("/v1/sockets", s.part("sockets", func(v state.View) any {
		return socketsAnswer{v.Version, v.Time, v.Sockets}
	}))
	mux.HandleFunc("/v1/plugins", s.part("plugins", func(v state.View) any {
		return pluginsAnswer{v.Version, v.Time, pluginsOf(v)}
	}))
	mux.HandleFunc("/v1/plugins/{type}/{name...}", s.plugin)
	mux.HandleFunc("/v1/cni", func(w http.ResponseWriter, r *http.Request) {
		now := s.shots.current(0)
		answer(w, r, now.body("cni", func(v state.View) any { return cniAnswer{v.Version, v.Time, now.cni} }))
	})
	mux.HandleFunc("/v1/events", s.events)
	addPage(mux)
	mux.HandleFunc("/", notFound)
	return guard(mux, a)
}

// numbers answers what monitoring asks for. No name or path is in it, so it is not asked for by which name it was reached.
func (s *site) numbers() http.Handler {
	mux := http.NewServeMux()
	s.addProbes(mux, false)
	mux.HandleFunc("/", notFound)
	return readOnly(mux)
}

func (s *site) addProbes(mux *http.ServeMux, names bool) {
	mux.HandleFunc("/healthz", s.healthz)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) { s.readyz(w, r, names) })
	if s.metrics != nil {
		mux.Handle("/metrics", s.metrics)
	}
}

type rootsAnswer struct {
	Version string           `json:"version"`
	Time    time.Time        `json:"time"`
	Synced  bool             `json:"synced"`
	Types   []string         `json:"types"`
	Roots   []state.RootView `json:"roots"`
}

type socketsAnswer struct {
	Version string             `json:"version"`
	Time    time.Time          `json:"time"`
	Sockets []state.SocketView `json:"sockets"`
}

type pluginsAnswer struct {
	Version string         `json:"version"`
	Time    time.Time      `json:"time"`
	Plugins []pluginAnswer `json:"plugins"`
}

// pluginAnswer is one plugin name, with the sockets that announce it.
type pluginAnswer struct {
	Type    string             `json:"type"`
	Name    string             `json:"name"`
	Sockets []state.SocketView `json:"sockets"`
}

type onePluginAnswer struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
	pluginAnswer
}

// pluginsOf gathers the sockets of each name, in the order of the first.
func pluginsOf(v state.View) []pluginAnswer {
	type key struct{ typ, name string }
	places := map[key]int{}
	plugins := []pluginAnswer{}
	for _, s := range v.Sockets {
		if s.Plugin == nil {
			continue
		}
		k := key{s.Plugin.Type, s.Plugin.Name}
		i, ok := places[k]
		if !ok {
			i = len(plugins)
			places[k] = i
			plugins = append(plugins, pluginAnswer{Type: k.typ, Name: k.name})
		}
		plugins[i].Sockets = append(plugins[i].Sockets, s)
	}
	return plugins
}

func (s *site) part(name string, of func(state.View) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { answer(w, r, s.shots.current(0).body(name, of)) }
}

func (s *site) view(w http.ResponseWriter, r *http.Request) {
	answer(w, r, s.shots.current(0).body("view", func(v state.View) any { return v }))
}

func (s *site) plugin(w http.ResponseWriter, r *http.Request) {
	v := s.shots.current(0).view
	one := onePluginAnswer{v.Version, v.Time, pluginAnswer{Type: r.PathValue("type"), Name: r.PathValue("name")}}
	for _, socket := range v.Sockets {
		if p := socket.Plugin; p != nil && p.Type == one.Type && p.Name == one.Name {
			one.Sockets = append(one.Sockets, socket)
		}
	}
	if one.Sockets == nil {
		fail(w, http.StatusNotFound, "no socket announces a plugin of this type and name: /v1/plugins lists them")
		return
	}
	sendJSON(w, http.StatusOK, one)
}

// answer sends a body, compressed for those who take it so.
func answer(w http.ResponseWriter, r *http.Request, b *body) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Vary", "Accept-Encoding")
	content := b.plain
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		content = b.zipped
	}
	send(w, http.StatusOK, content())
}

func acceptsGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(header, ",") {
			if coding, weight, _ := strings.Cut(one, ";"); strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				return strings.Trim(weight, " q=0.") != "" || strings.TrimSpace(weight) == ""
			}
		}
	}
	return false
}

func sendJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	send(w, code, encodeJSON(v))
}

func send(w http.ResponseWriter, code int, content []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(code)
	_, _ = w.Write(content) // who hangs up gets no more
}

func fail(w http.ResponseWriter, code int, text string) {
	sendJSON(w, code, problem{state.APIVersion, text})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, "there is nothing at "+scanner.Quote(scanner.Clean(r.URL.Path, 256))+
		": see /, /v1/view, /v1/roots, /v1/sockets, /v1/plugins, /v1/cni, /v1/events, /healthz, /readyz and /metrics")
}
