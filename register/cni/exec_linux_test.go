package cni

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// asked is a network of plugins of these types, in cniVersion.
func asked(t *testing.T, name, cniVersion string, types ...string) network {
	t.Helper()
	var plugins []string
	for _, typ := range types {
		plugins = append(plugins, fmt.Sprintf(`{"type":%q}`, typ))
	}
	content := fmt.Sprintf(`{"name":%q,"cniVersion":%q,"plugins":[%s]}`, name, cniVersion, strings.Join(plugins, ","))
	s := load("/conf", []scanner.Entry{{Path: "/conf/" + name + ".conflist", File: &scanner.File{Content: content}}}, choose{})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.networks[0]
}

// plugin writes a shell script that notes in a file beside it that it has begun.
func plugin(t *testing.T, dir, name, script string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	try(t, os.WriteFile(path, []byte("#!/bin/sh\n:>"+path+".began\n"+script+"\n"), 0o755))
	return path
}

// running returns the processes whose environment says that they come from a plugin in dir, by their group. A zombie has none: who reaps it is not
// ours to say.
func running(t *testing.T, dir string) (groups []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		environ, _ := os.ReadFile(path) // it may have ended
		if !strings.Contains("\x00"+string(environ), "\x00CNI_PATH="+dir+"\x00") {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // state, parent, group
		if err == nil && len(fields) > 2 {
			groups = append(groups, fields[2])
		}
	}
	return groups
}

// waitFor waits until as many processes are running as it should be.
func waitFor(t *testing.T, dir string, ok func(groups []string) bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(20 * time.Second)
	for groups := running(t, dir); !ok(groups); groups = running(t, dir) {
		if time.Now().After(deadline) {
			t.Errorf("the groups of what runs: %v", groups)
			return
		}
		<-tick.C
	}
}

func none(groups []string) bool { return len(groups) == 0 }

