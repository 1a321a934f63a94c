//go:build linux

package scanner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestProbe measures how a filesystem looks to plugpoll, prints it as a line of a table, and checks that plugpoll does there what it must. `make test-real`
// runs it on each filesystem that it can make, also inside gVisor and User Mode Linux. It is told by the environment:
//
//	PLUGPOLL_PROBE        the filesystem's name, a key of probed
//	PLUGPOLL_PROBE_DIR    an empty directory on it
//	PLUGPOLL_PROBE_BACK   the same directory on its other side, reached by another mount or none. Empty: there is a TestProbePeer on the other side
//	PLUGPOLL_PROBE_BREAK, PLUGPOLL_PROBE_MEND    shell commands that take the filesystem's server away and bring it back. Empty: not measured
func TestProbe(t *testing.T) {
	name := os.Getenv("PLUGPOLL_PROBE")
	if name == "" {
		t.Skip("make test-real runs it")
	}
	want, ok := probed[name]
	if !ok {
		t.Fatalf("nothing is known of %q", name)
	}
	p := &probe{t: t, dir: os.Getenv("PLUGPOLL_PROBE_DIR"), back: os.Getenv("PLUGPOLL_PROBE_BACK"), want: want}
	p.run()
	fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", name, p.discover, p.connect, p.granularity, p.skipping, strings.Join(p.limits, "; "))
}

// expected is what plugpoll must do on a filesystem.
type expected struct {
	// cannotBind: a plugin on this side can make no socket.
	cannotBind bool
	// otherSeen: what changes on the other side is seen, within so long. 0: never, which is a limit to document.
	otherSeen time.Duration
	// otherConnects: a socket that was bound on the other side can be connected to. If not it refuses, which is a normal state, tried again quietly.
	otherConnects bool
	// equal: a re-bind within a second may look as if nothing had happened.
	equal bool
	// skips: unchanged directories are not read.
	skips bool
}

var probed = map[string]expected{
	"tmpfs":                 {otherSeen: time.Second, otherConnects: true, skips: true},
	"ext4":                  {otherSeen: time.Second, otherConnects: true, skips: true},
	"ext2, 128-byte inodes": {otherSeen: 3 * time.Second, otherConnects: true, equal: true, skips: true},
	"bindfs":                {otherSeen: 3 * time.Second},
	"sshfs":                 {cannotBind: true, otherSeen: 3 * time.Second},
	"sshfs, default caches": {cannotBind: true, otherSeen: 40 * time.Second},
	"gVisor, shared":        {otherSeen: 5 * time.Second, otherConnects: true},
	"gVisor, exclusive":     {},
	"NFS 4.2":               {otherSeen: 70 * time.Second, equal: true},
	"NFS 4.2, actimeo=1":    {otherSeen: 5 * time.Second, equal: true},
	"9p":                    {otherSeen: 3 * time.Second, equal: true},
	"vfat":                  {cannotBind: true, skips: true},
}

type probe struct {
	t         testing.TB
	dir, back string
	want      expected
	s         *Scanner
	last      *Snapshot
	lastErr   error

	discover, connect, granularity, skipping string
	limits                                   []string
}

func (p *probe) at(name string) string { return filepath.Join(p.dir, "root", name) }

func (p *probe) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *probe) run() {
	p.must(os.Mkdir(p.at(""), 0o755))
	p.s = newScanner(p.t, Config{Root: p.at("")})
	p.last = scanOK(p.t, p.s, nil)
	p.granularity = p.stamps()
	if p.ownSide() {
		p.rebind()
	}
	p.otherSide()
	p.replaced()
	p.skip()
	p.broken()
}

// until scans as a daemon does, and returns how long it took until something was so. Zero: it never was.
func (p *probe) until(most time.Duration, so func() bool) time.Duration {
	began := time.Now()
	for time.Since(began) < most {
		p.last, p.lastErr = p.s.Scan(p.t.Context(), p.last)
		if so() {
			return max(time.Since(began), time.Microsecond)
		}
		wait(20 * time.Millisecond)
	}
	return 0
}

func (p *probe) seen(name string) func() bool {
	return func() bool { _, ok := p.last.At(p.at(name)); return ok }
}

func (p *probe) unseen(name string) func() bool {
	return func() bool { return !p.seen(name)() }
}

