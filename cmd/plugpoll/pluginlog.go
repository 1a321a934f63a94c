package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// maxTold bounds what is printed of a reason that the other side gave.
const maxTold = 4096

// pluginLine is one thing that happens to a plugin, as plugin -o json prints it.
type pluginLine struct {
	Version    string        `json:"version"`
	Time       time.Time     `json:"time"`
	Kind       string        `json:"kind"` // listening, asked, told, stopping
	Path       string        `json:"path"`
	PathBase64 string        `json:"path_base64,omitempty"`
	Plugin     *state.Plugin `json:"plugin,omitempty"`
	Registered *bool         `json:"registered,omitempty"`
	Error      string        `json:"error,omitempty"`
}

// pluginLog prints what happens, one line each. That nobody reads it is no failure of the plugin.
type pluginLog struct {
	mu     sync.Mutex
	w      io.Writer
	json   bool
	path   string
	plugin *state.Plugin
}

func (p *pluginLog) listening() {
	versions := make([]string, len(p.plugin.Versions))
	for i, v := range p.plugin.Versions {
		versions[i] = scanner.Quote(v)
	}
	p.print(pluginLine{Kind: "listening", Plugin: p.plugin},
		fmt.Sprintf("listening on %s as %s, versions %s", scanner.Quote(p.path), scanner.Quote(p.plugin.Type), strings.Join(versions, ", ")))
}

// asked is a call of GetInfo; failure is empty if it was answered.
func (p *pluginLog) asked(failure string) {
	text := "asked what it is: answered"
	if failure != "" {
		text = "asked what it is: " + failure
	}
	p.print(pluginLine{Kind: "asked", Error: failure}, text)
}

func (p *pluginLog) told(registered bool, reason string) {
	text := "told: registered"
	if !registered {
		text = "told: not registered: " + scanner.Clean(reason, maxTold)
	}
	p.print(pluginLine{Kind: "told", Registered: &registered, Error: reason}, text)
}

func (p *pluginLog) stopping() { p.print(pluginLine{Kind: "stopping"}, "stopping") }

func (p *pluginLog) print(line pluginLine, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.json {
		_, _ = fmt.Fprintf(p.w, "%s plugin %s: %s\n", now.Format("15:04:05.000"), scanner.Quote(p.plugin.Name), text)
		return
	}
	line.Version, line.Time, line.Path, line.PathBase64 = state.APIVersion, now, p.path, scanner.Base64(p.path)
	_ = printJSON(p.w, line)
}
