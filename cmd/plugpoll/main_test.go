package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

// TestMain has the test binary act as plugpoll where it is called by that name, and as the process of TestBindAgain.
func TestMain(m *testing.M) {
	// Under the race detector each process would sleep for a second at its end.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=10")
	}
	testscript.Main(m, map[string]func(){"plugpoll": main, "binds": binds, "load": load})
}

func TestExitCode(t *testing.T) {
	stuck := &register.StuckError{Calls: []string{"Register of /a"}}
	for _, test := range []struct {
		err  error
		code int
		text string
	}{
		{nil, exitDone, ""},
		{errors.New("it broke"), exitFailed, "plugpoll: it broke\n"},
		{usagef("--dir is missing"), exitUsage, "plugpoll: --dir is missing\n"},
		{fmt.Errorf("run: %w", usagef("x")), exitUsage, "plugpoll: run: x\n"},
		{usage(errors.New("a"), errors.New("b\nc")), exitUsage, "plugpoll: a\nplugpoll: b\\nc\n"},
		{
			errors.Join(errors.New("standard output: broken pipe"), stuck), exitStuck,
			"plugpoll: standard output: broken pipe\nplugpoll: stopped, but what follows did not end: Register of /a\n",
		},
	} {
		var out bytes.Buffer
		complain(&out, test.err)
		if code := exitCode(test.err); code != test.code || out.String() != test.text {
			t.Errorf("%v: code %d, want %d; text %q, want %q", test.err, code, test.code, out.String(), test.text)
		}
	}
}

// TestFlagErrors holds the texts of Config.Check to the flags they are about: a field without a flag would show its Go name.
func TestFlagErrors(t *testing.T) {
	c := register.Config{
		Roots: []scanner.Config{
			{Root: "", Interval: -1, MissingRoot: 7},
			{Root: "/a", Interval: -1},
			{Root: "/a/Config.Roots[0] (x) and Config.Roots[1]", Interval: -1},
		},
		DialTimeout: -1, InfoTimeout: -1, NotifyTimeout: -1, StopTimeout: -1, AllowedUIDs: []int{0, -1},
	}
	err := flagErrors(c.Check())
	if exitCode(err) != exitUsage {
		t.Errorf("exit code %d, want %d", exitCode(err), exitUsage)
	}
	var out bytes.Buffer
	complain(&out, err)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, flag := range []string{"--dir is empty", "--interval is", "--missing-root is", "--dial-timeout is", "--info-timeout is", "--notify-timeout is", "--stop-timeout is", "--allowed-uid is -1", "--dir ("} {
		if n := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, "plugpoll: "+flag) })); n != 1 {
			t.Errorf("%d lines begin with %q, want 1", n, flag)
		}
	}
	for _, l := range lines {
		if !strings.HasPrefix(l, "plugpoll: --") {
			t.Errorf("a line names no flag: %q", l)
		}
	}
	if !strings.Contains(out.String(), `--dir (/a) and --dir ("/a/Config.Roots[0] (x) and Config.Roots[1]") are the same or inside one another`) {
		t.Errorf("the nested directories are not told: %s", out.String())
	}
	// What Windows has no use for.
	out.Reset()
	complain(&out, flagErrors(errors.New("register: Config.AllowedUIDs is set, but Windows has no uids: leave it empty")))
	if want := "plugpoll: --allowed-uid is set, but Windows has no uids: leave it empty\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
