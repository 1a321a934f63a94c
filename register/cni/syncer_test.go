package cni

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	gocni "github.com/containerd/go-cni"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
)

// CN5, CN6: a set is in use once two polls have seen it, the second 20 ms after the first.
func TestApplied(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.is(Loading, "")
		w.write("10-a.conflist", list("a"))
		w.run()
		w.is(Loading, "")
		w.pass(20 * time.Millisecond)
		w.is(Ready, "a")
		w.happened(EventApplied, EventReady, EventSynced)
		w.pass(10 * time.Minute)
		if n := len(w.wasAsked()); n < 59 || n > 61 {
			t.Errorf("CN10: STATUS was asked %d times in ten minutes", n)
		}
		w.happened()
		if lines := w.log.lines("INFO", "WARN"); len(lines) != 2 {
			t.Errorf("O1: the log is\n%s", strings.Join(lines, "\n"))
		}
	})
}

// CN5: half a file is not taken into use if the rest comes before the second poll.
func TestHalfAFile(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(time.Second)
		w.happened(EventApplied, EventReady, EventSynced)
		w.write("10-a.conflist", "")
		w.pass(scanner.DefaultInterval)
		w.pass(10 * time.Millisecond)
		w.write("10-a.conflist", list("b"))
		w.pass(settled)
		w.is(Ready, "b")
		w.happened(EventApplied, EventDefaultChanged)
	})
}

// CN5: what is written without end is taken into use after 10 s all the same, the newest, and every 10 s from then on.
func TestEndlessWriting(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("first"))
		w.run()
		w.pass(time.Second)
		w.happened(EventApplied, EventReady, EventSynced)
		var applied []time.Duration
		for n := range 2500 {
			w.write("10-a.conflist", list(fmt.Sprintf("n%d", n)))
			w.pass(10 * time.Millisecond)
			if network := w.s.View().DefaultNetwork; network == fmt.Sprintf("n%d", n) {
				applied = append(applied, w.now())
			}
		}
		if len(applied) != 2 || applied[0] < 11*time.Second || applied[0] > 12*time.Second || applied[1]-applied[0] > 11*time.Second {
			t.Errorf("the newest set was taken into use at %v", applied)
		}
		w.pass(settled)
		w.is(Ready, "n2499")
	})
}

// CN7: a set that cannot be used leaves the last good one in use. It is ready, and says which file, where and why.
func TestBroken(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.write("20-b.conflist", list("b"))
		w.run()
		w.pass(time.Second)
		before, applied := w.s.CNI(), w.s.View().Applied
		w.happened(EventApplied, EventReady, EventSynced)

		w.write("10-a.conflist", broken)
		w.pass(settled)
		w.is(Stale, "a")
		w.says("/net.d/10-a.conflist:4:1:", "(2 files)")
		v := w.s.View()
		if v.Error == nil || v.Error.Path != at("10-a.conflist") || v.Error.Line != 4 || v.Applied != applied || v.Observed == applied || w.s.CNI() != before {
			t.Errorf("error %+v, applied %s, observed %s", v.Error, v.Applied, v.Observed)
		}
		if v.Files[0].State != Broken || v.Files[1].State != NotUsed {
			t.Errorf("the files are %+v", v.Files)
		}
		w.happened(EventRejected)

		w.write("10-a.conflist", list("a"))
		w.pass(settled)
		w.is(Ready, "a")
		if w.s.CNI() != before || w.s.View().Error != nil {
			t.Error("a file that is as it was is taken into use again")
		}
		w.happened(EventRepaired)

		w.write("10-a.conflist", broken)
		w.pass(settled)
		w.remove("10-a.conflist")
		w.pass(settled)
		w.is(Ready, "b")
		w.happened(EventRejected, EventApplied, EventDefaultChanged)
		if lines := w.log.lines("WARN"); len(lines) != 3 {
			t.Errorf("O1: the warnings are\n%s", strings.Join(lines, "\n"))
		}
	})
}

