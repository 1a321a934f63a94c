package register

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// C1: what can be seen not to work is refused, and each error names its field.
func TestCheck(t *testing.T) {
	good := func() Config { return Config{Roots: []scanner.Config{{Root: "/a"}}} }
	roots := func(paths ...string) func(*Config) {
		return func(c *Config) {
			c.Roots = nil
			for _, p := range paths {
				c.Roots = append(c.Roots, scanner.Config{Root: p})
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   []string // nothing: it is fine
	}{
		{"fine", func(*Config) {}, nil},
		{"no root", roots(), []string{"Config.Roots is empty"}},
		{"empty root", roots("/a", ""), []string{"Config.Roots[1]", "Config.Root is empty"}},
		{"interval", func(c *Config) { c.Roots[0].Interval = -1 }, []string{"Config.Roots[0]", "Config.Interval"}},
		{"same root", roots("/a/", "/a"), []string{"Config.Roots[0] (/a/) and Config.Roots[1] (/a)"}},
		{"inside", roots("/b", "/a", "/b/../a/c"), []string{"Config.Roots[1] (/a) and Config.Roots[2]"}},
		{"outside", roots("/a/b", "/a"), []string{"Config.Roots[0] (/a/b) and Config.Roots[1] (/a)"}},
		{"root of all", roots("/", "/a"), []string{"Config.Roots[0] (/) and Config.Roots[1] (/a)"}},
		{"prefix only", roots("/a", "/ab", "/a.b"), nil},
		{"relative", roots("a", "./a/b"), []string{"Config.Roots[0] (a) and Config.Roots[1] (./a/b)"}},
		{"unquoted", roots("/a b", "/a b/\n"), []string{`("/a b") and Config.Roots[1] ("/a b/\n")`}},
		{"no dialer", func(c *Config) { c.Roots[0].FS = afero.NewMemMapFs() }, []string{"Config.Dial is nil", "Config.Roots[0].FS is MemMapFS"}},
		{"no dialer for a part", func(c *Config) { c.Roots[0].FS = afero.NewBasePathFs(afero.NewOsFs(), "/x") }, []string{"Config.Dial is nil"}},
		{"operating system's", func(c *Config) { c.Roots[0].FS = afero.NewOsFs() }, nil},
		{"dial timeout", func(c *Config) { c.DialTimeout = -1 }, []string{"Config.DialTimeout is -1ns"}},
		{"info timeout", func(c *Config) { c.InfoTimeout = -1 }, []string{"Config.InfoTimeout"}},
		{"notify timeout", func(c *Config) { c.NotifyTimeout = -1 }, []string{"Config.NotifyTimeout"}},
		{"stop timeout", func(c *Config) { c.StopTimeout = -1 }, []string{"Config.StopTimeout"}},
		{"handler timeout", func(c *Config) { c.HandlerTimeout = -1 }, nil},
		{"liveness grace", func(c *Config) { c.LivenessGrace = -1 }, nil},
		{"negative uid", func(c *Config) { c.AllowedUIDs = []int{0, -1} }, []string{"Config.AllowedUIDs[1] is -1"}},
		{"no peers", func(c *Config) { c.AllowedUIDs, c.Dial, c.Roots[0].FS = []int{0}, dialUnix, afero.NewMemMapFs() }, []string{"Config.Peer is nil", "Config.Roots[0].FS is MemMapFS"}},
		{"several", func(c *Config) { c.Roots, c.DialTimeout = nil, -1 }, []string{"Config.Roots is empty", "Config.DialTimeout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good()
			c.change(&cfg)
			m, err := NewManager(cfg)
			if (err == nil) != (c.want == nil) || (m != nil) != (err == nil) {
				t.Fatalf("NewManager returned %v, %v", m, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
		})
	}
}

func TestAddHandlerErrors(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		for _, c := range []struct {
			typ  string
			h    Handler
			want string
		}{
			{"", record.Handler{}, "register: AddHandler: the plugin type is empty"},
			{"x", nil, `register: AddHandler: the handler for "x" is nil`},
			{testType, record.Handler{}, `register: AddHandler: there is a handler for "TestPlugin" already`},
		} {
			if err := w.m.AddHandler(c.typ, c.h); err == nil || err.Error() != c.want {
				w.Errorf("AddHandler(%q, %v) is %v", c.typ, c.h, err)
			}
		}
		w.run()
		if err := w.m.AddHandler(testType, record.Handler{}); err == nil {
			w.Error("during Run a second handler is taken")
		}
		if got := w.m.View().Types; !slices.Equal(got, []string{testType}) {
			w.Errorf("View shows the types %q", got)
		}
	})
}

func (w *world) synced() bool {
	select {
	case <-w.m.Synced():
		return true
	default:
		return false
	}
}

// O3: after the first scan of every root and the first try of everything it found; a failed scan and a failed try count.
func TestSynced(t *testing.T) {
	cfg := Config{Roots: []scanner.Config{{Root: root}, {Root: "/missing"}, {Root: "/slow"}}}
	bubble(t, cfg, func(w *world) {
		w.must(w.node.Mkdir("/slow", 0o755))
		free := w.node.Inject("/slow", simfs.OpList, simfs.Fault{Hang: true})
		w.bind("refused.sock", simfs.Plugin{RefuseDials: -1})
		w.bind("other.sock", simfs.Plugin{Type: "Other"})
		w.bind("slow.sock", simfs.Plugin{GetInfo: simfs.Call{Delay: 3 * time.Second}})
		if w.synced() || w.m.View().Synced {
			w.Error("synced before Run")
		}
		w.run()
		w.pass(4 * time.Second)
		if w.synced() {
			w.Error("synced before every root was scanned")
		}
		w.bind("/slow/a.sock", simfs.Plugin{GetInfo: simfs.Call{Delay: 3 * time.Second}})
		free()
		w.pass(2 * time.Second)
		if w.synced() || w.m.View().Synced {
			w.Error("synced before everything was tried")
		}
		w.bind("later.sock", simfs.Plugin{GetInfo: simfs.Call{Delay: time.Hour}}) // not found by a first scan
		w.pass(2 * time.Second)
		if !w.synced() || !w.m.View().Synced {
			w.Error("not synced")
		}
	})
}

// What was found at first and is gone again does not hold Synced up.
func TestSyncedWithoutTheGone(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{GetInfo: simfs.Call{Delay: time.Hour}})
		w.run()
		w.remove("a.sock")
		w.pass(time.Second)
		if !w.synced() {
			w.Error("not synced")
		}
	})
}

