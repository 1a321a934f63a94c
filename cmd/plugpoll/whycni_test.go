package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/state"
)

// cniScene is a CNI directory in which a cause comes about, and what to ask for.
type cniScene struct {
	cause cause
	asked string // %s is the directory
	says  []string
	play  func(d *cniDir) *cniNode
}

// inState makes files and waits for a state.
func inState(want cni.State, plugins string, files ...string) func(*cniDir) *cniNode {
	return func(d *cniDir) *cniNode {
		for i := 0; i < len(files); i += 2 {
			d.write(files[i], files[i+1])
		}
		if plugins != "" {
			d.plugins(plugins, "bridge", "portmap")
		}
		n, s := d.follow()
		d.comes(s, want)
		return n
	}
}

var ready = inState(cni.Ready, pluginReady, "10-a.conflist", goodList, "20-b.conf", otherConf, "30-c.conf", goodList, "x/y.conf", otherConf, "z.txt", "z", ".z.conf", "z")

func stale(d *cniDir) *cniNode {
	d.write("10-a.conflist", goodList)
	d.plugins(pluginReady, "bridge", "portmap")
	n, s := d.follow()
	d.comes(s, cni.Ready)
	d.write("10-a.conflist", comma)
	d.write("20-b.conf", otherConf)
	until(d.t, "two files are known and the first is broken", func() bool { v := s.View(); return v.State == cni.Stale && len(v.Files) == 2 })
	return n
}

// gone is a directory whose files have gone.
func gone(d *cniDir) *cniNode {
	d.write("10-a.conflist", goodList)
	d.plugins(pluginReady, "bridge", "portmap")
	n, s := d.follow()
	d.comes(s, cni.Ready)
	if err := os.Remove(filepath.Join(d.conf, "10-a.conflist")); err != nil {
		d.t.Fatal(err)
	}
	d.comes(s, cni.NotReady)
	return n
}

