package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// scene makes one cause happen on a real daemon's inside, and says what to ask for.
type scene struct {
	cause cause
	// says is what the paragraph must match: what was seen, what failed, what to do.
	says []string
	play func(t *testing.T) (n *inside, asked string)
}

// handlerFunc is record.Handler but for one call.
type handlerFunc struct {
	record.Handler
	validate func(context.Context, state.Registration) error
	register func(context.Context, state.Registration, func(state.Report)) error
}

func (h handlerFunc) Validate(ctx context.Context, r state.Registration) error {
	if h.validate != nil {
		return h.validate(ctx, r)
	}
	return h.Handler.Validate(ctx, r)
}

func (h handlerFunc) Register(ctx context.Context, r state.Registration, report func(state.Report)) error {
	if h.register != nil {
		return h.register(ctx, r, report)
	}
	return h.Handler.Register(ctx, r, report)
}

func csiWith(h handlerFunc) map[string]register.Handler {
	return map[string]register.Handler{registerapi.CSIPlugin: h}
}

// settled plays a plugin and waits for its phase.
func settled(cfg register.Config, handlers map[string]register.Handler, o pluginOptions, want state.Phase) func(*testing.T) (*inside, string) {
	return func(t *testing.T) (*inside, string) {
		n := newInside(t, cfg, handlers)
		path, _ := n.plugin("a.sock", o)
		n.phase(path, want)
		return n, path
	}
}

// onDisk plays a directory in which something other than a socket is made.
func onDisk(file string, make func(path string) error) func(*testing.T) (*inside, string) {
	return func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		path := filepath.Join(n.dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), make(path)); err != nil {
			t.Fatal(err)
		}
		before := n.manager.View().Roots[0].LastGoodScan
		until(t, "another two scans", func() bool { return n.manager.View().Roots[0].LastGoodScan.After(before.Add(100 * time.Millisecond)) })
		return n, path
	}
}

func bindDead(path string) error {
	b, err := bind(context.Background(), path) //nolint:usetesting // no test is at hand
	if err != nil {
		return err
	}
	return b.Close()
}

