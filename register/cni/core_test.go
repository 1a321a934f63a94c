package cni

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// driver drives a core without a shell.
type driver struct {
	*testing.T
	c   *core
	now time.Time
	did []effect
}

func drive(t *testing.T, cfg Config) *driver {
	cfg.Seed = 1
	if cfg.ConfDir == "" {
		cfg.ConfDir = confDir
	}
	cfg.BinDirs = []string{binDir}
	return &driver{T: t, c: newCore(cfg.withDefaults()), now: day}
}

func (d *driver) step(in input) {
	d.did = append(d.did, d.c.step(d.now, in)...)
}

// poll gives the core what a poll of these files comes to, 20 ms after the last one.
func (d *driver) poll(err error, files ...scanner.Entry) {
	d.now = d.now.Add(20 * time.Millisecond)
	s := scanner.NewSnapshot(files, nil)
	comes := load(d.c.cfg.ConfDir, slices.Collect(s.All()), choose{max: max(d.c.cfg.MaxConfNum, 0), pin: d.c.cfg.DefaultNetwork})
	d.step(&scanned{snapshot: s, set: &comes, err: err, started: d.now, ended: d.now, filesystem: "simfs"})
}

// applies polls twice and does what that asks for.
func (d *driver) applies(files ...scanner.Entry) {
	d.poll(nil, files...)
	d.poll(nil, files...)
	d.carryOut(nil)
}

// carryOut answers what was asked for: instances are made, nothing is missing, and STATUS is err.
func (d *driver) carryOut(err error) {
	for len(d.did) > 0 {
		e := d.did[0]
		d.did = d.did[1:]
		switch e := e.(type) {
		case build:
			made, failed := instance(e.networks, instanceOptions{})
			d.step(built{e.id, made, failed})
		case findPlugins:
			d.step(found{round: e.round})
		case askPlugins:
			d.step(told{e.round, err})
		}
	}
}

func (d *driver) is(want State) {
	d.Helper()
	if got := d.c.stateNow(); got != want {
		d.Errorf("it is %s, want %s", got, want)
	}
}

func file(name, content string) scanner.Entry {
	return scanner.Entry{Path: at(name), File: &scanner.File{Content: content}}
}

func doubtful(name, content string) scanner.Entry {
	e := file(name, content)
	e.Stale = &scanner.Stale{Since: day, Err: &scanner.Error{Op: "lstat", Path: e.Path, Err: syscall.EIO}}
	return e
}