// CN7, CN16: a first load that fails is a status.
func TestBrokenFirst(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", broken)
		w.write("20-b.conflist", list("b"))
		w.run()
		w.pass(settled)
		w.is(NotReady, "")
		w.says(MessagePrefix, confDir, "2 files", "/net.d/10-a.conflist:4:1:")
		if err, ok := errors.AsType[*ConfError](w.s.LastStatus()); !ok || err.Kind != KindIncomplete {
			t.Errorf("the status is %v", w.s.LastStatus())
		}
		w.happened(EventRejected, EventNotReady, EventSynced)
		w.write("10-a.conflist", list("a"))
		w.pass(settled)
		w.is(Ready, "a")
		w.happened(EventApplied, EventReady)
	})
}

// A file that is not used is no reason for another instance, nor for a line.
func TestUnusedFile(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(time.Second)
		w.happened(EventApplied, EventReady, EventSynced)
		before := w.s.View()
		instance := w.s.CNI()
		w.write("20-b.conf", broken)
		w.pass(settled)
		w.is(Ready, "a")
		v := w.s.View()
		if w.s.CNI() != instance || v.Reloads != 1 || v.Applied == before.Applied || v.Applied != v.Observed || len(v.Files) != 2 || v.Files[1].State != Broken {
			t.Errorf("the View is %+v", v)
		}
		w.write("notes.txt", "x")
		w.write(".10-a.conflist.swp", "x")
		w.pass(settled)
		if after := w.s.View(); after.Applied != v.Applied || len(after.Ignored) != 2 {
			t.Errorf("CN1: the View is %+v", after)
		}
		w.happened(EventUnaffected)
		if lines := w.log.lines("INFO", "WARN"); len(lines) != 2 {
			t.Errorf("O1: the log is\n%s", strings.Join(lines, "\n"))
		}
		w.remove("10-a.conflist") // CN7: what comes next is broken
		w.pass(settled)
		w.is(Stale, "a")
	})
}

// CN1: what happens to other files is no change, not even for the pace.
func TestOtherFiles(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(2 * time.Second)
		w.happened(EventApplied, EventReady, EventSynced)
		before := w.node.Calls(confDir, simfs.OpOpen)
		for n := range 500 {
			w.write(".10-a.conflist.swp", fmt.Sprint(n))
			w.write(fmt.Sprintf("%d.txt", n%5), "")
			w.pass(20 * time.Millisecond)
		}
		if polls := w.node.Calls(confDir, simfs.OpOpen) - before; polls < 40 || polls > 60 {
			t.Errorf("there were %d polls in 10 s", polls)
		}
		w.happened()
	})
}

// CN8: without files it is not ready, after the grace; the last good instance stays for removing pods.
func TestAllGone(t *testing.T) {
	for _, test := range []struct {
		grace, until time.Duration // until it is not ready; 0: never
	}{{0, 3 * scanner.DefaultInterval}, {10 * time.Second, 11 * time.Second}, {-1, 0}} {
		t.Run(test.grace.String(), func(t *testing.T) {
			bubble(t, Config{Grace: test.grace}, func(w *world) {
				w.write("10-a.conflist", list("a"))
				w.run()
				w.pass(time.Second)
				instance := w.s.CNI()
				w.happened(EventApplied, EventReady, EventSynced)
				w.remove("10-a.conflist")
				w.pass(settled)
				if test.grace != 0 {
					w.is(Stale, "a")
					w.says("there is no network configuration in /net.d")
					w.happened(EventEmpty)
				}
				if test.until == 0 {
					w.pass(10 * time.Minute)
					w.is(Stale, "a")
					return
				}
				w.pass(test.until)
				w.is(NotReady, "a")
				w.says("there is no network configuration in /net.d")
				if w.s.CNI() != instance || !errors.Is(w.s.LastStatus(), gocni.ErrCNINotInitialized) {
					t.Errorf("CN8: the instance is another one, or the status is %v", w.s.LastStatus())
				}
				if test.grace != 0 {
					w.happened(EventNotReady)
				} else {
					w.happened(EventEmpty, EventNotReady)
				}
				w.remove(binDir + "/bridge") // the plugins go with their configuration: that is nothing to speak of
				w.answers(func(context.Context) error { return errors.New("gone") })
				w.pass(time.Minute)
				w.happened()
				w.answers(nil)
				w.install("bridge")
				w.write("10-a.conflist", broken)
				w.pass(settled)
				w.is(NotReady, "a") // what is gone is not brought back by what cannot be used
				w.write("10-a.conflist", list("a"))
				w.pass(settled)
				w.is(Ready, "a")
				if w.s.CNI() != instance {
					t.Error("networks that are as they were are taken into use again")
				}
				w.happened(EventRejected, EventRepaired, EventReady)
			})
		})
	}
}