func TestTwoRoots(t *testing.T) {
	bubble(t, Config{Roots: []scanner.Config{{Root: "/b"}, {Root: root}}}, func(w *world) {
		a := w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.told(a, yes)
		// /b does not exist yet (D8).
		v := w.m.View()
		if len(v.Roots) != 2 || v.Roots[0].Path != "/b" || v.Roots[0].Error == "" || !v.Roots[0].LastGoodScan.IsZero() || v.Roots[0].LastScan.IsZero() {
			w.Errorf("View shows %+v", v.Roots)
		}
		if v.Roots[1].Error != "" || v.Roots[1].Entries != 1 || v.Roots[1].Filesystem != "simfs" {
			w.Errorf("View shows %+v", v.Roots)
		}
		w.pass(10 * time.Second)
		w.must(w.node.Mkdir("/b", 0o755))
		b := w.bind("/b/b.sock", simfs.Plugin{})
		w.pass(time.Second)
		w.told(b, yes)
		if v := w.m.View(); v.Roots[0].Error != "" || v.Roots[0].Entries != 1 || w.socket("/b/b.sock").Root != "/b" {
			w.Errorf("View shows %+v", v.Roots)
		}
		if warned := w.log.lines("[WARN]"); len(warned) != 1 {
			w.Errorf("O1: warned %q", warned)
		}
	})
}

