package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestReaderGoesAway has who reads events go away after the first ones, as head -1 does, while nothing happens that would be written.
func TestReaderGoesAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows tells of it only to whoever writes")
	}
	address := follow(t, newFake(nil)).asker.address.at
	for _, test := range []struct {
		lines int // that come at once
		code  int
		args  []string
	}{
		{2, exitDone, []string{"watch", "--address", address}},
		{1, exitDone, []string{"cni", "watch", "--address", address}},
		{1, exitDone, []string{"cni", "watch", "-o", "json", "--address", address}},
		{1, exitFailed, []string{"run", "-o", "json", "--listen", "none", "--log-level", "off", "--dir", t.TempDir()}},
	} {
		t.Run(filepath.Join(test.args[:2]...), func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var stderr buffer
			cmd := exec.CommandContext(ctx, "plugpoll", test.args...)
			cmd.Stdout, cmd.Stderr = w, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			lines := bufio.NewScanner(r)
			for range test.lines {
				if !lines.Scan() {
					t.Error(lines.Err(), stderr.String())
				}
			}
			_ = r.Close()
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, stderr.String())
			}
			if test.code == exitDone && stderr.String() != "" {
				t.Errorf("it complains: %s", stderr.String())
			}
		})
	}
}