// CN12: what comes after all files were gone is loading until its plugins have answered, be it what was in use before or not.
func TestLoadingAfterGone(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		bubble(t, Config{}, func(w *world) {
			w.answers(func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(5 * time.Second):
					return nil
				}
			})
			w.write("10.conflist", listOf("1.1.0", "a"))
			w.run()
			w.pass(settled)
			w.is(Loading, "a")
			w.says("asked for their STATUS")
			w.pass(5 * time.Second)
			w.is(Ready, "a")
			w.remove("10.conflist")
			w.pass(settled)
			w.is(NotReady, "a")
			w.write("10.conflist", listOf("1.1.0", name))
			w.pass(2 * time.Second)
			w.is(Loading, name)
			w.pass(10 * time.Second)
			w.is(Ready, name)
		})
	}
}

// CN8, CN14: so is a directory that is not there. It is waited for, and never made.
func TestMissingDirectory(t *testing.T) {
	bubble(t, Config{ConfDir: "/etc/cni/net.d/"}, func(w *world) {
		w.run()
		w.pass(settled)
		w.is(NotReady, "")
		w.says("/etc/cni/net.d does not exist")
		w.happened(EventEmpty, EventNotReady, EventSynced)
		w.pass(10 * time.Minute)
		w.happened()
		if _, err := w.node.Stat("/etc"); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("/etc: %v", err)
		}
		w.must(w.node.MkdirAll("/etc/cni/net.d", 0o755))
		w.pass(settled)
		w.says("there is no network configuration in /etc/cni/net.d")
		w.write("/etc/cni/net.d/10-a.conflist", list("a"))
		w.pass(settled)
		w.is(Ready, "a")
		w.happened(EventEmpty, EventApplied, EventReady)
		w.must(w.node.RemoveAll("/etc"))
		w.pass(2 * settled)
		w.is(NotReady, "a")
		w.says("/etc/cni/net.d does not exist")
		w.must(w.node.MkdirAll("/etc/cni/net.d", 0o755))
		w.write("/etc/cni/net.d/10-b.conflist", list("b"))
		w.pass(2 * settled)
		w.is(Ready, "b")
		w.happened(EventEmpty, EventNotReady, EventApplied, EventDefaultChanged, EventReady)
		if lines := w.log.lines("WARN"); len(lines) != 2 {
			t.Errorf("O1: the warnings are\n%s", strings.Join(lines, "\n"))
		}
	})
}

// A directory that is another one at once, as by a rename or a mount, is followed without a word of failure.
func TestOtherDirectory(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(time.Second)
		w.must(w.node.Rename(confDir, "/old"))
		w.must(w.node.MkdirAll(confDir, 0o755))
		w.write("10-b.conflist", list("b"))
		w.pass(settled)
		w.is(Ready, "b")
		w.must(w.node.Mount(confDir))
		w.write("10-c.conflist", list("c"))
		w.pass(settled)
		w.is(Ready, "c")
		w.must(w.node.Unmount(confDir))
		w.pass(settled)
		w.is(Ready, "b")
		w.happened(EventApplied, EventReady, EventSynced, EventApplied, EventDefaultChanged, EventApplied, EventDefaultChanged, EventApplied, EventDefaultChanged)
	})
}

