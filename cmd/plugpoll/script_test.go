package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a script waits for what must happen. It is long: only a failing test waits it out.
const patience = 30 * time.Second

// TestScripts runs testdata/script/*.txtar. Beside testscript's own commands there are:
//
//	start [-nobody] NAME COMMAND…  run in the background; stdout and stderr are the files NAME.out and NAME.err
//	signal NAME SIGNAL             send INT, TERM, HUP or KILL
//	ended NAME CODE                wait for the end and compare the exit code; -1 is a signal's
//	exits CODE COMMAND…            run and compare the exit code
//	waitfor FILE REGEXP [COUNT]    wait until the regexp matches COUNT (1) times or more
//	count FILE REGEXP COUNT        how often it matches now
//	calm FILE                      no line of a log is a warning, but for a socket that was found before its process listened
//	appears PATH                   wait until PATH exists
//	stale PATH                     make a socket that refuses
//	json FILE [KIND…]              every line is an object of version v1; the first lines are of these kinds
//
// $D is a fresh directory with a short name, so that sockets in it have addresses; $NL is a newline, $BAD two bytes that are not UTF-8,
// $CSI what ESC [ is in one character, and $LONG a name of 200 bytes.
func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts send Unix signals")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "nobody":
				return nobody() == "", nil
			case "root":
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": cmdStart, "signal": cmdSignal, "ended": cmdEnded, "exits": cmdExits,
			"waitfor": cmdWaitFor, "count": cmdCount, "calm": cmdCalm, "appears": cmdAppears, "stale": cmdStale, "json": cmdJSON,
		},
	})
}

type processesKey struct{}

// processes are those a script has started and not yet ended.
type processes map[string]*exec.Cmd

func setup(env *testscript.Env) error {
	// Not t.TempDir: its name is too long for the address of a socket.
	dir, err := os.MkdirTemp("", "pp") //nolint:usetesting // see above
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	running := processes{}
	env.Values[processesKey{}] = running
	env.Defer(func() {
		for _, cmd := range running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		_ = os.RemoveAll(dir)
	})
	env.Setenv("D", dir)
	env.Setenv("GORACE", os.Getenv("GORACE"))
	env.Setenv("NL", "\n")
	env.Setenv("LONG", strings.Repeat("x", 200))
	env.Setenv("BAD", "\xff\xfe")
	env.Setenv("CSI", "\u009b")
	return nil
}

// nobody says why the tests cannot start a process that may not read everything; empty if they can.
func nobody() string {
	if os.Geteuid() == 0 && os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		return "this user namespace has no other user"
	}
	return ""
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	asNobody := len(args) > 0 && args[0] == "-nobody"
	if asNobody {
		args = args[1:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start [-nobody] NAME COMMAND…")
	}
	name, program := args[0], args[1]
	if asNobody && os.Geteuid() == 0 {
		program = copyOfPlugpoll(ts)
	}
	words := args[2:]
	if len(words) > 0 && words[0] == "run" && !slices.Contains(words, "--listen") {
		words = append(words, "--listen", "none") // the scripts run beside one another, and the usual port is one
	}
	cmd := exec.Command(program, words...)
	cmd.Dir = ts.Getenv("WORK")
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "JOURNAL_STREAM", "GORACE"} {
		cmd.Env = append(cmd.Env, key+"="+ts.Getenv(key))
	}
	if asNobody && os.Geteuid() == 0 {
		become(cmd, 65534)
		cmd.Dir = ts.Getenv("D")
	}
	stdout, err := os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	stderr, err := os.Create(ts.MkAbs(name + ".err"))
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	ts.Check(errors.Join(cmd.Start(), stdout.Close(), stderr.Close()))
	ts.Value(processesKey{}).(processes)[name] = cmd
}

