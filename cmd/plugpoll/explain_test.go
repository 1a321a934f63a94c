package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 µs", 949: "0.9 µs", 409_600: "410 µs", 9_940: "9.9 µs", 9_960: "10 µs", 999_499: "999 µs", 999_500: "1 ms",
		50 * time.Millisecond: "50 ms", 200 * time.Millisecond: "200 ms", 1234 * time.Microsecond: "1.2 ms", 999_600 * time.Microsecond: "1 s",
		2100 * time.Millisecond: "2.1 s", 5 * time.Second: "5 s", 10 * time.Second: "10 s", time.Hour: "3600 s",
	} {
		if got := spell(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestTotal(t *testing.T) {
	for _, test := range []struct {
		total total
		want  string
	}{
		{total{}, "nothing"},
		{total{Sockets: 1, Maybe: 1, Directories: 1, Ignored: 1, Unreadable: 1}, "1 socket, 1 maybe, 1 directory, 1 ignored, 1 unreadable"},
		{total{Sockets: 3, Directories: 2}, "3 sockets, 2 directories"},
	} {
		if got := test.total.String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// What is expected of the next looks (U6), in both forms.
func TestOutlook(t *testing.T) {
	const ms = time.Millisecond
	skips := scanner.Polling{Type: "tmpfs", SkipsUnchanged: true, Why: "it tells", Settle: 50 * ms, Interval: 200 * ms}
	reads := scanner.Polling{Type: "9p", Why: "it does not tell", Interval: 200 * ms}
	const (
		skipped = "Filesystem tmpfs: directories that have not changed are skipped, because it tells.\n" +
			"A directory is skipped once it has been left alone for 50 ms; each is read at least every 10 s.\n"
		read = "Filesystem 9p: every look reads every directory, because it does not tell.\n"
	)
	for _, test := range []struct {
		polling scanner.Polling
		took    time.Duration
		total   total
		text    string
		json    filesystem
	}{
		{
			skips, ms,
			total{Sockets: 1},
			skipped + "This look took 1 ms for 1 entry in this directory.\n" + laterLooks + "\n" +
				"When nothing changes, the daemon looks again 200 ms after the end of a look.\n",
			filesystem{"tmpfs", true, "it tells", 0.05, 0.001, 0.2},
		},
		{
			skips, 10 * ms,
			total{Sockets: 3, Directories: 2},
			skipped + "This look took 10 ms for 5 entries in this directory and 2 below it.\n" + laterLooks + "\n" +
				"When nothing changes, the daemon looks again 990 ms after the end of a look as long as this one, and 200 ms after a short one.\n",
			filesystem{"tmpfs", true, "it tells", 0.05, 0.01, 0.99},
		},
		{
			reads, ms / 10,
			total{},
			read + "This look took 100 µs for 0 entries in this directory.\nEvery later one takes about as long.\n" +
				"When nothing changes, the daemon looks again 200 ms after the end of a look: it spends less than 0.1 % of the time looking.\n",
			filesystem{"9p", false, "it does not tell", 0, 0.0001, 0.2},
		},
		{
			reads, 1250 * ms,
			total{Ignored: 7},
			read + "This look took 1.2 s for 7 entries in this directory.\nEvery later one takes about as long.\n" +
				"When nothing changes, the daemon looks again 5 s after the end of a look: it spends about 20 % of the time looking.\n",
			filesystem{"9p", false, "it does not tell", 0, 1.25, 5},
		},
		{
			// A clock that cannot tell how long printing took.
			reads, -ms,
			total{},
			read + "This look took 0 µs for 0 entries in this directory.\nEvery later one takes about as long.\n" +
				"When nothing changes, the daemon looks again 200 ms after the end of a look: it spends less than 0.1 % of the time looking.\n",
			filesystem{"9p", false, "it does not tell", 0, 0, 0.2},
		},
	} {
		o := outlookOf(test.polling, test.took)
		if got := o.text(test.total); got != test.text {
			t.Errorf("%+v:\ngot\n%s\nwant\n%s", o, got, test.text)
		}
		if got := *o.json(); got != test.json {
			t.Errorf("got %+v, want %+v", got, test.json)
		}
	}
}

// TestScanOnTmpfs mounts nothing, since tests of other packages that run meanwhile expect a new mount to get the device number of the last one.
func TestScanOnTmpfs(t *testing.T) {
	if list, _ := os.ReadFile("/proc/self/mounts"); !strings.Contains(string(list), " /dev/shm tmpfs ") {
		t.Skip("there is no tmpfs on /dev/shm")
	}
	dir, err := os.MkdirTemp("/dev/shm", "pp") //nolint:usetesting // the place matters
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	// One stamp of 250 falls on a full second, and is taken for a coarse one.
	for format, want := range map[string]string{
		"text": `(?m)^1 directory in /dev/shm/.*\n\n` +
			`Filesystem tmpfs: directories that have not changed are skipped, because its directory stamps move with every change\.\n` +
			`A directory is skipped once it has been left alone for (50 ms|2\.1 s); each is read at least every 10 s\.\n` +
			`This look took [\d.]+ (µs|ms|s) for 1 entry in this directory and 1 below it\.\n`,
		"json": `"filesystem":\{"type":"tmpfs","skips_unchanged":true,"why":"[^"]+","settle_seconds":(0\.05|2\.1),"look_seconds":[\d.e-]+,"pause_seconds":[\d.]+\}\}\n$`,
	} {
		out, err := exec.CommandContext(t.Context(), "plugpoll", "scan", "-o", format, dir).CombinedOutput()
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("-o %s: %v\n%s", format, err, out)
		}
	}
}