func (p *probe) ownSide() bool {
	l, err := net.Listen("unix", p.at("own"))
	if err != nil {
		if !p.want.cannotBind {
			p.t.Errorf("no socket can be made: %v", err)
		}
		p.discover, p.connect = "here: no socket can be made", "bound here: cannot be"
		p.limit("bind: %v", bareErrno(err))
		return false
	}
	if p.want.cannotBind {
		p.t.Error("a socket could be made")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	found := p.until(10*time.Second, p.seen("own"))
	if found == 0 {
		p.t.Fatalf("a socket was not found: %v", p.lastErr)
	}
	e, _ := p.last.At(p.at("own"))
	if e.Maybe {
		p.limit("a socket's type cannot be told")
	}
	err = dial(p.at("own"))
	if err != nil {
		p.t.Errorf("a socket that was bound here does not connect: %v", err)
	}
	p.connect = "bound here: " + outcome(err)
	p.must(l.Close())
	p.must(os.Remove(p.at("own")))
	gone := p.until(10*time.Second, p.unseen("own"))
	if gone == 0 {
		p.t.Errorf("the removal was not seen: %v", p.lastErr)
	}
	p.discover = fmt.Sprintf("here: bound %s, removed %s", short(found), short(gone))
	return true
}

func (p *probe) otherSide() {
	most := p.want.otherSeen
	if most == 0 {
		most = 20 * time.Second
	}
	if err := p.other("bind"); err != nil {
		if !p.want.cannotBind {
			p.t.Error(err)
		}
		p.discover += ", nor on the other side"
		return
	}
	found := p.until(most, p.seen("other"))
	if (found != 0) != (p.want.otherSeen != 0) {
		p.t.Errorf("a socket bound on the other side was found after %v (0: not within %v); the last scan: %v", found, most, p.lastErr)
	}
	if found == 0 {
		p.discover += fmt.Sprintf("; other side: not within %s", short(most))
		p.must(p.other("remove"))
		return
	}
	err := dial(p.at("other"))
	if connects := err == nil; connects != p.want.otherConnects || err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
		p.t.Errorf("connecting to the other side's socket: %v", err)
	}
	p.connect += ", on the other side: " + outcome(err)
	p.must(p.other("remove"))
	gone := p.until(most, p.unseen("other"))
	p.discover += fmt.Sprintf("; other side: bound %s", short(found))
	if gone != 0 {
		p.discover += ", removed " + short(gone)
		return
	}
	e, _ := p.last.At(p.at("other"))
	if e.Stale == nil {
		p.t.Errorf("a removal on the other side was not seen within %v", most)
	} else {
		p.limit("removed on the other side: stale after %s (%v)", short(most), e.Stale.Err)
	}
}

// replaced has the scanned directory removed and made again on the other side, with another socket in it: what was known is gone, what is new is found (D7).
func (p *probe) replaced() {
	if p.back == "" || p.want.cannotBind && p.want.otherSeen == 0 {
		return
	}
	root := filepath.Join(p.back, "root")
	p.must(bindAt(filepath.Join(root, "old")))
	if p.until(p.want.otherSeen, p.seen("old")) == 0 {
		p.t.Errorf("not found: %v", p.lastErr)
	}
	p.must(errors.Join(os.RemoveAll(root), os.Mkdir(root, 0o755), bindAt(filepath.Join(root, "new"))))
	errs := map[string]bool{}
	took := p.until(p.want.otherSeen+15*time.Second, func() bool {
		if p.lastErr != nil {
			errs[bareErrno(p.lastErr).Error()] = true
		}
		return p.lastErr == nil && p.seen("new")() && p.unseen("old")()
	})
	if took == 0 {
		p.t.Errorf("D7: a directory was replaced: %q, %v", paths(p.last), p.lastErr)
	}
	text := "directory replaced on the other side: " + short(took)
	for err := range errs {
		text += ", meanwhile " + err
	}
	p.limit("%s", text)
	p.must(os.Remove(filepath.Join(root, "new")))
}

// rebind tells whether a socket that is removed and bound again at once looks like another one.
func (p *probe) rebind() {
	path, looks := p.at("again"), map[string]int{}
	for range 5 {
		p.must(bindAt(path))
		if p.until(10*time.Second, p.seen("again")) == 0 {
			p.t.Fatal("not found")
		}
		before := p.last
		p.must(os.Remove(path))
		p.must(bindAt(path))
		if p.until(time.Second, func() bool { return len(Diff(before, p.last)) > 0 }) == 0 {
			looks["equal"]++
		} else {
			looks["replaced"]++
		}
		p.must(os.Remove(path))
		p.until(10*time.Second, p.unseen("again"))
	}
	if looks["equal"] > 0 {
		p.limit("%d of 5 re-binds look as before: only the connection tells", looks["equal"])
		if !p.want.equal {
			p.t.Errorf("re-binds: %v", looks)
		}
	}
}

