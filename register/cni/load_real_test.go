//go:build unix

package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gocni "github.com/containerd/go-cni"
	"github.com/containernetworking/cni/libcni"

	"github.com/plugpoll/plugpoll/scanner"
)

// loadCase is one directory, what we say of it, and what go-cni's own Load does.
type loadCase struct {
	name  string
	files map[string]string // what is in it, by name; a name may be in a subdirectory
	make  func(*testing.T, string)
	o     choose
	// want is what said makes of our set, peer what peerSays makes of go-cni's Load. If the two differ, differences has the row.
	want, peer string
}

// readFiles looks at a directory once, with the scanner.
func readFiles(t *testing.T, dir string) []scanner.Entry {
	t.Helper()
	s, err := scanner.New(scanner.Config{Root: dir, Select: scanner.Files(".conf", ".conflist", ".json"), MaxDepth: 1, RootGrace: 1})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, _ := s.Scan(t.Context(), nil) // what cannot be read is in the entries
	var entries []scanner.Entry
	for e := range snapshot.All() {
		entries = append(entries, e)
	}
	return entries
}

// said puts a set in a line: the networks, or the error. Paths begin below dir.
func said(dir string, s set) string {
	if s.err != nil {
		return fmt.Sprintf("[%s] %s", s.err.Kind, strings.NewReplacer(dir+"/", "", dir, "DIR").Replace(s.err.Error()))
	}
	var networks []string
	for _, n := range s.networks {
		networks = append(networks, fmt.Sprintf("%s(%s %s)", n.name, n.cniVersion, strings.Join(n.plugins, " ")))
	}
	return usedOrNothing(networks)
}

func usedOrNothing(networks []string) string {
	if len(networks) == 0 {
		return "nothing"
	}
	return "uses " + strings.Join(networks, ", ")
}

// peerSays has go-cni load the directory. It gives up on a Load that does not return, and unblock makes it return.
func peerSays(t *testing.T, dir string, maxNum int, unblock func()) (string, *gocni.ConfigResult) {
	t.Helper()
	made, err := gocni.New(gocni.WithPluginConfDir(dir), gocni.WithPluginMaxConfNum(maxNum))
	if err != nil {
		t.Fatal(err)
	}
	loaded := make(chan error, 1)
	go func() { loaded <- made.Load(gocni.WithDefaultConf) }()
	select {
	case err = <-loaded:
	case <-time.After(time.Second):
		unblock()
		if err := <-loaded; err == nil {
			t.Error("go-cni takes what comes out of a pipe")
		}
		return "hangs", nil
	}
	switch {
	case err != nil && strings.Contains(err.Error(), "no network config found"):
		return "nothing", nil
	case err != nil:
		return "error", nil
	}
	config := made.GetConfig()
	var networks []string
	for _, n := range config.Networks {
		var types []string
		for _, p := range n.Config.Plugins {
			types = append(types, p.Network.Type)
		}
		networks = append(networks, fmt.Sprintf("%s(%s %s)", n.Config.Name, n.Config.CNIVersion, strings.Join(types, " ")))
	}
	return usedOrNothing(networks), config
}

func (c loadCase) build(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "net.d")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range c.files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if c.make != nil {
		c.make(t, dir)
	}
	return dir
}

func TestLoad(t *testing.T) {
	if len(loadCases) < 60 {
		t.Fatalf("%d cases", len(loadCases))
	}
	listed := map[string]bool{}
	for _, c := range loadCases {
		if listed[c.name] {
			t.Errorf("case %q is there twice", c.name)
		}
		listed[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := c.build(t)
			s := load(dir, readFiles(t, dir), c.o)
			got := said(dir, s)
			if got != c.want {
				t.Errorf("we say\n%s\nwant\n%s", got, c.want)
			}
			peer, config := peerSays(t, dir, max(c.o.max, 0), func() { release(t, dir) })
			if peer != c.peer {
				t.Errorf("go-cni: %s\nwant    %s", peer, c.peer)
			}
			outcome := got
			if s.err != nil {
				outcome = "error"
			}
			reason := differences[c.name]
			if (outcome != peer) != (reason != "") {
				t.Errorf("we: %s\ngo-cni: %s\nthe reason for a difference: %q", got, peer, reason)
			}
			checkSet(t, s)
			checkInstance(t, s, c.o, config, outcome == peer)
		})
	}
	for name := range differences {
		if !listed[name] {
			t.Errorf("a difference is listed for %q, which is no case", name)
		}
	}
}

