package main

import (
	"embed"
	"net/http"
)

// The page is three files of our own: nothing comes from elsewhere.
//
//go:embed page
var pageFiles embed.FS

func addPage(mux *http.ServeMux) {
	for path, file := range map[string]struct{ name, typ string }{
		"/{$}":      {"page/index.html", "text/html; charset=utf-8"},
		"/page.js":  {"page/page.js", "text/javascript; charset=utf-8"},
		"/page.css": {"page/page.css", "text/css; charset=utf-8"},
	} {
		content, err := pageFiles.ReadFile(file.name)
		must(err)
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file.typ)
			send(w, http.StatusOK, content)
		})
	}
}
