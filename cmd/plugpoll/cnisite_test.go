package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/register/cni"
)

// What changes a ready directory.
var (
	isReady    = func(*cni.View) {}
	isStaleNow = func(v *cni.View) { v.State, v.LastError = cni.Stale, "it cannot be used" }
	isDown     = func(v *cni.View) {
		v.State, v.Ready, v.Reason, v.Message = cni.NotReady, false, cni.ReasonNotReady, cni.MessagePrefix+"there is nothing"
	}
	isNew = func(v *cni.View) {
		v.State, v.Ready, v.Message = cni.Loading, false, cni.MessagePrefix+"the first look has not ended"
	}
	isOld     = func(v *cni.View) { v.GoodScanAge = 3600 }
	hasNoIPAM = func(v *cni.View) {
		for i := range v.Networks[0].Plugins {
			v.Networks[0].Plugins[i].IPAM, v.Networks[0].Plugins[i].IPAMMissing = "host-local", `IPAM plugin "host-local": it is in none of /opt/cni/bin; install it in /opt/cni/bin`
		}
	}
)

// TestCNIReadyz holds /readyz to the directories: one that is stale works, so it is ready.
func TestCNIReadyz(t *testing.T) {
	for _, test := range []struct {
		name string
		dirs []func(*cni.View)
		code int
		text string
	}{
		{"none", nil, 200, "ok"},
		{"ready", []func(*cni.View){isReady}, 200, "ok"},
		{"stale", []func(*cni.View){isReady, isStaleNow}, 200, "ok"},
		{"not ready", []func(*cni.View){isReady, isDown}, 503, "not ready: the network of a CNI directory is not ready"},
		{"loading", []func(*cni.View){isNew}, 503, "not ready: the network of a CNI directory is not ready"},
		{"not read lately", []func(*cni.View){isReady, isOld}, 503, "not ready: a directory could not be read lately"},
		{"never read", []func(*cni.View){func(v *cni.View) { v.LastGoodScan, v.GoodScanAge = time.Time{}, 0 }}, 503, "not ready: a directory could not be read lately"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var syncers []syncer
			for _, change := range test.dirs {
				syncers = append(syncers, newFake(change))
			}
			n := follow(t, syncers...)
			if code, text := n.get("/readyz"); code != test.code || text != test.text {
				t.Errorf("%d %s", code, text)
			}
			code, text := n.get("/readyz?verbose")
			var all readiness
			if err := json.Unmarshal([]byte(text), &all); err != nil || code != test.code || all.Ready != (code == 200) || len(all.CNI) != len(test.dirs) {
				t.Errorf("%d %s", code, text)
			}
			if last := len(all.CNI) - 1; last >= 0 && (all.CNI[last].Ready != all.Ready || all.CNI[last].ConfDir != "/etc/cni/net.d") {
				t.Errorf("the last directory: %s", text)
			}
			// Names are for those who asked for one of ours.
			w := httptest.NewRecorder()
			n.site.numbers().ServeHTTP(w, httptest.NewRequest("GET", "/readyz?verbose", nil))
			if strings.Contains(w.Body.String(), "/etc") {
				t.Errorf("the monitoring's answer has a path: %s", w.Body)
			}
		})
	}
}