// What a poll's error says of what there is: nothing changes if it may hide a file that matters.
func TestDoubt(t *testing.T) {
	const merging = `{"cniVersion": "1.1.0", "name": "sub", "plugins": [{"type": "bridge"}]}`
	const single = `{"cniVersion": "1.0.0", "name": "b", "type": "bridge"}`
	failed := func(op, path string, err error) error { return &scanner.Error{Op: op, Path: path, Err: err} }
	for _, test := range []struct {
		name  string
		err   error
		files []scanner.Entry
		want  State // after two polls
		gone  bool  // whether they may say that the file of before is gone
		blind bool  // whether the directory cannot be read all the same
	}{
		{"no error", nil, nil, NotReady, true, false},
		{"missing", failed("stat", confDir, fs.ErrNotExist), nil, NotReady, true, false},
		{"a file in its place", failed("list", confDir, errors.New("not a directory")), nil, NotReady, true, true},
		{"unlistable, carried over", failed("list", confDir, syscall.EIO), []scanner.Entry{doubtful("10-a.conflist", list("a"))}, Ready, false, false},
		{"half a listing", failed("list", confDir, syscall.EIO), []scanner.Entry{file("20-b.conflist", list("b"))}, Ready, false, false},
		{"a file that cannot be looked at", failed("lstat", at("00-x.conf"), syscall.EIO), []scanner.Entry{file("20-b.conflist", list("b"))}, Ready, false, false},
		{"another kind of file", failed("lstat", at("00-x.txt"), syscall.EIO), []scanner.Entry{file("20-b.conflist", list("b"))}, Ready, true, false},
		{"a file in doubt", nil, []scanner.Entry{doubtful("10-b.conflist", list("b"))}, Ready, false, false},
		{"a sub-directory of nobody", failed("list", at("other"), syscall.EACCES), []scanner.Entry{file("20-b.conflist", list("b"))}, Ready, true, false},
		{"one with the name of a file", failed("list", at("other.conf"), syscall.EACCES), []scanner.Entry{file("20-b.conflist", list("b"))}, Ready, true, false},
		{"a sub-directory of the network", failed("list", at("sub"), syscall.EACCES), []scanner.Entry{file("20-b.conflist", merging)}, Ready, false, false},
		{"a file in it", failed("lstat", at("sub/x.conf"), syscall.EIO), []scanner.Entry{file("20-b.conflist", merging)}, Ready, false, false},
		{"a file in doubt in it", nil, []scanner.Entry{file("20-b.conflist", merging), doubtful("sub/x.conf", `{"type": "ptp"}`)}, Ready, false, false},
		{"a file in doubt in another one", nil, []scanner.Entry{file("20-b.conflist", list("b")), doubtful("other/x.conf", `{"type": "ptp"}`)}, Ready, true, false},
		{"several", errors.Join(failed("list", at("x"), syscall.EIO), failed("list", confDir, syscall.EIO)), []scanner.Entry{file("20-b.conflist", list("b"))}, Ready, false, false},
		{"too many to tell", errors.Join(failed("list", at("x"), syscall.EIO), errors.New("and 3 more errors")), []scanner.Entry{file("20-b.conflist", merging)}, Ready, false, false},
		{"too many, and nothing depends on them", errors.Join(failed("list", at("x"), syscall.EIO), errors.New("and 3 more errors")), []scanner.Entry{file("20-b.conf", single)}, Ready, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, Config{})
			d.applies(file("10-a.conflist", list("a")))
			d.is(Ready)
			before := d.c.polls.decided
			for range 3 {
				d.poll(test.err, test.files...)
			}
			d.carryOut(nil)
			d.is(test.want)
			if gone := d.c.polls.decided != before; gone != test.gone {
				t.Errorf("another set was decided upon: %v, want %v", gone, test.gone)
			}
			if failing := d.c.polls.err != ""; failing != (!test.gone || test.blind) {
				t.Errorf("the poll's error is %q", d.c.polls.err)
			}
		})
	}
}

// An unchanged poll allocates nothing in the core.
func TestUnchangedPollAllocates(t *testing.T) {
	d := drive(t, Config{})
	d.applies(file("10-a.conflist", list("a")))
	d.poll(nil, file("10-a.conflist", list("a")))
	in := &scanned{ended: d.now, filesystem: "simfs"}
	if n := testing.AllocsPerRun(1000, func() {
		d.now = d.now.Add(time.Millisecond)
		in.started, in.ended = d.now, d.now
		if out := d.c.step(d.now, in); out != nil {
			t.Fatalf("it does %+v", out)
		}
		d.c.deadline()
	}); n != 0 {
		t.Errorf("an unchanged poll makes %v allocations", n)
	}
}

// View is made anew only after a change.
func TestViewIsKept(t *testing.T) {
	d := drive(t, Config{})
	d.applies(file("10-a.conflist", list("a")))
	first := d.c.show(d.now)
	d.step(&scanned{ended: d.now.Add(time.Second), filesystem: "simfs"})
	second := d.c.show(d.now.Add(2 * time.Second))
	if &first.Networks[0] != &second.Networks[0] {
		t.Error("it is made anew")
	}
	if second.LastScan.Equal(first.LastScan) || second.GoodScanAge != 1 {
		t.Errorf("its times stay: %v, %v", second.LastScan, second.GoodScanAge)
	}
}

