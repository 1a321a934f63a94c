package register

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// socketDir is a fresh directory with a short path.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "r") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// listenAt binds a socket at a path of any length, through a handle of its directory. The socket stays when the listener is closed.
func listenAt(t testing.TB, path string) net.Listener {
	t.Helper()
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(dir) }()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", fmt.Sprintf("/proc/self/fd/%d/.bound", dir))
	if err == nil {
		err = os.Rename(filepath.Join(filepath.Dir(path), ".bound"), path) // the name may be longer than an address
	}
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// seen is what a scanner finds at path.
func seen(t testing.TB, path string) scanner.Entry {
	t.Helper()
	s, err := scanner.New(scanner.Config{Root: filepath.Dir(path)})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.Scan(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := snapshot.At(path)
	if !ok {
		t.Fatalf("nothing was seen at %s", scanner.Quote(path))
	}
	return e
}

// reaches checks that a dial of e ends at l.
func reaches(t testing.TB, e scanner.Entry, l net.Listener) {
	t.Helper()
	before := openFiles(t)
	conn, err := dialUnix(t.Context(), e)
	if err != nil {
		t.Errorf("%.40s… (%d bytes): %v", scanner.Quote(e.Path), len(e.Path), err)
		return
	}
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("x"))
	if n, err := there.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	_, _ = there.Close(), conn.Close()
	if after := openFiles(t); after != before {
		t.Errorf("S3: %d descriptors were open before the dial and %d are after", before, after)
	}
}

// openFiles counts the process's open descriptors.
func openFiles(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// R15: a path may be of any length.
func TestDialAnyLength(t *testing.T) {
	for _, length := range []int{90, 106, 107, 108, 109, 200, 255, 500, 1000} {
		dir := socketDir(t)
		for length-len(dir) > 100 {
			dir = filepath.Join(dir, strings.Repeat("d", 80))
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, strings.Repeat("s", length-len(dir)-1))
		l := listenAt(t, path)
		reaches(t, seen(t, path), l)
	}
}

// R15, D10: a name may be any.
func TestDialAnyName(t *testing.T) {
	dir := socketDir(t)
	for _, name := range []string{"a\nb", " ", "@a", "\xff\xfe", strings.Repeat("n", 255), "a%41", "~"} {
		path := filepath.Join(dir, name)
		l := listenAt(t, path)
		reaches(t, seen(t, path), l)
	}
	t.Chdir(dir)
	l := listenAt(t, filepath.Join(dir, "@rel"))
	reaches(t, scanner.Entry{Path: "@rel"}, l)
}

// R15, D5: what was scanned as a link is followed, and its target compared.
func TestDialLink(t *testing.T) {
	dir, elsewhere := socketDir(t), socketDir(t)
	target, link := filepath.Join(elsewhere, strings.Repeat("t", 150)), filepath.Join(dir, "link.sock")
	l := listenAt(t, target)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	e := seen(t, link)
	reaches(t, e, l)
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	stale(t, "without its target", e)
	replace(t, target)
	stale(t, "with another target", e)
}

// replace binds another socket at path, with another inode.
func replace(t testing.TB, path string) net.Listener {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".next")
	l := listenAt(t, next)
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	return l
}

func stale(t testing.TB, what string, e scanner.Entry) {
	t.Helper()
	conn, err := dialUnix(t.Context(), e)
	if conn != nil {
		_ = conn.Close()
	}
	if failureOf(err) != state.Stale {
		t.Errorf("%s: %v", what, err)
	}
	if err != nil && strings.Contains(err.Error(), filepath.Dir(e.Path)) {
		t.Errorf("the path is in %q", err)
	}
}

// R15: what is not the socket that was scanned is not dialled.
func TestDialReplaced(t *testing.T) {
	path := filepath.Join(socketDir(t), "a.sock")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l := listenAt(t, path)
	e := seen(t, path)
	must(os.Chmod(path, 0o600)) // stamps are not compared (I6)
	reaches(t, e, l)
	replace(t, path)
	stale(t, "replaced", e)
	must(os.Remove(path))
	stale(t, "removed", e)
	must(os.WriteFile(path, nil, 0o600))
	stale(t, "a file in its place", e)
	must(os.Remove(path))
	must(syscall.Mkfifo(path, 0o600))
	stale(t, "a FIFO in its place", e) // does not hang either
	must(os.Remove(path))
	must(os.Mkdir(path, 0o755))
	stale(t, "a directory in its place", e)
	must(os.Remove(path))
	other := filepath.Join(filepath.Dir(path), "other.sock")
	must(os.Symlink(other, path))
	listenAt(t, other)
	stale(t, "a link in its place", e)
	must(os.Remove(path))
	must(os.Mkdir(path, 0o755))
	e.Path = filepath.Join(path, "a.sock")
	must(os.Remove(path))
	must(os.WriteFile(path, nil, 0o600))
	stale(t, "its directory replaced", e)
}