func TestRootIsMade(t *testing.T) {
	bubble(t, Config{Roots: []scanner.Config{{Root: "/made/here", MissingRoot: scanner.CreateRoot}}}, func(w *world) {
		w.run()
		p := w.bind("/made/here/a.sock", simfs.Plugin{})
		w.pass(time.Second)
		w.told(p, yes)
	})
}

// U1: what a failed scan does not show stays registered.
func TestFailedScanDeregistersNothing(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.calls("Validate a", "Register a")
		mend := w.node.Inject(root, simfs.OpOpen, simfs.Fault{Err: syscall.EIO})
		w.pass(time.Minute)
		w.calls()
		w.told(p, yes)
		v := w.m.View()
		s := find(v, at("a.sock"))
		if s.Phase != state.Registered || s.Stale == nil || v.Roots[0].Error == "" || v.Roots[0].GoodScanAge < 59 {
			w.Errorf("View shows %+v in %+v", s, v.Roots[0])
		}
		mend()
		w.pass(time.Second)
		if v = w.m.View(); find(v, at("a.sock")).Stale != nil || v.Roots[0].Error != "" {
			w.Errorf("View shows %+v", v)
		}
		w.calls()
		if r := p.Record(); r.Dials != 1 {
			w.Errorf("the plugin saw %+v", r)
		}
		warned, info := w.log.lines("[WARN]"), w.log.lines("[INFO]")
		if len(warned) != 1 || len(info) != 2 {
			w.Errorf("O1: lines %q and %q", warned, info)
		}
		w.remove("a.sock")
		w.pass(time.Second)
		w.calls("Deregister a")
	})
}

// A removal is seen though another directory cannot be read; D4, D9: subdirectories, and what is ignored.
func TestSubdirectories(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.must(w.node.MkdirAll(root+"/x/y", 0o755))
		w.must(w.node.Mkdir(root+"/z", 0o755))
		w.must(afero.WriteFile(w.node, root+"/z/file", nil, 0o644))
		a := w.bind("x/y/a.sock", simfs.Plugin{})
		z := w.bind("z/z.sock", simfs.Plugin{})
		w.run()
		w.told(a, yes)
		w.told(z, yes)
		if i := w.m.View().Roots[0].Ignored; len(i) != 1 || i[0].Dir != root+"/z" || i[0].Reason != scanner.NotSocket || i[0].Count != 1 {
			w.Errorf("View shows %+v", i)
		}
		w.node.Inject(root+"/z", simfs.OpOpen, simfs.Fault{Err: syscall.EACCES})
		w.must(w.node.RemoveAll(root + "/x"))
		w.pass(time.Second)
		w.phase("x/y/a.sock", "")
		w.phase("z/z.sock", state.Registered)
	})
}

// A filesystem without inodes or change times, and without types in its listings.
func TestFilesystemThatTellsLittle(t *testing.T) {
	bubbleOn(t, simfs.Config{Detail: simfs.NoDetail, Entries: simfs.NoEntries, Granularity: time.Millisecond}, Config{}, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{})
		w.run()
		w.told(p, yes)
		w.pass(time.Second)
		w.remove("a.sock")
		q := w.bind("a.sock", simfs.Plugin{})
		w.pass(time.Second)
		w.told(q, yes)
		w.calls("Validate a", "Register a", "Deregister a", "Validate a", "Register a")
		w.remove("a.sock")
		w.pass(time.Second)
		w.calls("Deregister a")
	})
}

func TestErrorText(t *testing.T) {
	err := &Error{Verb: "retry", Path: "/a\nb", Err: ErrUnknownPath}
	if got, want := err.Error(), `retry "/a\nb": no such socket is known`; got != want || !errors.Is(err, ErrUnknownPath) {
		t.Errorf("the text is %q, want %q", got, want)
	}
	stuck := &StuckError{Calls: []string{"Register of /a"}}
	if got, want := stuck.Error(), "register: stopped, but what follows did not end: Register of /a"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}