// Not seen is not the same as gone: a directory that cannot be listed changes nothing, and says so.
func TestUnlistable(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		clear := w.node.Inject(confDir, simfs.OpOpen, simfs.Fault{Err: syscall.EACCES})
		w.run()
		w.pass(settled)
		w.is(NotReady, "")
		w.says(confDir, "permission denied")
		clear()
		w.write("10-a.conflist", list("a"))
		w.pass(settled)
		w.is(Ready, "a")
		w.mu.Lock()
		w.events = nil
		w.mu.Unlock()
		good := w.s.View().LastGoodScan

		clear = w.node.Inject(confDir, simfs.OpOpen, simfs.Fault{Err: syscall.EIO})
		w.remove("10-a.conflist")
		w.pass(time.Minute)
		w.is(Ready, "a")
		w.says("input/output error")
		v := w.s.View()
		if v.ScanError == "" || v.LastGoodScan.Sub(good) > settled || v.GoodScanAge < 59 {
			t.Errorf("the View is %+v", v)
		}
		w.happened(EventScanFailing)
		clear()
		w.write("10-b.conflist", list("b"))
		w.pass(settled)
		w.is(Ready, "b")
		if v := w.s.View(); v.ScanError != "" || v.LastError != "" {
			t.Errorf("errors stay: %q, %q", v.ScanError, v.LastError)
		}
		w.happened(EventScanRecovered, EventApplied, EventDefaultChanged)
	})
}

// CN7: so does one that hangs.
func TestDirectoryHangs(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(settled)
		w.happened(EventApplied, EventReady, EventSynced)
		clear := w.node.Inject(confDir, simfs.OpOpen, simfs.Fault{Hang: true})
		w.write("10-a.conflist", list("b"))
		w.pass(time.Minute)
		w.is(Ready, "a")
		w.says("no answer for 5s")
		w.happened(EventScanFailing)
		clear()
		w.pass(31 * time.Second) // a path that has hung is left alone for a while
		w.is(Ready, "b")
		w.happened(EventScanRecovered, EventApplied, EventDefaultChanged)
	})
}

// CN1: a sub-directory matters if a network takes plugins from it, and not otherwise.
func TestSubdirectories(t *testing.T) {
	const inlined = `{"cniVersion": "1.1.0", "name": "a", "plugins": [{"type": "bridge"}]}`
	for _, dir := range []string{confDir, "/bin/..//net.d"} {
		bubble(t, Config{ConfDir: dir}, func(w *world) {
			w.must(w.node.MkdirAll(at("a"), 0o755))
			w.must(w.node.MkdirAll(at("other"), 0o755))
			w.write("10-a.conflist", inlined)
			w.write("a/10-more.conf", `{"type": "portmap"}`)
			w.node.Inject(at("other"), simfs.OpOpen, simfs.Fault{Err: syscall.EACCES})
			w.run()
			w.pass(settled)
			w.is(Ready, "a")
			plugins := func() (types []string) {
				for _, p := range w.s.View().Networks[0].Plugins {
					types = append(types, p.Type)
				}
				return types
			}
			if got := plugins(); !slices.Equal(got, []string{"bridge", "portmap"}) {
				t.Errorf("the plugins are %q", got)
			}
			w.happened(EventApplied, EventReady, EventSynced)

			clear := w.node.Inject(at("a"), simfs.OpOpen, simfs.Fault{Err: syscall.EACCES})
			w.write("a/10-more.conf", `{"type": "ptp"}`)
			w.pass(time.Minute)
			w.is(Ready, "a")
			if got := plugins(); !slices.Equal(got, []string{"bridge", "portmap"}) {
				t.Errorf("the plugins are %q", got)
			}
			w.happened(EventScanFailing)
			clear()
			w.pass(settled)
			if got := plugins(); !slices.Equal(got, []string{"bridge", "ptp"}) {
				t.Errorf("the plugins are %q", got)
			}
			w.happened(EventScanRecovered, EventApplied)
			w.must(w.node.RemoveAll(at("a")))
			w.pass(2 * settled)
			if got := plugins(); !slices.Equal(got, []string{"bridge"}) {
				t.Errorf("the plugins are %q", got)
			}
			w.happened(EventApplied)
		})
	}
}

