package main

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/scanner"
)

// screen is a terminal that both outputs go to: it keeps what is on it, and what was written when.
type screen struct {
	mu    sync.Mutex
	began time.Time
	lines []string // the last is the one being written
	at    int      // the column
	drawn []string // the lines of progress, with their time
}

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = []string{""}
	}
	for _, c := range text {
		line := &s.lines[len(s.lines)-1]
		switch c {
		case '\n':
			s.lines, s.at = append(s.lines, ""), 0
		case '\r':
			s.at = 0
		default:
			*line += strings.Repeat(" ", max(0, s.at+1-len(*line)))
			*line = (*line)[:s.at] + string(c) + (*line)[s.at+1:]
			s.at++
		}
	}
	if now := strings.TrimRight(s.lines[len(s.lines)-1], " "); strings.HasPrefix(now, "looking") {
		s.drawn = append(s.drawn, time.Since(s.began).String()+" "+now)
	}
	return len(text), nil
}

func (s *screen) shows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := make([]string, len(s.lines))
	for i, line := range s.lines {
		shown[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(shown, "\n")
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		p := &progress{terminal: &s, shared: true}
		end := p.start()
		s.began = p.began
		at := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(time.Until(p.began.Add(d)))
			synctest.Wait()
			if got := s.shows(); got != want {
				t.Errorf("after %v: %q, want %q", d, got, want)
			}
		}
		entry := func() { _, _ = s.Write([]byte("an entry\n")) }
		p.step(true, func() {})
		at(999*time.Millisecond, "")
		at(1000*time.Millisecond, "looking: 1 entry, 1 directory so far, 1 s")
		for range 99 {
			p.step(false, func() {})
		}
		at(1199*time.Millisecond, "")
		at(1200*time.Millisecond, "looking: 100 entries, 1 directory so far, 1.2 s")
		p.step(false, entry)
		at(1399*time.Millisecond, "an entry\n")
		at(1400*time.Millisecond, "an entry\nlooking: 101 entries, 1 directory so far, 1.4 s")
		at(12*time.Second, "an entry\nlooking: 101 entries, 1 directory so far, 12 s")
		end()
		at(20*time.Second, "an entry\n")
		if n := len(s.drawn); n != 1+11*5 {
			t.Errorf("the line was drawn %d times in 12 s: %q", n, s.drawn)
		}

		p = &progress{terminal: &s} // the entries go elsewhere
		end = p.start()
		at(time.Second, "an entry\nlooking: 0 entries, 0 directories so far, 1 s")
		p.step(false, func() {})
		at(1100*time.Millisecond, "an entry\nlooking: 0 entries, 0 directories so far, 1 s")
		end()
		at(1200*time.Millisecond, "an entry\n")

		p = &progress{terminal: &s} // one that is over soon, and none
		p.start()()
		var none *progress
		end = none.start()
		none.step(false, entry)
		end()
		at(20*time.Second, "an entry\nan entry\n")
	})
}

// slowFS takes its time to open a directory.
type slowFS struct{ afero.Fs }

func (slowFS) Name() string { return "slow" }

func (s slowFS) Open(name string) (afero.File, error) {
	time.Sleep(300 * time.Millisecond)
	return s.Fs.Open(name)
}

// slowWriter takes its time for each line.
type slowWriter struct{ bytes.Buffer }

func (w *slowWriter) Write(line []byte) (int, error) {
	time.Sleep(time.Second)
	return w.Buffer.Write(line)
}

func slowTree(t *testing.T) slowFS {
	fs := afero.NewMemMapFs()
	for i := range 10 {
		if err := fs.MkdirAll("/d/"+strconv.Itoa(i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return slowFS{fs}
}

// A long scan on a terminal leaves nothing of its progress on it, and prints each entry at once.
func TestScanShowsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := screen{began: time.Now()}
		l := &listing{w: &s, progress: &progress{terminal: &s, shared: true}, total: total{Path: "/d"}}
		if err := l.scan(t.Context(), scanner.Config{FS: slowTree(t), Root: "/d", Each: l.each}); err != nil {
			t.Fatal(err)
		}
		shown := s.shows()
		for _, want := range []string{"VERDICT     TYPE       PATH\ndirectory   directory  /d/0\n", "10 directories in /d\n\nFilesystem slow: every", "This look took 3.3 s for 10 entries in this directory and 10 below it.\n"} {
			if !strings.Contains(shown, want) {
				t.Errorf("it does not show %q:\n%s", want, shown)
			}
		}
		if strings.Contains(shown, "looking:") {
			t.Errorf("its progress is still there:\n%s", shown)
		}
		if len(s.drawn) < 11 || len(s.drawn) > 12 || !slices.Contains(s.drawn, "2s looking: 10 entries, 10 directories so far, 2 s") {
			t.Errorf("in 3.3 s it drew %q", s.drawn)
		}
	})
}

// What waits for who reads is no cost of the scan.
func TestScanCostLeavesPrintingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out slowWriter
		l := &listing{w: &out, json: true, total: total{Path: "/d"}}
		if err := l.scan(t.Context(), scanner.Config{FS: slowTree(t), Root: "/d", Each: l.each}); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`"filesystem":\{"type":"slow","skips_unchanged":false,"why":"[^"]+","look_seconds":3.3,"pause_seconds":5\}\}\n$`).Match(out.Bytes()) {
			t.Errorf("it printed %s", out.String())
		}
	})
}

// What takes long shows how far it has come in words of its own, and leaves nothing of them.
func TestProgressText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		c := &checking{checkOptions: &checkOptions{}}
		c.total.Store(3)
		p := &progress{terminal: &s, text: c.text}
		end := p.start()
		<-time.After(progressAfter + progressEvery/2)
		if got := s.shows(); got != "checking: 0 of 3 sockets done, 1 s" {
			t.Errorf("it shows %q", got)
		}
		c.done.Store(2)
		<-time.After(progressEvery)
		if got := s.shows(); got != "checking: 2 of 3 sockets done, 1.2 s" {
			t.Errorf("it shows %q", got)
		}
		end()
		if got := s.shows(); got != "" {
			t.Errorf("left on the terminal: %q", got)
		}
	})
}