// TestCNIAnswer reads /v1/cni and /v1/events.
func TestCNIAnswer(t *testing.T) {
	if _, text := follow(t).get("/v1/cni"); !strings.HasSuffix(text, `"directories":[]}`) {
		t.Errorf("no directories: %s", text)
	}
	if _, _, err := follow(t).asker.someCNI(t.Context()); err == nil || !strings.Contains(err.Error(), "follows no CNI directory: start it with --cni-conf-dir") {
		t.Errorf("no directory: %v", err)
	}
	f := newFake(nil)
	n := follow(t, f, newFake(func(v *cni.View) { v.Name = "kata" }))
	all, _, err := n.asker.someCNI(t.Context())
	if err != nil || len(all.Directories) != 2 || all.Directories[1].Name != "kata" || all.Directories[0].Networks[0].Plugins[1].Type != "portmap" {
		t.Errorf("%+v, %v", all, err)
	}
	var kinds []string
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = n.asker.watch(ctx, func(line []byte) error {
		switch kinds = append(kinds, kindOf(line)); len(kinds) {
		case 2, 3:
			var e cniEvent
			if err := json.Unmarshal(line, &e); err != nil || e.Directory == nil || e.View != nil || e.ConfDir == "" || e.State != cni.Ready {
				t.Errorf("%s, %v", line, err)
			}
			if len(kinds) == 3 {
				f.change(cni.EventRejected, isStaleNow)
			}
		case 4:
			var b bytes.Buffer
			if err := showEvent(&b, line); err != nil || !regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3}  cni_rejected      /etc/cni/net.d  it cannot be used; the last good configuration stays in use\n$`).MatchString(b.String()) {
				t.Errorf("%s%v", b.String(), err)
			}
			return context.Canceled
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || strings.Join(kinds, " ") != "view cni_view cni_view cni_rejected" {
		t.Errorf("%v, %v", kinds, err)
	}
}

// TestCNIMetrics has the numbers of each directory, told apart by the handler's name, and no path.
func TestCNIMetrics(t *testing.T) {
	d, k := newCNIDir(t), newCNIDir(t)
	k.cfg.Name = "kata"
	var syncers []syncer
	for _, cfg := range []cni.Config{d.cfg, k.cfg} {
		s, err := cni.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		syncers = append(syncers, s)
	}
	_, text := follow(t, syncers...).get("/metrics")
	for _, want := range []string{`plugpoll_cni_ready{handler=""} 0`, `plugpoll_cni_ready{handler="kata"} 0`, `plugpoll_cni_stale{handler="kata"} 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(text, d.conf) {
		t.Error("a metric has a path")
	}
	if _, text := follow(t).get("/metrics"); strings.Contains(text, "plugpoll_cni") || !strings.Contains(text, "go_goroutines") {
		t.Error("a daemon without a directory has numbers of one")
	}
}

// TestCNIVerdict holds the exit codes to the states.
func TestCNIVerdict(t *testing.T) {
	unused := func(v *cni.View) {
		v.Files = append(v.Files, cni.FileView{Path: "/etc/cni/net.d/20-b.conf", State: cni.Broken, Error: &cni.ConfError{}})
	}
	for _, test := range []struct {
		dirs []func(*cni.View)
		code int
	}{
		{[]func(*cni.View){isReady}, exitDone},
		{[]func(*cni.View){isReady, isStaleNow}, exitNeeds},
		{[]func(*cni.View){isReady, unused}, exitNeeds},
		{[]func(*cni.View){func(v *cni.View) { v.ScanError = "x" }}, exitNeeds},
		{[]func(*cni.View){func(v *cni.View) {
			v.Files = append(v.Files, cni.FileView{State: cni.Duplicate, Error: &cni.ConfError{}})
		}}, exitDone},
		{[]func(*cni.View){hasNoIPAM}, exitNeeds},
		{[]func(*cni.View){isStaleNow, isDown}, exitNotReady},
		{[]func(*cni.View){isNew}, exitNotReady},
	} {
		var dirs []cni.View
		for _, change := range test.dirs {
			dirs = append(dirs, newFake(change).View())
		}
		var b bytes.Buffer
		err := cniVerdict(dirs...)
		if complain(&b, err); exitCode(err) != test.code || b.Len() > 0 {
			t.Errorf("%+v: code %d, %s", dirs, exitCode(err), b.String())
		}
		if attention := strings.Contains(cniText(dirs), "Needs attention: /etc/cni/net.d "); attention != (test.code != exitDone) {
			t.Errorf("code %d and\n%s", test.code, cniText(dirs))
		}
	}
}

// TestFollow has one of several end: the others do, and all that went wrong is told.
func TestFollow(t *testing.T) {
	good, bad, worse := newFake(nil), newFake(nil), newFake(nil)
	bad.err = &cni.StuckError{Calls: []string{"scan of /a"}}
	worse.err = errors.New("it broke")
	var stdout, stderr bytes.Buffer
	d := &daemon{
		follows: followed{plugins: noPlugins{make(chan struct{})}, cni: []syncer{good, bad, worse}},
		log:     hclog.New(&hclog.LoggerOptions{Output: &stderr, Mutex: &quiet}), events: &stdout,
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d.started()
	if d.retry(); good.retried != 1 || worse.retried != 1 {
		t.Error("not all are retried")
	}
	err := d.follow(ctx, cancel)
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("one that failed did not end the others")
	}
	var told bytes.Buffer
	if complain(&told, err); exitCode(err) != exitStuck || told.String() != "plugpoll: stopped, but what follows did not end: scan of /a\nplugpoll: it broke\n" {
		t.Errorf("%d: %s", exitCode(err), told.String())
	}
	if !strings.Contains(stderr.String(), "cni: following network configuration: path=/etc/cni/net.d bin_dirs=/opt/cni/bin") {
		t.Errorf("the log: %s", stderr.String())
	}
}

// TestCNIEventsInOrder prints the Views first, in the order of the flags.
func TestCNIEventsInOrder(t *testing.T) {
	var stdout bytes.Buffer
	d := &daemon{events: &stdout, follows: followed{plugins: noPlugins{make(chan struct{})}}}
	for _, name := range []string{"c", "a", "b"} {
		f := newFake(func(v *cni.View) { v.Name = name })
		f.change(cni.EventReady, func(*cni.View) {})
		close(f.events)
		d.follows.cni = append(d.follows.cni, ending{f})
	}
	ctx, cancel := context.WithCancel(t.Context())
	printed := d.printEvents(cancel)
	cancel()
	if err := errors.Join(d.follow(ctx, cancel), <-printed); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(stdout.String()) {
		var e cniEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		name := ""
		if e.Directory != nil {
			name = e.Directory.Name
		}
		got = append(got, e.Kind+name)
	}
	if text := strings.Join(got, " "); !strings.HasPrefix(text, "view ") || !regexp.MustCompile(`cni_viewc.*cni_viewa.*cni_viewb`).MatchString(text) || strings.Count(text, "cni_ready") != 3 {
		t.Errorf("the order is %s", text)
	}
}

// ending is a fake whose events end.
type ending struct{ *fake }

func (e ending) Events(context.Context) iter.Seq[cni.Event] {
	v := e.View()
	return func(yield func(cni.Event) bool) {
		if !yield(cni.Event{Version: "v1", Time: v.Time, Kind: cni.EventView, Name: v.Name, View: &v}) {
			return
		}
		for event := range e.events {
			if !yield(event) {
				return
			}
		}
	}
}

// TestHostileCNIViews has a daemon say what harms whoever shows it: nothing is taken on trust from it.
func TestHostileCNIViews(t *testing.T) {
	const evil = "<b>\x1b[31m\u202e\u009b2J\r\n\x00\x7f"
	f := newFake(func(v *cni.View) {
		isStaleNow(v)
		bad := cni.ConfError{Path: evil, Line: 1, Column: 2, Kind: evil, Text: evil, Fix: evil}
		v.Name, v.ConfDir, v.LastError, v.ScanError, v.DefaultNetwork, v.Error = evil, evil, evil, evil, evil, &bad
		v.BinDirs = []cni.DirView{{Path: evil}}
		v.Networks = []cni.NetworkView{{Name: evil, File: evil, CNIVersion: evil, Interface: evil, Plugins: []cni.PluginView{{Type: evil, Path: evil, Missing: evil}}}}
		v.Files = []cni.FileView{
			{Path: evil + "1", State: cni.Broken, Reason: evil, Error: &bad},
			{Path: evil + "2", State: cni.Broken, Error: &bad},
			{Path: evil + "3", State: cni.NotUsed, Reason: evil, Network: evil, CNIVersion: evil, Plugins: []string{evil, evil}},
		}
	})
	v := f.View()
	outputs := []string{cniText([]cni.View{v}), cniCheckText(v, true)}
	e := cni.Event{Time: v.Time, Kind: evil, Name: evil, ConfDir: evil, Network: evil, Former: evil, Error: evil, Networks: 2, View: &v}
	outputs = append(outputs, cniLine(cniEventOf(e)))
	e.Error, e.Conf = "", v.Error
	outputs = append(outputs, cniLine(cniEventOf(e)))
	for _, state := range []cni.State{cni.Stale, cni.NotReady, cni.Loading, cni.Ready} {
		v.State, v.Ready = state, state != cni.NotReady && state != cni.Loading
		for _, asked := range []string{evil, evil + "1", evil + "3", "nix"} {
			for _, found := range explain(noPlugins{}.View(), []cni.View{v}, asked, noFacts{}) {
				outputs = append(outputs, strings.ReplaceAll(found.folded, "\n", " "), found.Seen+found.Tried+found.Failed+found.Do)
			}
		}
	}
	for _, text := range outputs {
		if at := obeyed.FindString(text); at != "" {
			t.Errorf("%q is in %q", at, text)
		}
	}
	if lines := strings.Count(outputs[2], "\n"); lines != 0 {
		t.Errorf("an event has %d line breaks", lines)
	}
}

// TestHostileCNI has files whose names and contents are meant to harm whoever reads of them: in each place they are inert (X2, X3, D10).
func TestHostileCNI(t *testing.T) {
	const evil = "<img src=x>\x1b[31m\u202e\u009b2J\r\n\"; rm -rf $(x) `y` %s' &amp;"
	d := newCNIDir(t)
	var log bytes.Buffer
	d.cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace, Mutex: &quiet})
	d.cfg.MaxConfNum = -1
	quoted, err := json.Marshal("a" + evil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"10-" + evil + ".conf", "20-b\xff\xfe.conf"}
	d.write("00-good.conf", otherConf)
	d.write(names[0], `{"cniVersion": "1.0.0", "name": `+string(quoted)+`, "type": `+string(quoted)+`}`)
	d.write(names[1], `{"cniVersion": "1.0.0", "name": "x", "type": `+string(quoted)+`}`)
	d.write("30-raw.conf", "{\"cniVersion\": \"1.0.0\", \"name\": \"\x1b[31m\u202e\u009b\", \"type\": \"x\"}")
	d.write("40-long.conflist", `{"cniVersion": "1.0.0", "name": "`+strings.Repeat("x", 1<<20-100)+`", "plugins": [`)
	d.write("50-line.conf", "{"+strings.Repeat(" ", 1<<20-1000)+"\x1b"+"}")
	if err := os.Symlink("nowhere"+evil, filepath.Join(d.conf, "60-link.conf")); err != nil {
		t.Fatal(err)
	}
	d.plugins(pluginReady, "bridge")
	n, s := d.follow()
	until(t, "all files are judged", func() bool { return len(s.View().Files) == 7 })

	all, content, err := n.asker.cni(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{"check": cniCheckText(all.Directories[0], true)}
	for _, form := range []string{"text", "json", "yaml"} {
		var b bytes.Buffer
		if err := printCNI(&b, form, bytes.Clone(content), cniText(all.Directories)); err != nil {
			t.Fatal(err)
		}
		outputs["status "+form] = b.String()
	}
	for _, f := range all.Directories[0].Files {
		var b bytes.Buffer
		for _, inJSON := range []bool{false, true} {
			if err := printFindings(&b, n.why(rawPath(f.Path, f.PathBase64)), inJSON); err != nil {
				t.Fatal(err)
			}
		}
		outputs["why "+f.Path] = b.String()
	}
	for _, path := range []string{"/v1/cni", "/metrics", "/readyz?verbose"} {
		_, outputs[path] = n.get(path)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var watched, watchedJSON bytes.Buffer
	_ = n.asker.watch(ctx, func(line []byte) error {
		if !isCNI(kindOf(line)) {
			return nil
		}
		return errors.Join(printEvent(&watchedJSON, bytes.Clone(line), true), printEvent(&watched, line, false), context.Canceled)
	})
	outputs["watch"], outputs["watch json"] = watched.String(), watchedJSON.String()
	quiet.Lock()
	outputs["log"] = log.String()
	quiet.Unlock()
	for name, text := range outputs {
		if text == "" {
			t.Errorf("%s is empty", name)
		}
		if at := obeyed.FindString(text); at != "" || !utf8.ValidString(text) {
			t.Errorf("%s has %q in it: %.2000q", name, at, text)
		}
		if len(text) > 100_000 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
	for _, path := range []string{"/v1/cni", "/readyz?verbose"} {
		if strings.ContainsAny(outputs[path], "<>") {
			t.Errorf("%s has what HTML would obey", path)
		}
	}
	for line := range strings.Lines(outputs["status text"]) {
		if len([]rune(line)) > 3*maxWord {
			t.Errorf("a line has %d characters", len([]rune(line)))
		}
	}
}