var scenes = []scene{
	{
		cause: isRegistered, says: []string{`is a socket in .*CSIPlugin demo.example.com, version 1.0.0`, `registered for`, `Nothing is to be done`},
		play: settled(register.Config{}, nil, pluginOptions{}, state.Registered),
	},
	{cause: isObserved, says: []string{`--observe`, `would register`}, play: settled(register.Config{Observe: true}, nil, pluginOptions{}, state.Observed)},
	{cause: deadSocket, says: []string{`tr(y has|ies have) failed; .*next`, `connection refused`, "No process listens on it.*Start the plugin.*`rm /\\S*/a.sock`"}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		path := n.dead("a.sock")
		n.phase(path, state.Backoff)
		return n, "a.sock"
	}},
	{cause: deadSocket, says: []string{`ebs.csi.aws.com-reg.sock is a socket`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		n.phase(n.dead("ebs.csi.aws.com-reg.sock"), state.Backoff)
		return n, "ebs.csi.aws.com" // it never said so, but its file does
	}},
	{cause: isHung, says: []string{`GetInfo: no answer within 100ms`, "listens but does not answer.*`ss -xlp | grep -F -- a.sock`.*--info-timeout"}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{InfoTimeout: 100 * time.Millisecond}, nil)
		path, _ := n.listener("a.sock")
		n.phase(path, state.Backoff)
		return n, path
	}},
	{cause: pluginStopped, says: []string{`has not answered for`, `refused`, "process has ended without removing.*Start the plugin again.*--liveness-grace.*`rm "}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		path, stop := n.plugin("a.sock", pluginOptions{keep: true})
		n.phase(path, state.Registered)
		stop()
		n.phase(path, state.Unreachable)
		return n, "demo.example.com"
	}},
	{cause: notPlugin, says: []string{`does not offer it`, `does not speak the registration protocol.*node-driver-registrar.*Move`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		path, l := n.listener("a.sock")
		server := grpc.NewServer()
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		n.phase(path, state.NotPlugin)
		return n, path
	}},
	{cause: hangsUp, says: []string{`closed the connection`, `closes them without an answer: it crashes.*another program`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		path, l := n.listener("a.sock")
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_ = c.Close()
			}
		}()
		n.phase(path, state.Backoff)
		return n, path
	}},
	{cause: answerError, says: []string{`failing on purpose`, `plugin itself answers with this error.*its log`}, play: settled(register.Config{}, nil, pluginOptions{fail: 100}, state.Backoff)},
	{cause: badAnswer, says: []string{`endpoint`, `cannot be used.*made anew`}, play: settled(register.Config{}, nil, pluginOptions{endpoint: "tcp://1.2.3.4"}, state.Rejected)},
	{cause: wrongType, says: []string{`no handler for plugin type NetworkPlugin`, `has handlers for CSIPlugin, DRAPlugin, DevicePlugin.*misspelt.*embeds plugpoll`}, play: settled(register.Config{}, nil, pluginOptions{typ: "NetworkPlugin"}, state.Rejected)},
	{cause: badName, says: []string{`-bad-`, `breaks the rule for CSIPlugin`}, play: settled(register.Config{}, nil, pluginOptions{name: "-bad-"}, state.Backoff)},
	{cause: badVersion, says: []string{`2\.0`, `do not fit the rule for CSIPlugin.*announces such a version`}, play: settled(register.Config{}, nil, pluginOptions{versions: []string{"2.0.0"}}, state.Backoff)},
	{cause: badVersion, says: []string{`v1\.DRAPlugin`, `do not fit the rule for DRAPlugin`}, play: settled(register.Config{}, nil, pluginOptions{typ: registerapi.DRAPlugin, versions: []string{"1.0.0"}}, state.Backoff)},
	{cause: byHandler, says: []string{`register: the API server is away`, `handler for this type turned the plugin down.*SIGHUP`}, play: settled(register.Config{}, csiWith(handlerFunc{
		register: func(context.Context, state.Registration, func(state.Report)) error {
			return errors.New("the API server is away")
		},
	}), pluginOptions{}, state.Backoff)},
	{cause: byHandler, says: []string{`validate: not on this node`}, play: settled(register.Config{}, csiWith(handlerFunc{
		validate: func(context.Context, state.Registration) error { return errors.New("not on this node") },
	}), pluginOptions{}, state.Backoff)},
	{cause: handlerHangs, says: []string{`handler has been at register for .* and does not return`, `Only this socket and its name.*restart the daemon`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{StopTimeout: time.Millisecond}, csiWith(handlerFunc{
			register: func(ctx context.Context, _ state.Registration, _ func(state.Report)) error {
				<-ctx.Done()
				return ctx.Err()
			},
		}))
		path, _ := n.plugin("a.sock", pluginOptions{})
		until(t, "the call is parked", func() bool {
			s, ok := socketAt(n.manager.View(), path)
			return ok && s.Call != nil && s.Call.Parked
		})
		return n, path
	}},
	{cause: handlerDown, says: []string{`says that it is down: no answer from its API`, `See the plugin's log`}, play: settled(register.Config{}, csiWith(handlerFunc{
		register: func(_ context.Context, _ state.Registration, report func(state.Report)) error {
			report(state.Report{Health: state.HealthDown, Message: "no answer from its API"})
			return nil
		},
	}), pluginOptions{}, state.Registered)},
	{cause: notTold, says: []string{`could not be told`, `NotifyRegistrationStatus`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		path, l := n.listener("a.sock")
		server := grpc.NewServer()
		registerapi.RegisterRegistrationServer(server, deaf{})
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		until(t, "telling it fails", func() bool {
			s, ok := socketAt(n.manager.View(), path)
			return ok && s.Acknowledged == state.AckNo
		})
		return n, path
	}},
	{cause: noSuchSocket, says: []string{`There is nothing at`, `last read`, `plugin runs and has not ended.*exactly this path.*mounted from the host`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		<-n.manager.Synced()
		return n, filepath.Join(n.dir, "a.sock")
	}},
	{cause: noSuchSocket, says: []string{`No socket in .* announces a plugin called no.example.com`, `plugpoll status`}, play: func(t *testing.T) (*inside, string) {
		return newInside(t, register.Config{}, nil), "no.example.com"
	}},
	{cause: noSuchSocket, says: []string{`There is nothing at /nowhere/a.sock`, `watches .* only`}, play: func(t *testing.T) (*inside, string) {
		return newInside(t, register.Config{}, nil), "/nowhere/a.sock"
	}},
	{cause: wrongDirectory, says: []string{`is a socket`, `watches .* only`, "Have the plugin make its registration socket in .*`--dir "}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		path := filepath.Join(shortDir(t), "a.sock")
		if err := bindDead(path); err != nil {
			t.Fatal(err)
		}
		return n, path
	}},
	{cause: dotName, says: []string{`is a socket`, `\.a\.sock begins with a dot.*skipped`, `without the dot`}, play: onDisk(".a.sock", bindDead)},
	{cause: dotName, says: []string{`\.ready\.example\.com-reg\.sock begins with a dot`}, play: func(t *testing.T) (*inside, string) {
		n, _ := onDisk(".ready.example.com-reg.sock", bindDead)(t)
		return n, "ready.example.com"
	}},
	{cause: dotName, says: []string{`\.hidden begins with a dot`}, play: onDisk(".hidden/a.sock", bindDead)},
	{cause: notSocket, says: []string{`is a file`, `not a socket, so it was not tried`, `makes a unix socket`}, play: onDisk("a.sock", func(path string) error { return os.WriteFile(path, nil, 0o644) })},
	{cause: notSocket, says: []string{`is a link`, `leads to nothing`, "`ls -l "}, play: onDisk("a.sock", func(path string) error { return os.Symlink("nowhere", path) })},
	{cause: notSocket, says: []string{`link to a directory`, `--dir`}, play: onDisk("a", func(path string) error { return os.Symlink(os.TempDir(), path) })},
	{cause: notSocket, says: []string{`is a directory`, `Sockets in it are found`}, play: onDisk("a", func(path string) error { return os.Mkdir(path, 0o755) })},
	{cause: rootUnreadable, says: []string{`There is nothing at`, `never|ago`, `no such file`, "directory is missing.*`mkdir -p .*correct --dir"}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{Roots: []scanner.Config{{Root: filepath.Join(shortDir(t), "missing"), Interval: 20 * time.Millisecond}}}, nil)
		until(t, "the root fails", func() bool { return n.manager.View().Roots[0].Error != "" })
		return n, filepath.Join(n.dir, "a.sock")
	}},
	{cause: rootUnreadable, says: []string{`not a directory`, `a file in the directory's place`}, play: func(t *testing.T) (*inside, string) {
		root := filepath.Join(shortDir(t), "file")
		if err := os.WriteFile(root, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		n := newInside(t, register.Config{Roots: []scanner.Config{{Root: root, Interval: 20 * time.Millisecond}}}, nil)
		until(t, "the root fails", func() bool { return n.manager.View().Roots[0].Error != "" })
		return n, filepath.Join(root, "a.sock")
	}},
	{cause: isStandby, says: []string{`could be registered`, `Another socket of the same name is registered: /\S*/[ab].sock`, `takes over by itself.*stop the plugin that serves /\S*/[ab].sock`}, play: func(t *testing.T) (*inside, string) {
		return twoOfAName(t, register.Config{}, state.Standby)
	}},
	{cause: nameTaken, says: []string{`held by the plugin of another user at`, "only the same user or root.*stop the holder.*`ls -l /"}, play: func(t *testing.T) (*inside, string) {
		var uid atomic.Int64
		return twoOfAName(t, register.Config{Peer: func(net.Conn) (state.Peer, bool) {
			return state.Peer{UID: int(uid.Add(1)), PID: 1, Start: 1}, true
		}}, state.Rejected)
	}},
	{cause: notAllowed, says: []string{`not allowed`, "--allowed-uid.*`ls -ln "}, play: settled(register.Config{AllowedUIDs: []int{os.Getuid() + 1}}, nil, pluginOptions{}, state.Rejected)},
	{cause: isUnreachable, says: []string{`has not answered for`, `no answer within 100ms`, `connection ended and a new one brings no answer.*restart it.*--liveness-grace`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{InfoTimeout: 100 * time.Millisecond}, nil)
		path, l := n.listener("a.sock")
		server := grpc.NewServer()
		registerapi.RegisterRegistrationServer(server, deaf{})
		served := make(chan struct{})
		go func() { _ = server.Serve(unclosed{l}); close(served) }()
		n.phase(path, state.Registered)
		if err := l.SetDeadline(time.Now()); err != nil { // nobody accepts any more, and the backlog still does
			t.Fatal(err)
		}
		<-served
		server.Stop()
		n.phase(path, state.Unreachable)
		return n, path
	}},
	{cause: tooDeep, says: []string{`is a directory`, `deeper than --max-depth`, `larger --max-depth`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{Roots: []scanner.Config{{Root: shortDir(t), Interval: 20 * time.Millisecond, MaxDepth: -1}}}, nil)
		if err := errors.Join(os.Mkdir(filepath.Join(n.dir, "sub"), 0o755), bindDead(filepath.Join(n.dir, "sub", "a.sock"))); err != nil {
			t.Fatal(err)
		}
		until(t, "it is ignored", func() bool { return len(n.manager.View().Roots[0].Ignored) > 0 })
		return n, filepath.Join(n.dir, "sub", "a.sock")
	}},
	{cause: isStale, says: []string{`could neither show the socket nor rule it out`, `What was known stays`, `directory is missing`}, play: func(t *testing.T) (*inside, string) {
		n := newInside(t, register.Config{}, nil)
		path, _ := n.plugin("a.sock", pluginOptions{})
		n.phase(path, state.Registered)
		if err := os.Rename(n.dir, n.dir+"x"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Rename(n.dir+"x", n.dir) })
		until(t, "it is stale", func() bool {
			s, ok := socketAt(n.manager.View(), path)
			return ok && s.Stale != nil && n.manager.View().Roots[0].Error != ""
		})
		return n, path
	}},
}