// CN9: another name of the default network is announced. A pin keeps it.
func TestDefaultNetwork(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(settled)
		w.write("00-b.conflist", list("b"))
		w.pass(settled)
		w.is(Ready, "b")
		w.write("00-b.conflist", list("b", "bridge", "portmap"))
		w.pass(settled)
		lines := w.log.lines("WARN")
		if len(lines) != 1 || !strings.Contains(lines[0], "network=b former=a") {
			t.Errorf("the warnings are %q", lines)
		}
		w.metric(`cni_default_network_changes_total{handler=""} 1`)
	})
	bubble(t, Config{DefaultNetwork: "a"}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(settled)
		w.write("00-b.conflist", list("b"))
		w.pass(settled)
		w.is(Ready, "a")
		w.write("10-a.conflist", list("c"))
		w.pass(settled)
		w.is(Stale, "a")
		w.says(`no network "a"`)
		w.write("10-a.conflist", broken)
		w.pass(settled)
		w.says(`no network "a"`, "10-a.conflist:4:1: ")
		w.write("20-a.conflist", list("a"))
		w.pass(settled)
		w.is(Ready, "a")
		if v := w.s.View(); !v.Pinned || v.Networks[0].File != at("20-a.conflist") {
			t.Errorf("the View is %+v", v)
		}
		w.metric(`cni_default_network_changes_total{handler=""} 0`)
	})
}

// CN10: an IPAM plugin that is missing is shown, and makes nothing not ready.
func TestMissingIPAM(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", strings.Replace(list("a", "bridge", "portmap"), `"bridge"`, `"bridge", "ipam": {"type": "host-local"}`, 1))
		w.run()
		w.pass(settled)
		w.is(Ready, "a")
		w.happened(EventApplied, EventReady, EventSynced)
		want := PluginView{Type: "bridge", Path: binDir + "/bridge", IPAM: "host-local", IPAMMissing: `IPAM plugin "host-local": it is in none of /bin; install it in /bin`}
		plugins := func() []PluginView { return w.s.View().Networks[0].Plugins }
		if got := plugins(); got[0] != want || got[1].IPAM != "" || got[1].IPAMMissing != "" {
			t.Errorf("the plugins are %+v", got)
		}
		w.install("host-local")
		w.pass(DefaultStatusInterval + settled)
		if want.IPAMMissing = ""; plugins()[0] != want {
			t.Errorf("it was installed: %+v", plugins())
		}
		w.must(w.node.Remove(binDir + "/bridge"))
		w.must(w.node.Remove(binDir + "/host-local"))
		w.pass(DefaultStatusInterval + settled)
		w.is(NotReady, "a")
		if got := plugins()[0]; got.Missing == "" || got.IPAMMissing == "" {
			t.Errorf("both are gone: %+v", got)
		}
		w.must(w.node.Remove(confDir + "/10-a.conflist"))
		w.write("10-b.conflist", strings.Replace(list("b", "ptp"), `"ptp"`, `"ptp", "ipam": {"type": "\u001b[2J`+strings.Repeat("x", 1000)+`"}`, 1))
		w.pass(DefaultStatusInterval + settled)
		w.is(Ready, "b")
		if got := plugins()[0]; len(got.IPAM) > maxName || scanner.Clean(got.IPAM, maxName) != got.IPAM || !strings.HasSuffix(got.IPAMMissing, "it is no name of a file; "+fixType) {
			t.Errorf("of a hostile name: %+v", got)
		}
	})
}