// R15: what the scan could not tell is not compared.
func TestDialLittleKnown(t *testing.T) {
	path := filepath.Join(socketDir(t), "a.sock")
	l := listenAt(t, path)
	inode := seen(t, path).ID.Inode
	for name, e := range map[string]scanner.Entry{
		"nothing":    {},
		"maybe":      {Maybe: true},
		"irregular":  {Maybe: true, ID: scanner.Identity{Stamp: scanner.Stamp{Type: fs.ModeIrregular}}},
		"inode only": {ID: scanner.Identity{Stamp: scanner.Stamp{Type: fs.ModeSocket, Inode: inode}}},
		"type only":  {ID: scanner.Identity{Stamp: scanner.Stamp{Type: fs.ModeSocket, ModTime: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			e.Path = path
			reaches(t, e, l)
			link := e
			link.Path = filepath.Join(filepath.Dir(path), "link")
			link.Maybe = true
			_ = os.Symlink(path, link.Path)
			reaches(t, link, l)
		})
	}
	// D2, R13: what turns out to be no socket is none.
	file := filepath.Join(filepath.Dir(path), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dialUnix(t.Context(), scanner.Entry{Path: file, Maybe: true}); failureOf(err) != state.Unsupported {
		t.Errorf("a file: %v", err)
	}
}

// R15: without /proc a path has the limit of an address, and says so.
func TestDialWithoutProc(t *testing.T) {
	if os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		t.Skip("nothing can be mounted in the user namespace of noinotify.sh")
	}
	dir := socketDir(t)
	short, long := filepath.Join(dir, "a.sock"), filepath.Join(dir, strings.Repeat("l", 120))
	listenAt(t, short)
	listenAt(t, long)
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", `mount -t tmpfs plugpoll /proc && exec "$0" -test.run '^TestDialWithoutProcChild$'`, os.Args[0])
	cmd.Env = append(os.Environ(), "PLUGPOLL_SHORT="+short, "PLUGPOLL_LONG="+long)
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "dialled\n") {
		lacking(t, fmt.Sprintf("no mount namespace: %v: %s", err, out))
	}
	if want := "path too long for a socket address (" + strconv.Itoa(len(long)) + " > 107 bytes): use a shorter directory\n"; !strings.Contains(string(out), want) {
		t.Errorf("the child says %s", out)
	}
}

// TestDialWithoutProcChild is no test but the child of TestDialWithoutProc.
func TestDialWithoutProcChild(t *testing.T) {
	if os.Getenv("PLUGPOLL_SHORT") == "" {
		return
	}
	conn, err := dialUnix(t.Context(), scanner.Entry{Path: os.Getenv("PLUGPOLL_SHORT")})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	fmt.Println("dialled")
	_, err = dialUnix(t.Context(), scanner.Entry{Path: os.Getenv("PLUGPOLL_LONG")})
	fmt.Println(err)
	if failureOf(err) != state.Permanent {
		t.Errorf("%v", err)
	}
	if errors.Is(err, errStale) {
		t.Error("stale")
	}
}

// R15: a registered plugin at a path that no address can hold.
func TestRealLongPath(t *testing.T) {
	n := newRealNode(t)
	dir := filepath.Join(n.dir, strings.Repeat("d", 200), strings.Repeat("e", 200))
	n.must(os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, "a.sock")
	p := serveOn(t, listenAt(t, path), "a")
	n.acknowledged(p)
	n.awaitRegistered(path)
}

// R15: the numbers of an overlay are the same to a handle as to a scan, before and after it copies the socket up.
func TestDialOverlay(t *testing.T) {
	dir, _ := mounted(t, "mount -t tmpfs -o mode=755 plugpoll back; mkdir back/upper back/work;"+
		"mkdir lower; mount -t tmpfs -o mode=755 plugpoll lower; touch lower/file;"+
		"mount -t overlay -o lowerdir=lower,upperdir=back/upper,workdir=back/work plugpoll dir")
	path := filepath.Join(dir, "a.sock")
	l := listenAt(t, path)
	e := seen(t, path)
	if e.ID.Device == 0 || e.ID.Inode == 0 {
		t.Errorf("the scan tells %+v", e.ID)
	}
	reaches(t, e, l)
	replace(t, path)
	stale(t, "replaced", e)
	// A socket of the lower side that nobody listens on is refused, and not stale.
	lower := filepath.Join(filepath.Dir(dir), "lower", "b.sock")
	_ = listenAt(t, lower).Close()
	e = seen(t, filepath.Join(dir, "b.sock"))
	for range 2 {
		if _, err := dialUnix(t.Context(), e); failureOf(err) != state.Refused {
			t.Errorf("a dead socket: %v", err)
		}
		if err := os.Chmod(e.Path, 0o600); err != nil { // copies it up
			t.Fatal(err)
		}
	}
}

// R15: a socket that is replaced between the scan and the dial is looked at again, and the new one is registered without a word about the old one.
func TestRealReplacedBeforeDial(t *testing.T) {
	dir := socketDir(t)
	path := filepath.Join(dir, "a.sock")
	listenAt(t, path)
	var second *realPlugin
	h, log := newTaker(), &output{}
	m, err := NewManager(Config{
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: log, DisableTime: true}),
		Roots:  []scanner.Config{{Root: dir, Interval: time.Hour}},
		Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
			if second == nil {
				second = serveOn(t, replace(t, path), "a")
			}
			return dialUnix(ctx, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.AddHandler(testType, h); err != nil {
		t.Fatal(err)
	}
	n := &realNode{T: t, dir: dir, m: m, h: h}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	n.awaitRegistered(path)
	cancel()
	n.must(<-ended)
	n.acknowledged(second)
	n.calls("Validate a", "Register a")
	if lines := log.lines("[WARN]"); len(lines) != 0 {
		t.Errorf("warned %q", lines)
	}
}