// unclosed keeps a listener open when its server ends.
type unclosed struct{ net.Listener }

func (unclosed) Close() error { return nil }

// Accept fails for good: a server would go on after an error that is temporary.
func (u unclosed) Accept() (net.Conn, error) {
	c, err := u.Listener.Accept()
	if err != nil {
		err = io.EOF
	}
	return c, err
}

// one is a handler for one instance of each name.
type one struct{ record.Handler }

func (one) Exclusive() bool { return true }

// twoOfAName plays two plugins of one name, and asks for the one that comes to a phase.
func twoOfAName(t *testing.T, cfg register.Config, want state.Phase) (*inside, string) {
	n := newInside(t, cfg, map[string]register.Handler{registerapi.CSIPlugin: one{}})
	path, _ := n.plugin("a.sock", pluginOptions{})
	n.phase(path, state.Registered)
	n.plugin("b.sock", pluginOptions{})
	asked := ""
	until(t, "one is "+string(want), func() bool {
		for _, s := range n.manager.View().Sockets {
			if s.Phase == want {
				asked = s.Path
			}
		}
		return asked != ""
	})
	return n, asked
}

// deaf answers GetInfo and fails at being told.
type deaf struct {
	registerapi.UnimplementedRegistrationServer
}

func (deaf) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: "deaf.example.com", SupportedVersions: []string{"1.0.0"}}, nil
}