var cniScenes = []cniScene{
	{cniReady, "mynet", []string{`10-a.conflist is a configuration file in the CNI directory of the default runtime handler; it has the network mynet with the plugins bridge, portmap\. `, `last read \S+ without an error .* ago. In use for .*: mynet`, `is ready. Nothing is to be done`}, ready},
	{cniReady, "10-a", []string{`has the network mynet`}, ready},
	{cniReady, "%s/10-a.conflist", []string{`has the network mynet`}, ready},
	{cniReady, "%s", []string{`is the CNI directory of the default runtime handler, which has been ready for .*; it holds 3 configuration files`}, ready},
	{cniReady, "default", []string{`is the CNI directory of the default runtime handler`}, ready},
	{cniReady, "portmap", []string{`portmap is a plugin of the network mynet, which is in use by the default runtime handler; it is looked for in \S+/bin, and is \S+/bin/portmap\.`}, ready},
	{cniReady, "%s/../bin/portmap", []string{`^portmap is a plugin of the network mynet, which is in use`}, ready},
	{cniReady, "kata", []string{`the runtime handler kata`}, func(d *cniDir) *cniNode {
		d.cfg.Name = "kata"
		return ready(d)
	}},
	{cniNotUsed, "20-b", []string{`20-b.conf is .* it has the network other with the plugin bridge`, `not used: 10-a.conflist comes first`, `--cni-max-conf-num`}, ready},
	{cniBroken, "30-c.conf", []string{`It is broken: \S+/30-c.conf:1:\d+: `, `To mend it: .*\.conflist.*harms nothing`}, ready},
	{cniDuplicate, "40-d", []string{`It is duplicate: \S+/40-d.conflist:1:\d+: network "?mynet"? is in 10-a.conflist already`, `another name`}, inState(cni.Ready, pluginReady, "10-a.conflist", goodList, "40-d.conflist", goodList)},
	{cniNoFile, "%s/50-e.conf", []string{`There is nothing at`, `exactly this path`}, ready},
	{cniIgnored, "z.txt", []string{`does not end in .conf, .conflist or .json`}, ready},
	{cniIgnored, ".z.conf", []string{`begins with a dot`}, ready},
	{cniIgnored, "%s/x/y.conf", []string{`in a subdirectory`, `call the subdirectory as the network`}, ready},
	{cniIgnored, "x", []string{`A directory is no configuration file`}, ready},
	{cniUnknown, "nix", []string{`No network, file, plugin or runtime handler .* is called nix`, `plugpoll cni status`}, ready},
	{cniStale, "mynet", []string{`mynet is a network that is in use by .*read from \S+/10-a.conflist, which does not have it any more`, `It is stale: .*10-a.conflist:4:\d+: .*comma`, `Mend \S+/10-a.conflist: .*remove the comma.*last good configuration stays in use`}, stale},
	{cniStale, "other", []string{`It is not used: nothing of this directory is used: 10-a.conflist cannot be`, `Mend \S+/10-a.conflist`}, stale},
	{cniBroken, "10-a", []string{`10-a.conflist:4:\d+: `, `pods can be set up and removed`}, stale},
	{cniStale, "portmap", []string{`is a plugin of the network mynet`, `It is stale`}, stale},
	{cniBroken, "default", []string{`It is not ready: `, `Mend \S+/10-a.conflist: .*Until then no pod can be set up`}, inState(cni.NotReady, "", "10-a.conflist", comma)},
	{cniNotUsed, "bridge", []string{`20-b.conf is`}, func(d *cniDir) *cniNode {
		d.plugins(pluginReady, "one")
		return inState(cni.Ready, "", "10-a.conf", `{"cniVersion": "1.0.0", "name": "a", "type": "one"}`, "20-b.conf", otherConf)(d)
	}},
	{cniEmpty, "default", []string{`it holds 0 configuration files`, `No network is in use`, `Have the network installed.*--cni-conf-dir`}, inState(cni.NotReady, "")},
	{cniEmpty, "default", []string{`does not exist`}, func(d *cniDir) *cniNode {
		if err := os.Remove(d.conf); err != nil {
			d.t.Fatal(err)
		}
		return inState(cni.NotReady, "")(d)
	}},
	{cniEmpty, "mynet", []string{`mynet is a network that the default runtime handler keeps for pods that run; it was read from \S+/10-a.conflist, which does not have it any more`, `ago\. mynet is kept for pods that run\. It is not ready`}, gone},
	{cniEmpty, "portmap", []string{`portmap is a plugin of the network mynet, which the default runtime handler keeps for pods that run; `}, gone},
	{cniNoPinned, "20-b.conf", []string{`there is no network "there"; there are (mynet, other|other, mynet)`, `--cni-default-network`}, func(d *cniDir) *cniNode {
		d.cfg.DefaultNetwork = "there"
		return inState(cni.NotReady, pluginReady, "10-a.conflist", goodList, "20-b.conf", otherConf)(d)
	}},
	{cniMissing, "bridge", []string{`is a plugin of the network mynet, which the default runtime handler has loaded;.* Loaded .* ago: mynet\. It is not ready`, `plugin "?bridge"?: it is in none of \S+/bin`, `--cni-bin-dir.*found by itself`}, inState(cni.NotReady, "", "10-a.conflist", goodList)},
	{cniMissing, "10-a", []string{`is a configuration file`, `in none of`}, inState(cni.NotReady, "", "10-a.conflist", goodList)},
	{cniNoIPAM, "bridge", []string{`The network is ready, but: IPAM plugin "host-local": it is in none of \S+/bin; install it in \S+/bin\. `, `Install it.*--cni-bin-dir.*each pod fails`}, inState(cni.Ready, pluginReady, "10-a.conflist", withIPAM)},
	{cniNoIPAM, "host-local", []string{`^host-local is the IPAM plugin of the network mynet, `}, inState(cni.Ready, pluginReady, "10-a.conflist", withIPAM)},
	{cniNoIPAM, "%s", []string{`is the CNI directory`}, inState(cni.Ready, pluginReady, "10-a.conflist", withIPAM)},
	{cniNoIPAM, "portmap", []string{`it is in none of`}, inState(cni.Ready, pluginReady, "10-a.conflist", withIPAM)},
	{cniStatus, "mynet", []string{`the agent is away`, `asked again by itself.*SIGHUP`}, inState(cni.NotReady, pluginFailing, "10-a.conflist", goodList)},
	{cniLoading, "default", []string{`could never read`, `ask again in a second`}, func(d *cniDir) *cniNode {
		s, err := cni.New(d.cfg)
		if err != nil {
			d.t.Fatal(err)
		}
		return follow(d.t, newFake(func(v *cni.View) { *v = s.View() }))
	}},
	{cniUnreadable, "default", []string{`It is not ready: .*permission denied`, "run the daemon as root.*`namei -l \\S+`\\)\\.$"}, func(d *cniDir) *cniNode {
		d.cfg.FS = closedFS{afero.NewOsFs(), d.conf}
		return inState(cni.NotReady, "")(d)
	}},
	{cniUnreadable, "default", []string{`not a directory`, `a file in the directory's place`}, func(d *cniDir) *cniNode {
		if err := os.Remove(d.conf); err != nil {
			d.t.Fatal(err)
		}
		if err := os.WriteFile(d.conf, nil, 0o644); err != nil {
			d.t.Fatal(err)
		}
		return inState(cni.NotReady, "")(d)
	}},
}