// TestEveryKind holds the cases to be of every kind of error that there is.
func TestEveryKind(t *testing.T) {
	source, err := os.ReadFile("conferror.go")
	try(t, err)
	kinds := regexp.MustCompile(`Kind\w+ +Kind += "(.*)"`).FindAllStringSubmatch(string(source), -1)
	if len(kinds) < 30 {
		t.Fatalf("%d kinds", len(kinds))
	}
	elsewhere := map[string]string{
		string(KindDuplicate): "of a file, not of a set: TestVerdicts has it",
		string(KindRefused):   "for what nobody knows: no case is known to reach it",
	}
	for _, k := range kinds {
		found := slices.ContainsFunc(loadCases, func(c loadCase) bool { return strings.HasPrefix(c.want, "["+k[1]+"] ") })
		if found == (elsewhere[k[1]] != "") {
			t.Errorf("kind %q is there: %v", k[1], found)
		}
	}
}

// release ends a read of each pipe in a directory.
func release(t *testing.T, dir string) {
	pipes, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range pipes {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
			if f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err != nil {
				t.Error(err)
			} else {
				_ = f.Close()
			}
		}
	}
}

// checkInstance holds the instance that we make to the one that loaded the directory by itself, if there is one and it is the same.
func checkInstance(t *testing.T, s set, o choose, peer *gocni.ConfigResult, same bool) {
	t.Helper()
	if len(s.networks) == 0 {
		return
	}
	made, err := instance(s.networks, instanceOptions{loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	ours := made.GetConfig().Networks
	if last := ours[len(ours)-1]; last.IFName != "lo" {
		t.Errorf("the last interface is %q", last.IFName)
	}
	ours = ours[:len(ours)-1]
	for i, n := range ours {
		if want := fmt.Sprintf("eth%d", i); n.IFName != want {
			t.Errorf("interface %d is %s", i, n.IFName)
		}
	}
	if !same || peer == nil {
		return
	}
	for i, n := range peer.Networks {
		if n.IFName != ours[i].IFName || len(n.Config.Plugins) != len(ours[i].Config.Plugins) {
			t.Fatalf("network %d is %+v, go-cni's %+v", i, ours[i], n)
		}
		for j, p := range n.Config.Plugins {
			if a, b := plainJSON(t, ours[i].Config.Plugins[j].Source), plainJSON(t, p.Source); !bytes.Equal(a, b) {
				t.Errorf("plugin %d of network %d is given\n%s\nby go-cni's own Load\n%s", j, i, a, b)
			}
		}
	}
}

func plainJSON(t *testing.T, s string) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEveryAddWouldFail shows, for the differences that are justified by it, that an ADD fails though the plugin does all that it is asked for.
func TestEveryAddWouldFail(t *testing.T) {
	bin := t.TempDir()
	const plugin = `#!/bin/sh
version=$(sed -n 's/.*"cniVersion":"\([^"]*\)".*/\1/p')
printf '{"cniVersion":"%s"}' "$version"
`
	for _, name := range []string{"x", "bridge", "portmap", "tuning"} {
		try(t, os.WriteFile(filepath.Join(bin, name), []byte(plugin), 0o755))
	}
	tried := 0
	for _, c := range loadCases {
		fails := strings.HasPrefix(differences[c.name], "every ADD would fail")
		if !fails && c.name != "one list" && c.name != "all plugins from a subdirectory" && c.name != "the name in capitals in a .conf" {
			continue
		}
		tried++
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob(filepath.Join(c.build(t), "*.conf*"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			list, err := readList(files[0])
			if err != nil {
				t.Fatal(err)
			}
			_, err = libcni.NewCNIConfigWithCacheDir([]string{bin}, t.TempDir(), nil).AddNetworkList(t.Context(), list,
				&libcni.RuntimeConf{ContainerID: "pod", NetNS: "/proc/self/ns/net", IfName: "eth0"})
			if (err != nil) != fails {
				t.Errorf("ADD: %v", err)
			}
		})
	}
	if tried < 15 {
		t.Errorf("%d cases", tried)
	}
}

// readList reads a file as go-cni does.
func readList(path string) (*libcni.NetworkConfigList, error) {
	if filepath.Ext(path) == ".conflist" {
		return libcni.NetworkConfFromFile(path)
	}
	plugin, err := libcni.ConfFromFile(path) //nolint:staticcheck // as go-cni does
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(plugin) //nolint:staticcheck // as go-cni does
}
