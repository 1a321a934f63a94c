package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// TestLogTime: the journal has its own time for each line, whoever else takes stderr has not.
func TestLogTime(t *testing.T) {
	const withTime = `^\d{4}-\d\d-\d\dT\S+ \[INFO\]  hello: dirs="/a\\nb"\n$`
	for name, test := range map[string]struct {
		stream func(*syscall.Stat_t) string
		want   string
	}{
		"file":    {func(*syscall.Stat_t) string { return "" }, withTime},
		"journal": {func(s *syscall.Stat_t) string { return fmt.Sprintf("%d:%d", s.Dev, s.Ino) }, `^\[INFO\]  hello: dirs="/a\\nb"\n$`},
		// A service whose stderr was redirected still has the variable.
		"redirected": {func(s *syscall.Stat_t) string { return fmt.Sprintf("%d:%d", s.Dev, s.Ino+1) }, withTime},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("JOURNAL_STREAM", test.stream(info.Sys().(*syscall.Stat_t)))
			log, queue := newLogger(f, "info", "text")
			log.Info("hello", "dirs", listed([]string{"/a\nb"}))
			queue.close(patience)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !regexp.MustCompile(test.want).Match(got) {
				t.Errorf("%q (%v) does not match %q", got, err, test.want)
			}
		})
	}
}