// CN10: the pauses are those of the contract, for ever.
func TestDelays(t *testing.T) {
	var d state.Delays
	random := rand.New(rand.NewPCG(1, 0))
	for i := range 1000 {
		want := min(maxDelay, firstDelay<<min(i, 10))
		if got := d.Next(random, firstDelay, maxDelay); got < want*8/10 || got > min(maxDelay, want*12/10) {
			t.Fatalf("pause %d is %v, want about %v", i, got, want)
		}
	}
	d.Reset()
	if got := d.Next(random, firstDelay, maxDelay); got > firstDelay*12/10 {
		t.Errorf("after reset it is %v", got)
	}
}

// Results that nobody waits for any more change nothing.
func TestLateResults(t *testing.T) {
	d := drive(t, Config{})
	for _, in := range []input{built{id: 7}, found{round: 3, missing: []Missing{{Type: "x"}}}, told{round: 3, err: errors.New("x")}, tick{}, retryAsked{}, checkAsked{}} {
		d.step(in)
		d.is(Loading)
	}
	d.applies(file("10-a.conflist", list("a")))
	for _, in := range []input{built{id: 7}, found{round: 99, missing: []Missing{{Type: "x"}}}, told{round: 99, err: errors.New("x")}, tick{}} {
		d.step(in)
		d.is(Ready)
	}
	d.step(stopping{})
	for _, in := range []input{&scanned{ended: d.now}, tick{}, retryAsked{}, stopping{}} {
		if out := d.c.step(d.now, in); out != nil {
			t.Errorf("after the end %T does %+v", in, out)
		}
	}
	if !d.c.deadline().IsZero() {
		t.Error("after the end there is a deadline")
	}
}

// C1: what cannot work is refused, each field by name.
func TestConfigCheck(t *testing.T) {
	for _, test := range []struct {
		field string
		cfg   Config
	}{
		{"Name", Config{Name: "a\nb"}},
		{"Name", Config{Name: "\xff"}},
		{"Name", Config{Name: strings.Repeat("x", 300)}},
		{"BinDirs[1]", Config{BinDirs: []string{"/bin", ""}}},
		{"InterfacePrefix", Config{InterfacePrefix: "a b"}},
		{"InterfacePrefix", Config{InterfacePrefix: "thirteenbytes"}},
		{"MinNetworks", Config{MinNetworks: -1}},
		{"MinNetworks", Config{MinNetworks: 2}},
		{"MinNetworks", Config{MinNetworks: 3, MaxConfNum: 2}},
		{"Interval", Config{Interval: -1}},
	} {
		err := test.cfg.Check()
		if err == nil || !strings.HasPrefix(err.Error(), "cni: Config."+test.field+" is ") || scanner.Clean(err.Error(), 4096) != err.Error() {
			t.Errorf("%s: %v", test.field, err)
		}
		if s, newErr := New(test.cfg); s != nil || newErr == nil || newErr.Error() != err.Error() {
			t.Errorf("%s: New returns %v", test.field, newErr)
		}
	}
	if err := (Config{Interval: -1, MinNetworks: -1}).Check(); strings.Count(err.Error(), "cni: ") != 2 {
		t.Errorf("not every error is there: %v", err)
	}
	for _, cfg := range []Config{{}, {MinNetworks: 3, MaxConfNum: -1}, {Grace: -1, StatusInterval: -1, StatusTimeout: -1}, {MinNetworks: 2, MaxConfNum: 2}} {
		if err := cfg.Check(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// CN14, CN16: the zero value is the operating system's default network.
func TestDefaults(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	v := s.View()
	if v.ConfDir != DefaultConfDir || len(v.BinDirs) != 1 || v.BinDirs[0].Path != DefaultBinDir || !filepath.IsAbs(v.ConfDir) || v.State != Loading || v.Name != "" {
		t.Errorf("the View is %+v", v)
	}
	if s.CNI() != nil || s.LastStatus() == nil {
		t.Error("before Run it is ready")
	}
	for dir, want := range map[string]string{"/": "/", "/a//": "/a", "a/": "a"} {
		if got := (Config{ConfDir: dir}).withDefaults().ConfDir; filepath.ToSlash(got) != want {
			t.Errorf("%q becomes %q", dir, got)
		}
	}
}