func (deaf) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return nil, errors.New("I am deaf")
}

func (n *inside) why(asked string) finding {
	n.t.Helper()
	v, _, err := n.asker.view(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	findings := explain(v, nil, asked, diskFacts{n.t.Context()})
	if len(findings) != 1 {
		n.t.Fatalf("%d findings: %+v", len(findings), findings)
	}
	return findings[0]
}

// TestWhyTold is for the causes that no daemon of a test comes to by itself.
func TestWhyTold(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	socket := func(change func(*state.SocketView)) state.SocketView {
		s := state.SocketView{Path: "/r/a.sock", Root: "/r", Phase: state.Rejected, Found: now.Add(-time.Hour), Since: now.Add(-time.Minute), Tries: 3, NextTry: now.Add(time.Minute)}
		change(&s)
		return s
	}
	for _, test := range []struct {
		cause cause
		says  string
		s     state.SocketView
	}{
		{pathTooLong, "3 tries have failed; the next is in 60 s.*120 > 107.*shorter directory.*/proc", socket(func(s *state.SocketView) {
			s.LastError = "dial: path too long for a socket address (120 > 107 bytes): use a shorter directory"
		})},
		{noPermission, "permission denied.*`namei -l /r/a.sock`.*as root", socket(func(s *state.SocketView) { s.LastError = "dial: connect: permission denied" })},
		{isHung, "backlog was full.*listens but does not answer", socket(func(s *state.SocketView) {
			s.LastError = "dial: no connection within 10s: busy: the listener's backlog was full (context deadline exceeded)"
		})},
		{noDescriptors, "too many open files.*own lack.*LimitNOFILE", socket(func(s *state.SocketView) { s.LastError = "dial: socket: too many open files" })},
		{noDescriptors, "registered and has not answered.*own lack", socket(func(s *state.SocketView) {
			s.Phase, s.LastError = state.Unreachable, "dial: socket: too many open files"
		})},
		{isWaiting, "not been tried yet.*ask again", socket(func(s *state.SocketView) { s.Phase = state.Pending })},
		{isWaiting, "first time", socket(func(s *state.SocketView) { s.Phase, s.Tries = state.Registering, 0 })},
		{isLeaving, "is gone.*Nothing is to be done", socket(func(s *state.SocketView) { s.Phase = state.Deregistering })},
		{otherFailure, "sunspots.*tried again by itself", socket(func(s *state.SocketView) { s.LastError = "sunspots" })},
		{deadSocket, "may be a socket", socket(func(s *state.SocketView) { s.Maybe, s.LastError = true, "dial: connection refused" })},
	} {
		v := state.View{Time: now, Roots: []state.RootView{{Path: "/r", LastScan: now, LastGoodScan: now}}, Sockets: []state.SocketView{test.s}}
		found := explain(v, nil, "a.sock", noFacts{})
		if len(found) != 1 {
			t.Fatalf("%s: %d findings", test.cause, len(found))
		}
		scene{cause: test.cause, says: []string{test.says}}.check(t, found[0])
	}
	for _, test := range []struct {
		cause cause
		says  string
		facts pathFacts
		root  state.RootView
	}{
		{unreadable, "cannot look at it: lstat x: input/output error.*`namei -l /r/a.sock`", pathFacts{err: fs.ErrPermission}, state.RootView{Ignored: []state.IgnoredView{{
			Dir: "/r", Reason: scanner.Unreadable, Count: 1, Examples: []string{"a.sock"}, Detail: "lstat x: input/output error",
		}}}},
		{unreadable, "cannot be looked at from here .*Ask as root", pathFacts{err: fs.ErrPermission}, state.RootView{}},
		{notSeen, "is a socket.*has not seen it there.*another filesystem under this path than you.*--max-entries", pathFacts{what: "socket"}, state.RootView{}},
		{rootUnreadable, "may not read it: run the daemon as root.*`namei -l /r`", pathFacts{what: "socket"}, state.RootView{Error: "list /r: permission denied"}},
		{rootUnreadable, "Another filesystem is mounted.*findmnt", pathFacts{what: "socket"}, state.RootView{Error: "list /r: another filesystem is in its place"}},
		{rootUnreadable, "`plugpoll scan /r`", pathFacts{what: "socket"}, state.RootView{Error: "list /r: input/output error"}},
	} {
		test.root.Path, test.root.LastScan, test.root.LastGoodScan = "/r", now, now
		found := explain(state.View{Time: now, Roots: []state.RootView{test.root}}, nil, "/r/a.sock", noFacts{test.facts})
		scene{cause: test.cause, says: []string{test.says}}.check(t, found[0])
	}
}

// noFacts sees the same everywhere.
type noFacts struct{ pathFacts }

func (f noFacts) look(string) pathFacts        { return f.pathFacts }
func (noFacts) find(string, []string) []string { return nil }

// TestWhyOtherSide holds what is told of a refused socket to what can be seen of its mount.
func TestWhyOtherSide(t *testing.T) {
	s := state.SocketView{Path: "/r/a.sock", Root: "/r", Phase: state.Backoff, Tries: 1, LastError: "dial: connect: connection refused"}
	for _, test := range []struct {
		facts pathFacts
		cause cause
		says  string
	}{
		{pathFacts{what: "socket", filesystem: "ext4"}, deadSocket, "No process listens"},
		{pathFacts{what: "socket", filesystem: "ext4", listener: "/other/a.sock"}, deadSocket, "No process listens"},
		{pathFacts{what: "socket", filesystem: "ext4", listener: "/r/a.sock"}, otherSide, "a process here listens at /r/a.sock.*another mount"},
		{pathFacts{what: "socket", filesystem: "overlay"}, deadSocket, "No process listens"},
		{pathFacts{what: "socket", filesystem: "overlay", listener: "/lower/a.sock"}, otherSide, "on overlay.*a process here listens at /lower/a.sock"},
		{pathFacts{what: "socket", filesystem: "overlay", listener: "a.sock"}, otherSide, "listens at a socket of this name"},
		{pathFacts{what: "socket", filesystem: "9p"}, otherSide, "on 9p.*only through the mount it was made through.*another machine.*on one side"},
		{pathFacts{what: "socket", filesystem: "fuse.sshfs"}, otherSide, "on fuse.sshfs"},
	} {
		scene{cause: test.cause, says: []string{test.says}}.check(t, explain(state.View{Sockets: []state.SocketView{s}}, nil, "a.sock", noFacts{test.facts})[0])
	}
}

// TestWhy makes every cause happen and reads what is said of it.
func TestWhy(t *testing.T) {
	for _, s := range scenes {
		t.Run(string(s.cause), func(t *testing.T) {
			t.Parallel()
			n, asked := s.play(t)
			s.check(t, n.why(asked))
		})
	}
}

func (s scene) check(t *testing.T, f finding) {
	t.Helper()
	if f.Cause != s.cause {
		t.Errorf("the cause is %q, want %q", f.Cause, s.cause)
	}
	text := strings.ReplaceAll(f.folded, "\n", " ")
	for _, want := range s.says {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("it does not match %q", want)
		}
	}
	if line, err := json.Marshal(f); err != nil || strings.Contains(string(line), `\u0000`) {
		t.Errorf("as JSON: %s, %v", line, err)
	}
	if t.Failed() {
		t.Log(f.folded)
	}
}