// CN10: a plugin that is missing makes it not ready, for every cniVersion, until the poll after it has come.
func TestMissingPlugin(t *testing.T) {
	for _, version := range []string{"0.3.1", "1.0.0", "1.1.0"} {
		bubble(t, Config{}, func(w *world) {
			w.write("10-a.conflist", listOf(version, "a", "bridge", "firewall"))
			w.run()
			w.pass(settled)
			w.is(NotReady, "a")
			w.says("firewall", binDir)
			w.happened(EventApplied, EventPluginsMissing, EventNotReady, EventSynced)
			if v := w.s.View(); v.Networks[0].Plugins[0].Missing != "" || v.Networks[0].Plugins[1].Missing == "" {
				t.Errorf("the plugins are %+v", v.Networks[0].Plugins)
			}
			w.pass(10 * time.Minute)
			w.happened()
			if asked := w.wasAsked(); asked != nil {
				t.Errorf("STATUS was asked at %v, though a plugin is missing", asked)
			}
			w.install("firewall")
			w.pass(scanner.DefaultInterval)
			w.is(Ready, "a")
			if v := w.s.View(); v.Networks[0].Plugins[1].Path != binDir+"/firewall" {
				t.Errorf("the plugins are %+v", v.Networks[0].Plugins)
			}
			w.happened(EventPluginsFound, EventReady)
			w.must(w.node.Chmod(binDir+"/firewall", 0o644))
			w.pass(DefaultStatusInterval + settled)
			w.is(NotReady, "a")
			w.says("not executable")
			w.must(w.node.Chmod(binDir+"/firewall", 0o755))
			w.pass(scanner.DefaultInterval)
			w.is(Ready, "a")
		})
	}
}

// CN10: a directory of plugins that hangs holds up neither polls nor reloads, and makes it not ready when it has had its time.
func TestPluginDirectoryHangs(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		clear := w.node.Inject(binDir+"/bridge", simfs.OpStat, simfs.Fault{Hang: true})
		w.run()
		w.pass(settled)
		w.is(Loading, "a")
		w.says("looked for in /bin")
		w.pass(DefaultStatusTimeout)
		w.is(NotReady, "a")
		w.says("looking for the plugins in /bin has not ended within 10s")
		w.write("10-a.conflist", list("b", "ptp"))
		w.pass(settled)
		w.is(NotReady, "b")
		clear()
		w.pass(0)
		w.is(Ready, "b")
	})
}

// CN10, CN12: STATUS that fails makes it not ready. It is asked again after 1 s, doubling up to 30 s, and then at its interval.
func TestStatusFails(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.answers(func(context.Context) error { return errors.New("agent\nnot up") })
		w.write("10-a.conflist", listOf("1.1.0", "a"))
		w.run()
		w.pass(settled)
		w.is(NotReady, "a")
		w.says(`agent\nnot up`)
		w.pass(10 * time.Minute)
		asked := w.wasAsked()
		for i := range asked[1:] {
			pause, want := asked[i+1]-asked[i], min(maxDelay, firstDelay<<i)
			if pause < want*8/10 || pause > want*12/10 {
				t.Errorf("pause %d is %v, want about %v", i, pause, want)
			}
		}
		if v := w.s.View(); v.Status.Tries != len(asked) || v.NextRetry.Sub(v.Time) > maxDelay || v.NextRetry.IsZero() || v.Status.Error == "" {
			t.Errorf("the View is %+v", v)
		}
		w.happened(EventApplied, EventStatusFailing, EventNotReady, EventSynced)
		w.answers(nil)
		w.s.Retry()
		w.pass(0)
		w.is(Ready, "a")
		w.happened(EventStatusOK, EventReady)
		if lines := w.log.lines("WARN"); len(lines) != 1 {
			t.Errorf("O1: the warnings are\n%s", strings.Join(lines, "\n"))
		}

		failing := func(tries int) {
			w.answers(func(context.Context) error { return errors.New("agent not up") })
			w.pass(DefaultStatusInterval)
			for w.s.View().Status.Tries < tries {
				w.pass(100 * time.Millisecond)
			}
		}
		failing(4)
		w.answers(nil)
		w.pass(30 * time.Second)
		w.is(Ready, "a")
		w.wasAsked()
		failing(2)
		if asked := w.wasAsked(); asked[len(asked)-1]-asked[len(asked)-2] > 2*time.Second {
			t.Errorf("after it was well the pauses do not begin anew: asked at %v", asked)
		}
	})
}