func TestAskStatus(t *testing.T) {
	tests := []struct {
		name, script string
		want         string // of the error; empty: it is ready
		code         uint
		hangs        int  // how many processes there are until the timeout, which comes once they are there
		answers      bool // it has answered STATUS before it hangs
	}{
		{name: "ok", script: `read -r stdin; [ "$CNI_COMMAND $CNI_PATH $stdin" = 'STATUS '"$(dirname $0)"' {"cniVersion":"1.1.0","name":"net","type":"x"}' ]`},
		{name: "ok with an answer that nobody wants", script: "echo '{]'; echo complaint >&2"},
		{name: "a CNI error", script: `echo '{"cniVersion":"1.1.0","code":50,"msg":"no daemon","details":"on port 1"}'; exit 1`, want: "no daemon; on port 1 (code 50)", code: 50},
		// What Debian 12's plugins say, which were built with the library's version 1.1.
		{
			name: "an older plugin", code: 3,
			script: `[ $CNI_COMMAND != VERSION ] || { echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}'; exit 0; }
echo '{"code":3,"msg":"missing containerID"}'; exit 1`,
			want: "PATH does not support cniVersion 1.1.0, only up to 1.0.0, and has no good answer to STATUS: missing containerID (code 3); install a newer one, or set the network's cniVersion to 1.0.0",
		},
		{
			name: "an older plugin that says nothing", script: `[ $CNI_COMMAND = VERSION ] && echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'`,
			want: "PATH does not support cniVersion 1.1.0, only up to 1.0.0, and has no good answer to STATUS: it fails (exit status 1) and says nothing; install a newer one, or set the network's cniVersion to 1.0.0",
		},
		{
			name: "an older plugin that cannot serve", code: 50, script: `[ $CNI_COMMAND != VERSION ] || { echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'; exit 0; }
echo '{"code":50,"msg":"no daemon"}'; exit 1`, want: "no daemon (code 50)",
		},
		{
			name: "a plugin without the verb", code: 4, script: `[ $CNI_COMMAND != VERSION ] || { echo '{"cniVersion":"1.1.0","supportedVersions":["1.1.0"]}'; exit 0; }
echo '{"code":4,"msg":"unknown CNI_COMMAND: STATUS"}'; exit 1`, want: "unknown CNI_COMMAND: STATUS (code 4)",
		},
		{name: "hangs in VERSION", script: `[ $CNI_COMMAND != VERSION ] || { :>$0.version; exec sleep 1000; }; exit 1`, want: "it fails (exit status 1) and says nothing", hangs: 1, answers: true},
		{name: "garbage", script: `printf 'oh\033[2J no\n'; exit 3`, want: `it fails (exit status 3) and answers what is not CNI: oh\x1b[2J no`},
		{name: "much garbage", script: `head -c 60000 /dev/zero; exit 3`, want: `it fails (exit status 3) and answers what is not CNI: ` + strings.Repeat(`\x00`, 63) + `\…`},
		{
			name: "nearly an answer", script: `printf '{"cniVersion":"1.1.0","code":50,"msg":"the agent is \033[31mdown\033[0m since noon"}'; exit 1`,
			want: `it fails (exit status 1) and answers what is not CNI: {"cniVersion":"1.1.0","code":50,"msg":"the agent is \x1b[31mdown\x1b[0m since noon"}`,
		},
		{name: "only a complaint", script: `echo "cannot
find it" >&2; exit 2`, want: `it fails (exit status 2): cannot\nfind it`},
		{name: "nothing", script: "exit 1", want: "it fails (exit status 1) and says nothing"},
		{name: "killed", script: "kill -9 $$", want: "it fails (signal: killed) and says nothing"},
		{name: "writes endlessly", script: "exec cat /dev/zero", want: "it writes more than 65536 bytes"},
		{name: "a child writes endlessly", script: "cat /dev/zero & exec sleep 1000", want: "it writes more than 65536 bytes"},
		{name: "complains endlessly", script: "exec cat /dev/zero >&2", want: "it did not answer within 10s, the time of all plugins together", hangs: 1},
		{name: "hangs", script: "exec sleep 1000", want: "it did not answer within 10s, the time of all plugins together", hangs: 1},
		{name: "hangs and heeds no signal", script: "trap '' TERM INT HUP PIPE; while :; do sleep 0.05; done", want: "it did not answer within 10s, the time of all plugins together", hangs: 2},
		{name: "leaves a child with its output", script: "sleep 1000 & exit 0"},
		{name: "leaves a child and fails", script: `sleep 1000 & echo '{"code":51,"msg":"limited"}'; exit 1`, want: "limited (code 51)", code: 51},
		{name: "leaves a child of a child", script: "(sleep 1000 & sleep 1000 & exit 0) & exit 0"},
		{name: "hangs in a child", script: "sleep 1000; exit 0", want: "it did not answer within 10s, the time of all plugins together", hangs: 2},
		{name: "hangs in a child of a child", script: "(sleep 1000; :); exit 0", want: "it did not answer within 10s, the time of all plugins together", hangs: 3},
		{name: "no interpreter", script: "#", want: "it cannot be run: PATH is there, but not the interpreter or loader that it names"},
		{name: "no program", script: "#", want: "it cannot be run: exec format error"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := plugin(t, dir, "x", test.script)
			content := map[string]string{"no interpreter": "#!/no/such/interpreter\n", "no program": "\x7fELF no"}[test.name]
			if content != "" {
				try(t, os.WriteFile(path, []byte(content), 0o755))
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			timeout := time.Now()
			waited := make(chan struct{})
			go func() {
				defer close(waited)
				if test.hangs > 0 {
					waitFor(t, dir, func(groups []string) bool {
						sign := path + ".began"
						if test.answers {
							sign = path + ".version"
						}
						_, err := os.Stat(sign)
						return err == nil && len(groups) >= test.hangs
					})
					timeout = time.Now()
					cancel(&lateError{10 * time.Second})
				}
			}()
			err := askStatus(ctx, []string{dir}, []network{asked(t, "net", "1.1.0", "x")})
			<-waited
			// A second is promised, and the machine may be busy with other tests.
			if took := time.Since(timeout); test.hangs > 0 && took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			waitFor(t, dir, none)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e, ok := errors.AsType[*StatusError](err)
			want := strings.ReplaceAll(test.want, "PATH", path)
			if !ok || e.Text != want || e.Code != test.code || e.Plugin != "x" || e.Network != "net" || e.Path != path {
				t.Errorf("%v\n%+v\nwant %s", err, e, want)
			}
			if (test.hangs > 0 && !test.answers) != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("cause: %v", err)
			}
		})
	}
}