// stamps finds out how fine the stamps are.
func (p *probe) stamps() string {
	least, whole := time.Duration(0), true
	var before time.Time
	for range 400 {
		name := filepath.Join(p.dir, "stamp")
		p.must(os.WriteFile(name, nil, 0o644))
		info, err := os.Lstat(name)
		p.must(err)
		whole = whole && info.ModTime().Nanosecond() == 0
		if d := info.ModTime().Sub(before); !before.IsZero() && d > 0 && (least == 0 || d < least) {
			least = d
		}
		before = info.ModTime()
		p.must(os.Remove(name))
		wait(100 * time.Microsecond)
	}
	switch {
	case whole:
		return "whole seconds"
	case least == 0:
		return "coarser than the test took"
	}
	return "steps of " + short(least)
}

// skip tells whether an unchanged directory is skipped once it has settled.
func (p *probe) skip() {
	p.until(3*time.Second, func() bool { return p.skips() })
	p.skipping = map[bool]string{true: "yes", false: "no: read at every poll"}[p.skips()]
	if p.skips() != p.want.skips {
		p.t.Errorf("unchanged directories are skipped: %v", p.skips())
	}
}

func (p *probe) skips() bool {
	return len(p.s.memory.dirs) > 0 && p.s.memory.dirs[0].settling.settled
}

// broken takes the server away: what was known stays, and all is well when it is back.
func (p *probe) broken() {
	takeAway, bringBack := os.Getenv("PLUGPOLL_PROBE_BREAK"), os.Getenv("PLUGPOLL_PROBE_MEND")
	if takeAway == "" {
		return
	}
	p.must(bindAt(p.at("known")))
	p.until(10*time.Second, p.seen("known"))
	p.shell(takeAway)
	took := p.until(60*time.Second, func() bool { return p.lastErr != nil })
	if e, ok := p.last.At(p.at("known")); !ok || took == 0 || e.Stale == nil {
		p.t.Errorf("U1: without its server: %v, %v", e, p.lastErr)
	} else {
		p.limit("server gone: stale after %s (%v)", short(took), bareErrno(p.lastErr))
	}
	p.shell(bringBack)
	took = p.until(90*time.Second, func() bool {
		e, ok := p.last.At(p.at("known"))
		return ok && e.Stale == nil && p.lastErr == nil
	})
	if took == 0 {
		p.t.Errorf("it did not heal: %v", p.lastErr)
	} else {
		p.limits[len(p.limits)-1] += ", healed in " + short(took)
	}
}

func (p *probe) shell(command string) {
	p.t.Helper()
	if out, err := exec.CommandContext(p.t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		p.t.Errorf("%s: %v: %s", command, err, out)
	}
}

// other has something done on the other side.
func (p *probe) other(what string) error {
	p.t.Helper()
	if p.back != "" {
		return act(p.t, filepath.Join(p.back, "root"), what)
	}
	ask := filepath.Join(p.dir, "ask-"+what)
	p.must(os.WriteFile(ask, nil, 0o644))
	for deadline := time.Now().Add(20 * time.Second); ; wait(5 * time.Millisecond) {
		if _, err := os.Lstat(ask + "-done"); err == nil {
			return nil
		}
		// Where what is done on the other side is never seen, nor is this.
		if p.want.otherSeen == 0 && time.Until(deadline) < 15*time.Second {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the other side does not answer")
		}
	}
}

// TestProbePeer is the other side of a TestProbe that runs where it can reach only one. It ends when it has removed what it bound.
func TestProbePeer(t *testing.T) {
	dir := os.Getenv("PLUGPOLL_PEER")
	if dir == "" {
		t.Skip("make test-real runs it")
	}
	deadline := time.Now().Add(2 * time.Minute)
	for _, what := range []string{"bind", "remove"} {
		ask := filepath.Join(dir, "ask-"+what)
		for ; ; wait(time.Millisecond) {
			if _, err := os.Lstat(ask); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("nobody asks to " + what)
			}
		}
		err := act(t, filepath.Join(dir, "root"), what)
		if err == nil {
			err = os.WriteFile(ask+"-done", nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// act binds or removes the socket "other".
func act(t testing.TB, root, what string) error {
	path := filepath.Join(root, "other")
	if what == "remove" {
		return os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		t.Cleanup(func() { _ = l.Close() })
	}
	return err
}

func dial(path string) error {
	c, err := net.DialTimeout("unix", path, 5*time.Second)
	if err == nil {
		err = c.Close()
	}
	return err
}

func (p *probe) limit(format string, args ...any) {
	p.limits = append(p.limits, fmt.Sprintf(format, args...))
}

func outcome(err error) string {
	if err == nil {
		return "connects"
	}
	return bareErrno(err).Error()
}

// bareErrno is the errno alone, which names no path.
func bareErrno(err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return err
}

func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}