// CN12: a STATUS that hangs, whether it obeys its context or not, delays no reload, and there is one at a time.
func TestStatusHangs(t *testing.T) {
	for _, obeys := range []bool{true, false} {
		bubble(t, Config{}, func(w *world) {
			w.write("10-a.conflist", listOf("1.1.0", "a"))
			w.run()
			w.pass(settled)
			w.is(Ready, "a")
			let := make(chan struct{})
			w.answers(func(ctx context.Context) error {
				if !obeys {
					<-let
					return nil
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-let:
					return nil
				}
			})
			w.pass(DefaultStatusInterval)
			w.is(Ready, "a")
			if v := w.s.View(); v.Status.Running.IsZero() {
				t.Error("nobody can see that it is being asked")
			}
			w.pass(DefaultStatusTimeout + slack)
			w.is(NotReady, "a")
			for n := range 5 {
				name := fmt.Sprintf("n%d", n)
				w.write("10-a.conflist", listOf("1.1.0", name))
				w.pass(settled)
				if v := w.s.View(); v.DefaultNetwork != name {
					t.Errorf("STATUS holds up %s: %s is in use", name, v.DefaultNetwork)
				}
			}
			close(let)
			w.answers(nil)
			w.pass(30 * time.Second)
			w.is(Ready, "n4")
		})
	}
}

// CN12: a reload ends the asking of the plugins of before, whose answer then counts for nothing, and has the new ones asked at once.
func TestStatusOfBefore(t *testing.T) {
	for _, obeys := range []bool{true, false} {
		bubble(t, Config{}, func(w *world) {
			w.write("10-a.conflist", listOf("1.1.0", "a"))
			w.run()
			w.pass(settled)
			w.happened(EventApplied, EventReady, EventSynced)
			w.answers(func(ctx context.Context) error {
				if obeys {
					<-ctx.Done()
					return ctx.Err()
				}
				time.Sleep(5 * time.Second) //nolint:forbidigo // the bubble's time
				return errors.New("too late")
			})
			w.pass(DefaultStatusInterval)
			w.answers(nil)
			w.wasAsked()
			w.write("10-a.conflist", listOf("1.1.0", "b"))
			w.pass(settled)
			if asked := w.wasAsked(); (len(asked) == 1) != obeys {
				t.Errorf("the new ones were asked at %v", asked)
			}
			w.pass(5 * time.Second)
			w.is(Ready, "b")
			w.happened(EventApplied, EventDefaultChanged)
		})
	}
}

// CN12: a file that is merely rewritten makes nothing not ready, however long the plugins take to answer; what they answer then counts.
func TestRewriteDoesNotFlap(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", listOf("1.1.0", "a"))
		w.run()
		w.pass(settled)
		w.happened(EventApplied, EventReady, EventSynced)
		slow := func(err error) {
			w.answers(func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(5 * time.Second):
					return err
				}
			})
		}
		slow(nil)
		w.write("10-a.conflist", listOf("1.1.0", "a")+"\n")
		for range 6 {
			w.pass(time.Second)
			w.is(Ready, "a")
		}
		w.happened(EventApplied)
		slow(errors.New("no"))
		w.write("10-a.conflist", listOf("1.1.0", "a")+"\n\n")
		w.pass(4 * time.Second)
		w.is(Ready, "a")
		w.pass(2 * time.Second)
		w.is(NotReady, "a")
		w.happened(EventApplied, EventStatusFailing, EventNotReady)
		slow(nil)
		w.write("10-a.conflist", listOf("1.1.0", "a"))
		w.pass(4 * time.Second)
		w.is(NotReady, "a")
		w.pass(30 * time.Second)
		w.is(Ready, "a")
	})
}

