//go:build linux

package scanner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// faulty is a directory of the tests' machine, shown through FUSE by a server that fails as it is told. The server is a process of its own: one in the test's
// process could not be ended while a call of that process hangs in it.
type faulty struct {
	t      testing.TB
	top    string // holds nothing but dir, on the machine's own filesystem
	dir    string // the mount
	back   string // the same files, without FUSE
	cmd    *exec.Cmd
	orders *os.File
	said   *bufio.Reader
	reply  *os.File
}

// newFaulty mounts an empty directory.
func newFaulty(t testing.TB) *faulty {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		lacking(t, err.Error())
	}
	base := mountable(t)
	f := &faulty{t: t, top: filepath.Join(base, "top"), dir: filepath.Join(base, "top", "dir"), back: filepath.Join(base, "back")}
	for _, dir := range []string{f.dir, f.back} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(f.kill)
	f.serve()
	return f
}

// serve starts a server, and returns when the directory is mounted.
func (f *faulty) serve() {
	f.t.Helper()
	ordersIn, ordersOut, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	replyIn, replyOut, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	f.orders, f.reply, f.said = ordersOut, replyIn, bufio.NewReader(replyIn)
	f.cmd = exec.Command(os.Args[0], "-test.run=^TestFaultyServer$", "-test.timeout=0")
	f.cmd.Env = append(os.Environ(), "PLUGPOLL_FAULTY_DIR="+f.dir, "PLUGPOLL_FAULTY_BACK="+f.back)
	f.cmd.Stdin, f.cmd.Stderr, f.cmd.ExtraFiles = ordersIn, os.Stderr, []*os.File{replyOut}
	err = f.cmd.Start()
	_, _ = ordersIn.Close(), replyOut.Close()
	if err != nil {
		f.t.Fatal(err)
	}
	if answer := f.answer(); answer != "mounted" {
		lacking(f.t, "no FUSE: "+answer)
	}
}

// tell gives the server an order (see server.order) and returns its answer.
func (f *faulty) tell(order string) string {
	f.t.Helper()
	if _, err := fmt.Fprintln(f.orders, order); err != nil {
		f.t.Fatal(err)
	}
	answer := f.answer()
	if strings.HasPrefix(answer, "bad order") {
		f.t.Fatal(answer)
	}
	return answer
}

func (f *faulty) answer() string {
	f.t.Helper()
	_ = f.reply.SetReadDeadline(time.Now().Add(30 * time.Second))
	answer, err := f.said.ReadString('\n')
	if err != nil {
		f.kill()
		f.t.Fatal("the FUSE server does not answer: ", err)
	}
	return strings.TrimSpace(answer)
}

// kill ends the server as a crash does. Calls that hang in it fail.
func (f *faulty) kill() {
	if f.cmd == nil || f.cmd.Process == nil {
		return
	}
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait() // it was killed
	_, _ = f.orders.Close(), f.reply.Close()
	f.cmd = nil
}

// detach takes the mount away at once, whoever uses it.
func (f *faulty) detach() {
	f.t.Helper()
	if err := unix.Unmount(f.dir, unix.MNT_DETACH); err != nil {
		f.t.Fatal(os.NewSyscallError("umount", err))
	}
}