// TestAskStatusOfAnotherGroup shows the limit: a process that leaves the group is not found. It holds the output open, and is not waited for.
func TestAskStatusOfAnotherGroup(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	plugin(t, dir, "x", `setsid sh -c ':>"$1.up"; exec sleep 1000' sh $0 &
while [ ! -e $0.up ]; do :; done`)
	start := time.Now()
	if err := askStatus(t.Context(), []string{dir}, []network{asked(t, "net", "1.1.0", "x")}); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	groups := running(t, dir)
	if len(groups) != 1 {
		t.Fatalf("the groups of what runs: %v", groups)
	}
	group, err := strconv.Atoi(groups[0])
	if err != nil || group <= 1 {
		t.Fatal(groups, err)
	}
	try(t, syscall.Kill(-group, syscall.SIGKILL))
	waitFor(t, dir, none)
}

func TestAskStatusOfWhom(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	good := plugin(t, dir, "good", "exit 0")
	bad := plugin(t, dir, "bad", `echo '{"code":50,"msg":"down"}'; exit 1`)
	ran := func() (names []string) {
		for _, path := range []string{good, bad} {
			if os.Remove(path+".began") == nil {
				names = append(names, filepath.Base(path))
			}
		}
		return names
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name     string
		ctx      context.Context
		dirs     []string
		networks []network
		want     string
		ran      string
	}{
		{"nobody", t.Context(), []string{dir}, nil, "", "[]"},
		{"an older cniVersion", t.Context(), []string{dir}, []network{asked(t, "a", "1.0.0", "bad")}, "", "[]"},
		{"none", t.Context(), []string{dir}, []network{asked(t, "a", "", "bad")}, "", "[]"},
		{"all", t.Context(), []string{empty, dir}, []network{asked(t, "a", "1.1.0", "good"), asked(t, "b", "1.1.0", "bad")}, `STATUS of plugin "bad" of network "b": down (code 50)`, "[good bad]"},
		{"the first error", t.Context(), []string{dir}, []network{asked(t, "a", "1.1.0", "bad", "good")}, `STATUS of plugin "bad" of network "a": down (code 50)`, "[bad]"},
		{"no binary", t.Context(), []string{empty}, []network{asked(t, "a", "1.1.0", "good")}, `plugin "good": it is in none of ` + empty + "; install it in " + empty, "[]"},
		{"too late", cancelled, []string{dir}, []network{asked(t, "a", "1.1.0", "good")}, `STATUS of network "a" was not asked: context canceled`, "[]"},
	}
	for _, test := range tests {
		err := askStatus(test.ctx, test.dirs, test.networks)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if names := fmt.Sprint(ran()); text != test.want || names != test.ran {
			t.Errorf("%s: %q\nwant %q\n%s ran, want %s", test.name, text, test.want, names, test.ran)
		}
	}
}

// TestAskStatusOfABusyBinary: one that is being copied into place is waited for.
func TestAskStatusOfABusyBinary(t *testing.T) {
	dir := t.TempDir()
	path := plugin(t, dir, "x", "exit 0")
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	try(t, err)
	networks := []network{asked(t, "net", "1.1.0", "x")}

	ctx, cancel := context.WithTimeout(t.Context(), 3*busyDelay)
	defer cancel()
	if err := askStatus(ctx, []string{dir}, networks); err == nil || !strings.Contains(err.Error(), "its binary is being written") {
		t.Errorf("while it is written: %v", err)
	}
	time.AfterFunc(5*busyDelay, func() { _ = writer.Close() })
	if err := askStatus(t.Context(), []string{dir}, networks); err != nil {
		t.Error(err)
	}
}
