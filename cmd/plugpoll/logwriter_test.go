package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// valve is a reader that reads only while it is open: nil blocks.
type valve struct {
	open chan struct{}
	got  []string
	err  error
}

func (v *valve) Write(p []byte) (int, error) {
	<-v.open
	v.got = append(v.got, string(p))
	return len(p), v.err
}

func (v *valve) lost(n int) { _, _ = fmt.Fprintf(v, "lost %d\n", n) }

func (v *valve) String() string { return strings.Join(v.got, "") }

func say(t *testing.T, w *logWriter, format string, args ...any) {
	t.Helper()
	start := time.Now()
	line := fmt.Appendf(nil, format+"\n", args...)
	if n, err := w.Write(line); n != len(line) || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	clear(line) // the caller may use it again
	if d := time.Since(start); d != 0 {
		t.Errorf("Write took %v", d)
	}
}

func TestLogWriter(t *testing.T) {
	long := strings.Repeat("x", maxQueue/4)
	// Each subtest ends only when the goroutine has ended: that is what a bubble waits for.
	for name, test := range map[string]func(*testing.T, *valve, *logWriter) (want string){
		"closing writes everything, in order": func(t *testing.T, v *valve, w *logWriter) string {
			var want strings.Builder
			for i := range 1000 {
				say(t, w, "%d", i)
				fmt.Fprintf(&want, "%d\n", i)
			}
			go func() {
				<-time.After(900 * time.Millisecond)
				close(v.open)
			}()
			w.close(time.Second)
			return want.String()
		},
		"nobody reads: closing gives up, at once the second time": func(t *testing.T, v *valve, w *logWriter) string {
			say(t, w, "being written")
			say(t, w, "queued")
			start := time.Now()
			w.close(time.Second)
			w.close(time.Second)
			if d := time.Since(start); d != time.Second {
				t.Errorf("closing took %v, want 1s", d)
			}
			say(t, w, "late")
			close(v.open)
			return "being written\n"
		},
		"a full queue drops new lines; one line says so where they are missing": func(t *testing.T, v *valve, w *logWriter) string {
			var want strings.Builder
			for i := range 3 {
				say(t, w, "%d %s", i, long)
				fmt.Fprintf(&want, "%d %s\n", i, long)
			}
			synctest.Wait()
			say(t, w, "does not fit %s", long)
			say(t, w, "would fit, but comes after the gap")
			close(v.open)
			synctest.Wait()
			say(t, w, "after")
			w.close(time.Second)
			return want.String() + "lost 2\nafter\n"
		},
		"lines are lost twice": func(t *testing.T, v *valve, w *logWriter) string {
			var want strings.Builder
			for round := range 2 {
				v.open = make(chan struct{})
				for i := range 3 + round + 1 {
					say(t, w, "%d %s", i, long)
					if i < 3 {
						fmt.Fprintf(&want, "%d %s\n", i, long)
					}
				}
				fmt.Fprintf(&want, "lost %d\n", round+1)
				close(v.open)
				synctest.Wait()
			}
			w.close(time.Second)
			return want.String()
		},
		"closing says what is lost": func(t *testing.T, v *valve, w *logWriter) string {
			say(t, w, "%s%s%s%s", long, long, long, long) // alone a line may be longer
			say(t, w, "lost")
			close(v.open)
			w.close(time.Second)
			return strings.Repeat(long, 4) + "\nlost 1\n"
		},
		"a line that cannot be written holds up no other": func(t *testing.T, v *valve, w *logWriter) string {
			v.err = errors.New("no space left on device")
			close(v.open)
			say(t, w, "a")
			say(t, w, "b")
			w.close(time.Second)
			return "a\nb\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &valve{open: make(chan struct{})}
				w := newLogWriter(v, v.lost)
				want := test(t, v, w)
				<-w.done
				if got := v.String(); got != want {
					t.Errorf("got %q, want %q", brief(got, long), brief(want, long))
				}
			})
		})
	}
}

func brief(text, long string) string { return strings.ReplaceAll(text, long, "…") }
