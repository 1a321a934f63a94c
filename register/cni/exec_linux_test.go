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

// plugin writes a shell script that notes its process, which is its group, in a file beside it.
func plugin(t *testing.T, dir, name, script string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho $$ >"+path+".pid\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// left returns the processes of a group that have not ended. A zombie has: who reaps it is not ours to say.
func left(t *testing.T, group string) (pids []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // state, parent, group
		if len(fields) > 2 && fields[2] == group && fields[0] != "Z" && fields[0] != "X" {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func groupOf(t *testing.T, path string) string {
	t.Helper()
	pid, err := os.ReadFile(path + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(pid))
}

// checkNoneLeft wants all processes of a plugin's group to end at once: those that were killed take a moment.
func checkNoneLeft(t *testing.T, path string) {
	t.Helper()
	group := groupOf(t, path)
	if n, err := strconv.Atoi(group); err != nil || n <= 1 {
		t.Fatalf("group %q", group)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(5 * time.Second)
	for {
		pids := left(t, group)
		if len(pids) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("of group %s these are left: %v", group, pids)
		}
		<-tick.C
	}
}

func TestAskStatus(t *testing.T) {
	const timeout = 400 * time.Millisecond
	tests := []struct {
		name, script string
		want         string // of the error; empty: it is ready
		code         uint
		slow         bool // it takes until the timeout
	}{
		{name: "ok", script: `read -r stdin; [ "$CNI_COMMAND $CNI_PATH $stdin" = 'STATUS '"$(dirname $0)"' {"cniVersion":"1.1.0","name":"net","type":"x"}' ]`},
		{name: "ok with an answer that nobody wants", script: "echo '{]'; echo complaint >&2"},
		{name: "a CNI error", script: `echo '{"cniVersion":"1.1.0","code":50,"msg":"no daemon","details":"on port 1"}'; exit 1`, want: "no daemon; on port 1 (code 50)", code: 50},
		{name: "an older plugin", script: `echo '{"code":4,"msg":"unknown CNI_COMMAND: STATUS"}'; exit 1`, want: "PATH is made for a CNI older than the configuration's cniVersion (unknown CNI_COMMAND: STATUS); install a newer one, or lower the cniVersion below 1.1.0", code: 4},
		{name: "garbage", script: `printf 'oh\033[2J no\n'; exit 3`, want: `it fails (exit status 3) and answers what is not CNI: "oh\x1b[2J no\n"`},
		{name: "much garbage", script: `head -c 60000 /dev/zero; exit 3`, want: `it fails (exit status 3) and answers what is not CNI: "` + strings.Repeat(`\x00`, 15) + `\…"`},
		{name: "only a complaint", script: `echo "cannot
find it" >&2; exit 2`, want: `it fails (exit status 2): cannot\nfind it`},
		{name: "nothing", script: "exit 1", want: "it fails (exit status 1) and says nothing"},
		{name: "killed", script: "kill -9 $$", want: "it fails (signal: killed) and says nothing"},
		{name: "writes endlessly", script: "exec cat /dev/zero", want: "it writes more than 65536 bytes"},
		{name: "a child writes endlessly", script: "cat /dev/zero & exec sleep 1000", want: "it writes more than 65536 bytes"},
		{name: "complains endlessly", script: "exec cat /dev/zero >&2", want: "it did not answer in time", slow: true},
		{name: "hangs", script: "exec sleep 1000", want: "it did not answer in time", slow: true},
		{name: "hangs and heeds no signal", script: "trap '' TERM INT HUP PIPE; while :; do sleep 0.05; done", want: "it did not answer in time", slow: true},
		{name: "leaves a child with its output", script: "sleep 1000 & exit 0"},
		{name: "leaves a child and fails", script: `sleep 1000 & echo '{"code":51,"msg":"limited"}'; exit 1`, want: "limited (code 51)", code: 51},
		{name: "leaves a child of a child", script: "(sleep 1000 & sleep 1000 & exit 0) & exit 0"},
		{name: "hangs in a child", script: "sleep 1000; exit 0", want: "it did not answer in time", slow: true},
		{name: "hangs in a child of a child", script: "(sleep 1000; :); exit 0", want: "it did not answer in time", slow: true},
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
			// A plugin that answers has all the time in the world, on a machine that is busy.
			limit := 30 * time.Second
			if test.slow {
				limit = timeout
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			err := askStatus(ctx, []string{dir}, []network{asked(t, "net", "1.1.0", "x")})
			took := time.Since(start)
			if took > limit+time.Second || test.slow && took < limit {
				t.Errorf("it took %v", took)
			}
			if content == "" {
				checkNoneLeft(t, path)
			}
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
			if test.slow != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("cause: %v", err)
			}
		})
	}
}

// TestAskStatusOfSomebodyElsesGroup shows the limit: a process that leaves the group is not found. It holds the output open, and is not waited for.
func TestAskStatusOfSomebodyElsesGroup(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	path := plugin(t, dir, "x", `setsid sh -c 'echo $$ >"$1.daemon.pid"; mv "$1.daemon.pid" "$1.daemon.up"; exec sleep 1000' sh $0 &
while [ ! -e $0.daemon.up ]; do :; done`)
	start := time.Now()
	if err := askStatus(t.Context(), []string{dir}, []network{asked(t, "net", "1.1.0", "x")}); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	checkNoneLeft(t, path)
	up, err := os.ReadFile(path + ".daemon.up")
	try(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(up)))
	try(t, err)
	process, err := os.FindProcess(pid)
	try(t, err)
	if err := process.Kill(); err != nil {
		t.Errorf("it should be there: %v", err)
	}
}

func TestAskStatusOfWhom(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	good := plugin(t, dir, "good", "exit 0")
	bad := plugin(t, dir, "bad", `echo '{"code":50,"msg":"down"}'; exit 1`)
	ran := func() (names []string) {
		for _, path := range []string{good, bad} {
			if os.Remove(path+".pid") == nil {
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