// copyOfPlugpoll is where another user may run it: the directories of the test binary are closed.
func copyOfPlugpoll(ts *testscript.TestScript) string {
	bin := filepath.Join(ts.Getenv("D"), "bin")
	ts.Check(os.MkdirAll(bin, 0o755))
	self, err := os.Executable()
	ts.Check(err)
	path := filepath.Join(bin, "plugpoll")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	content, err := os.ReadFile(self)
	ts.Check(err)
	// A process that another script starts meanwhile would hold the file open for writing, and it could not be run: "text file busy" (golang/go#22315).
	syscall.ForkLock.RLock()
	err = os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	ts.Check(err)
	return path
}

func process(ts *testscript.TestScript, name string) *exec.Cmd {
	cmd := ts.Value(processesKey{}).(processes)[name]
	if cmd == nil {
		ts.Fatalf("no process %q was started, or it has ended", name)
	}
	return cmd
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME INT|TERM|HUP|KILL")
	}
	ts.Check(process(ts, args[0]).Process.Signal(signals[args[1]]))
}

func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended NAME CODE")
	}
	cmd := process(ts, args[0])
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	delete(ts.Value(processesKey{}).(processes), args[0])
	if !late.Stop() {
		ts.Fatalf("%s does not end", args[0])
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("%s ended with %s, want %s; its stderr:\n%s", args[0], got, args[1], ts.ReadFile(args[0]+".err"))
	}
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// poll waits until ok is true. It looks every 5 ms, as the daemon looks at its directories.
func poll(ok func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if ok() {
			return true
		}
		<-time.After(5 * time.Millisecond)
	}
	return false
}

func matches(ts *testscript.TestScript, file, expression string) int {
	re, err := regexp.Compile("(?m)" + expression)
	ts.Check(err)
	return len(re.FindAllIndex(content(ts, file), -1))
}

// content of a file, none if it is not there yet.
func content(ts *testscript.TestScript, file string) []byte {
	content, err := os.ReadFile(ts.MkAbs(file))
	if !errors.Is(err, os.ErrNotExist) {
		ts.Check(err)
	}
	return content
}

func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	want := 1
	if len(args) == 3 {
		want, _ = strconv.Atoi(args[2])
	}
	if neg || len(args) < 2 || len(args) > 3 || want < 1 {
		ts.Fatalf("usage: waitfor FILE REGEXP [COUNT]")
	}
	if !poll(func() bool { return matches(ts, args[0], args[1]) >= want }) {
		ts.Fatalf("%s does not come to match %q %d times:\n%s", args[0], args[1], want, content(ts, args[0]))
	}
}

func cmdCount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: count FILE REGEXP COUNT")
	}
	if n := matches(ts, args[0], args[1]); strconv.Itoa(n) != args[2] {
		ts.Fatalf("%s matches %q %d times, want %s:\n%s", args[0], args[1], n, args[2], ts.ReadFile(args[0]))
	}
}

func cmdCalm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: calm FILE")
	}
	for line := range strings.Lines(string(content(ts, args[0]))) {
		loud := strings.Contains(line, "[WARN]") || strings.Contains(line, "[ERROR]")
		// Between bind and listen a socket is there and refuses.
		if loud && !strings.Contains(line, "connection refused") {
			ts.Fatalf("a line of %s warns: %s", args[0], line)
		}
	}
}

func cmdAppears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears PATH")
	}
	if !poll(func() bool { _, err := os.Lstat(ts.MkAbs(args[0])); return err == nil }) {
		ts.Fatalf("%s does not appear", args[0])
	}
}

func cmdStale(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stale PATH")
	}
	b, err := bind(context.Background(), args[0])
	ts.Check(err)
	ts.Check(b.Close())
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: json FILE [KIND…]")
	}
	for n, line := range strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n") {
		var object struct {
			Version, Kind string
			Time          *time.Time
		}
		if err := json.Unmarshal([]byte(line), &object); err != nil || object.Version != "v1" {
			ts.Fatalf("line %d is not an object of version v1: %v\n%s", n+1, err, line)
		}
		if n+1 < len(args) && object.Kind != args[n+1] {
			ts.Fatalf("line %d is of kind %q, want %q\n%s", n+1, object.Kind, args[n+1], line)
		}
	}
}