// CN10: a file that could not be read is read again by each poll.
func TestUnreadableFile(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		clear := w.node.Inject(at("10-a.conflist"), simfs.OpOpen, simfs.Fault{Err: syscall.EACCES})
		w.run()
		w.pass(settled)
		w.is(NotReady, "")
		w.says("permission denied", "10-a.conflist")
		clear()
		w.pass(settled)
		w.is(Ready, "a")
	})
}

// CN14: several Syncers do not touch each other.
func TestSeveral(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.must(w.node.MkdirAll("/kata", 0o755))
		other, err := New(Config{Name: "kata", FS: w.node, ConfDir: "/kata", BinDirs: []string{binDir}})
		w.must(err)
		other.status = w.status
		ctx, cancel := context.WithCancel(w.Context())
		ended := make(chan error, 1)
		go func() { ended <- other.Run(ctx) }()
		w.run()
		w.write("10-a.conflist", list("a"))
		w.write("/kata/10-k.conflist", list("k"))
		w.pass(settled)
		w.write("10-a.conflist", broken)
		w.pass(settled)
		w.is(Stale, "a")
		if v := other.View(); v.State != Ready || v.DefaultNetwork != "k" || v.Name != "kata" {
			t.Errorf("the other one is %+v", v)
		}
		cancel()
		w.must(<-ended)
		synctest.Wait()
		w.write("10-a.conflist", list("b"))
		w.pass(settled)
		w.is(Ready, "b")
	})
}

// CN16: how many files, how many networks, what the interfaces are called, and the loopback, which comes last.
func TestOptions(t *testing.T) {
	var given []string
	note := func(s string) gocni.Opt {
		option := gocni.WithInterfacePrefix("net")
		given = append(given, s)
		return option
	}
	bubble(t, Config{MaxConfNum: 2, MinNetworks: 2, InterfacePrefix: "pod", Loopback: true}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(settled)
		w.is(NotReady, "")
		w.says("1 of its files make a network, and 2 must")
		w.write("20-b.conflist", list("b"))
		w.write("30-c.conflist", list("c"))
		w.pass(settled)
		v := w.s.View()
		if v.State != Ready || len(v.Networks) != 2 || v.Networks[0].Interface != "pod0" || v.Networks[1].Interface != "pod1" {
			t.Errorf("the View is %+v", v)
		}
		var got []string
		for _, n := range w.s.CNI().GetConfig().Networks {
			got = append(got, n.Config.Name+" "+n.IFName)
		}
		if want := []string{"a pod0", "b pod1", "cni-loopback lo"}; !slices.Equal(got, want) {
			t.Errorf("the instance has %q, want %q", got, want)
		}
		w.must(w.s.CNI().Status())
		w.remove("20-b.conflist")
		w.remove("30-c.conflist")
		w.pass(settled)
		if v := w.s.View(); v.State != Stale || len(v.Networks) != 2 {
			t.Errorf("CN7: the View is %+v", v)
		}
	})
	bubble(t, Config{MaxConfNum: -1, Options: []gocni.Opt{note("prefix")}}, func(w *world) {
		for n := range 9 {
			w.write(fmt.Sprintf("%d.conf", n), fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "n%d", "type": "bridge"}`, n))
		}
		w.run()
		w.pass(settled)
		if got := w.s.CNI().GetConfig(); len(got.Networks) != 9 || got.Prefix != "net" || got.Networks[8].IFName != "net8" {
			t.Errorf("the instance has %+v", got)
		}
	})
}