// TestFaultyServer is no test but the server of faulty. It ends with its standard input, so with the process that started it.
func TestFaultyServer(t *testing.T) {
	dir := os.Getenv("PLUGPOLL_FAULTY_DIR")
	if dir == "" {
		return
	}
	reply := os.NewFile(3, "reply")
	if err := serveFaults(os.Getenv("PLUGPOLL_FAULTY_BACK"), dir, os.Stdin, reply); err != nil {
		_, _ = fmt.Fprintln(reply, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveFaults(back, dir string, orders, reply *os.File) error {
	root, err := fs.NewLoopbackRoot(back)
	if err != nil {
		return err
	}
	s := &faultyServer{}
	never := time.Duration(0) // is how long the kernel may remember an answer
	_, err = fs.Mount(dir, &faultyNode{root.(*fs.LoopbackNode), s}, &fs.Options{
		EntryTimeout: &never, AttrTimeout: &never, NegativeTimeout: &never,
		// A listing that looks at each of its names as well would hang with any of them.
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: back, Name: "plugpoll", DisableReadDirPlus: os.Getenv("PLUGPOLL_FAULTY_PLAIN") != ""},
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(reply, "mounted")
	for in := bufio.NewScanner(orders); in.Scan(); {
		answer, err := s.order(strings.Fields(in.Text()))
		if err != nil {
			answer = fmt.Sprintf("bad order %q: %v", in.Text(), err)
		}
		_, _ = fmt.Fprintln(reply, answer)
	}
	return nil
}

// faultyServer holds the faults.
type faultyServer struct {
	mu     sync.Mutex
	faults []fault
	hung   int
}

// fault is what becomes of one kind of call of one path.
type fault struct {
	op, path string
	after    int // how many names a listing still has
	errno    syscall.Errno
	release  chan struct{} // not nil: it hangs until this is closed, and then goes on well
}

// order: what the server is told.
//
//	opendir PATH ERRNO|hang     the directory does not open; "." is the root
//	list PATH N ERRNO|end       its listing fails, or just ends, after N names
//	lookup PATH ERRNO|hang      looking at PATH fails, whether by its name or by the kernel's handle
//	statfs . hang               the filesystem does not say which one it is
//	hung                        answers how many calls hang
//	clear                       all is well again, and what hangs goes on
func (s *faultyServer) order(words []string) (answer string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(words) == 1 && words[0] == "hung":
		return strconv.Itoa(s.hung), nil
	case len(words) == 1 && words[0] == "clear":
		for _, f := range s.faults {
			if f.release != nil {
				close(f.release)
			}
		}
		s.faults = nil
		return "ok", nil
	case len(words) < 3:
		return "", errors.New("too short")
	}
	f := fault{op: words[0], path: words[1]}
	if f.op == "list" {
		if f.after, err = strconv.Atoi(words[2]); err != nil {
			return "", err
		}
	}
	switch last := words[len(words)-1]; last {
	case "hang":
		f.release = make(chan struct{})
	case "end":
	default:
		for f.errno = 1; unix.ErrnoName(f.errno) != last; f.errno++ {
			if f.errno > 200 {
				return "", errors.New("no such errno")
			}
		}
	}
	s.faults = append(s.faults, f)
	return "ok", nil
}

func (s *faultyServer) find(op, path string) (fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.op == op && f.path == path {
			return f, true
		}
	}
	return fault{}, false
}

// meet lets a call meet its fault. A call that hangs heeds no interruption: neither does a server that is stuck.
func (s *faultyServer) meet(op, path string) syscall.Errno {
	f, _ := s.find(op, path)
	if f.release != nil {
		s.count(1)
		<-f.release
		s.count(-1)
	}
	return f.errno
}

func (s *faultyServer) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung += n
}

type faultyNode struct {
	*fs.LoopbackNode
	server *faultyServer
}

var (
	_ fs.NodeWrapChilder    = (*faultyNode)(nil)
	_ fs.NodeLookuper       = (*faultyNode)(nil)
	_ fs.NodeGetattrer      = (*faultyNode)(nil)
	_ fs.NodeOpendirHandler = (*faultyNode)(nil)
	_ fs.NodeStatfser       = (*faultyNode)(nil)
)

func (n *faultyNode) path() string { return filepath.Join(".", n.Path(n.Root())) }

func (n *faultyNode) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &faultyNode{ops.(*fs.LoopbackNode), n.server}
}

func (n *faultyNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if errno := n.server.meet("lookup", filepath.Join(n.path(), name)); errno != 0 {
		return nil, errno
	}
	return n.LoopbackNode.Lookup(ctx, name, out)
}

func (n *faultyNode) Getattr(ctx context.Context, h fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if errno := n.server.meet("lookup", n.path()); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Getattr(ctx, h, out)
}

func (n *faultyNode) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	if errno := n.server.meet("statfs", "."); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Statfs(ctx, out)
}

func (n *faultyNode) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.server.meet("opendir", n.path()); errno != 0 {
		return nil, 0, errno
	}
	h, flags, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if f, ok := n.server.find("list", n.path()); ok && errno == 0 {
		return &cutListing{h.(listing), f.after, f.errno}, flags, 0
	}
	return h, flags, errno
}

type listing interface {
	fs.FileReaddirenter
	fs.FileReleasedirer
}

// cutListing ends, well or not, before its directory does.
type cutListing struct {
	listing
	left  int
	errno syscall.Errno
}

func (l *cutListing) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	e, errno := l.listing.Readdirent(ctx)
	if e == nil || errno != 0 || e.Name == "." || e.Name == ".." {
		return e, errno
	}
	if l.left == 0 {
		return nil, l.errno
	}
	l.left--
	return e, 0
}