// closedFS is a filesystem with a directory that nobody may read.
type closedFS struct {
	afero.Fs
	dir string
}

func (f closedFS) Open(path string) (afero.File, error) {
	if path == f.dir {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
	}
	return f.Fs.Open(path)
}

// TestWhyCNI makes every cause happen and reads what is said of it.
func TestWhyCNI(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the plugins are shell scripts")
	}
	for i, s := range cniScenes {
		t.Run(fmt.Sprintf("%s-%d", s.cause, i), func(t *testing.T) {
			t.Parallel()
			d := newCNIDir(t)
			asked := s.asked
			n := s.play(d)
			if asked == "%s" || len(asked) > 2 && asked[:2] == "%s" {
				asked = d.conf + asked[2:]
			}
			found := n.why(asked)
			if len(found) != 1 {
				t.Errorf("there are %d findings", len(found))
			}
			scene{cause: s.cause, says: s.says}.check(t, found[0])
			if ok := s.cause == cniReady; found[0].OK != ok {
				t.Errorf("ok is %v", found[0].OK)
			}
		})
	}
}

// TestWhyCNIViews tells of what is hard to bring about.
func TestWhyCNIViews(t *testing.T) {
	for _, test := range []struct {
		cause  cause
		asked  string
		says   string
		facts  pathFacts
		change func(*cni.View)
	}{
		{cniFailing, "default", "It is not ready: something else", pathFacts{}, func(v *cni.View) {
			v.State, v.Ready, v.Message = cni.NotReady, false, cni.MessagePrefix+"something else"
		}},
		{cniUnreadable, "default", "The network is ready, but: list x: permission denied. .*run the daemon as root.*`namei -l /etc/cni/net.d`.*What was in use stays so meanwhile", pathFacts{}, func(v *cni.View) { v.ScanError = "list x: permission denied" }},
		{cniUnreadable, "/etc/cni/net.d/b.conf", "cannot read the directory as a whole: list x: input/output error", pathFacts{}, func(v *cni.View) { v.ScanError = "list x: input/output error" }},
		{cniEmpty, "default", "stale", pathFacts{}, func(v *cni.View) { v.State, v.Files, v.LastError = cni.Stale, nil, "there is nothing" }},
		{notSeen, "/etc/cni/net.d/b.conf", "has not seen it there.*another filesystem", pathFacts{what: "file"}, func(*cni.View) {}},
		{cniNoFile, "/etc/cni/net.d/b.conf", "nothing at.*found by itself", pathFacts{err: fs.ErrNotExist}, func(*cni.View) {}},
		{cniNoFile, "/etc/cni/net.d/b.yaml", "nothing at.*does not end in .conf", pathFacts{err: fs.ErrNotExist}, func(*cni.View) {}},
		{cniNoFile, "/etc/cni/net.d/.b.conf", "nothing at.*begins with a dot", pathFacts{err: fs.ErrNotExist}, func(*cni.View) {}},
		{cniUnknown, "/etc/cni", "is called /etc/cni", pathFacts{what: "directory"}, func(*cni.View) {}},
		{cniUnknown, "/", "is called /", pathFacts{what: "directory"}, func(*cni.View) {}},
	} {
		f := newFake(test.change)
		found := explain(noPlugins{}.View(), []cni.View{f.View()}, test.asked, noFacts{test.facts})
		scene{cause: test.cause, says: []string{test.says}}.check(t, found[0])
	}
}

// TestWhyBoth asks a daemon that follows sockets and network configuration.
func TestWhyBoth(t *testing.T) {
	now := time.Now()
	v := state.View{Time: now, Roots: []state.RootView{{Path: "/r", LastScan: now, LastGoodScan: now}}, Sockets: []state.SocketView{{Path: "/r/mynet.sock", Root: "/r", Phase: state.Registered}}}
	dirs := []cni.View{newFake(nil).View()}
	both := explain(v, dirs, "mynet", noFacts{})
	if len(both) != 2 || both[0].Cause != isRegistered || both[1].Cause != cniReady {
		t.Errorf("mynet is both: %+v", both)
	}
	none := explain(v, dirs, "nix", noFacts{pathFacts{err: fs.ErrNotExist}})
	scene{cause: noSuchSocket, says: []string{`No socket in /r announces .* nix`, `No network, file or plugin .* in /etc/cni/net.d is called so either`}}.check(t, none[0])
	if path := filepath.FromSlash("/r/nix.sock"); explain(v, dirs, path, noFacts{pathFacts{err: fs.ErrNotExist}})[0].Cause != noSuchSocket {
		t.Error("a path in /r is not looked at there")
	}
}
