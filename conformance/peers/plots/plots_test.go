package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/plugpoll/plugpoll/conformance/peers/measured"
)

// sample is a whole run.
func sample() measured.Run {
	run := measured.Run{About: "a sample", Appears: map[string][]float64{}}
	for i := range 120 {
		run.Appears["plugpoll"] = append(run.Appears["plugpoll"], 1.5*float64(i))
		run.Appears["kubelet"] = append(run.Appears["kubelet"], 8.25*float64(i))
	}
	for i, n := range []int{0, 10, 100, 1000} {
		run.Idle = append(run.Idle, measured.Idle{Plugins: n, Percent: map[string]float64{"plugpoll": 0.15, "kubelet": 0.02 * math.Pow(7, float64(i))}})
	}
	for i, n := range []int{20, 1000, 10000, 100000} {
		for _, place := range []string{"tmpfs", "disk"} {
			floor := math.Pow(10, float64(i))
			run.Scan = append(run.Scan, measured.Scan{Place: place, Entries: n, Kind: measured.Unchanged, Look: 2 * floor, Floor: floor},
				measured.Scan{Place: place, Entries: n, Kind: measured.First, Look: 90 * floor, Floor: 9 * floor})
		}
	}
	// Another place is not drawn beside a disk.
	run.Scan = append(run.Scan, measured.Scan{Place: "tmpfs", Entries: 5000, Kind: measured.First, Look: 1, Floor: 1})
	return run
}

// words are the texts in a picture.
func words(t *testing.T, svg []byte) (texts []string) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	in := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local == "text"
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in {
				texts = append(texts, string(token))
			}
		}
	}
}

// Every picture is small, has a title, units, a legend, and numbers on its axes.
func TestPictures(t *testing.T) {
	want := map[string][]string{
		"latency": {"How soon a new plugin is told that it is registered", "since it listens [ms]", "plugins told [%]", "plugpoll, 120 plugins", "kubelet, 120 plugins", "0", "100", "1,000", "75"},
		"idle":    {"What a registrar takes while nothing happens", "registered plugins", "time of a processor [%]", "plugpoll", "kubelet", "bar for plugpoll: 0.2 %", "0", "1,000", "0.01", "10"},
		"scan": {
			"What a look takes, and what the system itself takes for it", "entries in the tree", "time of a look", "first scan", "poll, nothing changed", "20", "100,000",
			"1 µs", "100 ms", "1 s",
		},
	}
	for _, p := range pictures {
		text, err := p.svg(sample())
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 60_000 {
			t.Errorf("%s has %d bytes", p.name, len(text))
		}
		got := words(t, text)
		for _, word := range want[p.name] {
			if !slices.Contains(got, word) {
				t.Errorf("%s does not say %q, but %q", p.name, word, got)
			}
		}
		if slices.Contains(got, "5,000") {
			t.Errorf("%s shows what is on tmpfs: %q", p.name, got)
		}
		if again, err := p.svg(sample()); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%s is another one each time", p.name)
		}
		if !bytes.Contains(text, []byte("sans-serif")) {
			t.Errorf("%s has one font only", p.name)
		}
	}
	if len(want) != len(pictures) {
		t.Errorf("%d pictures", len(pictures))
	}
}

// What was not measured leaves its picture as it is, and the others are drawn.
func TestDrawAll(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "figures.json")
	for _, p := range pictures {
		if err := os.WriteFile(filepath.Join(dir, p.name+".svg"), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, missing := range map[string]func(*measured.Run){
		"latency": func(r *measured.Run) { delete(r.Appears, "kubelet") },
		"idle":    func(r *measured.Run) { r.Idle = nil },
		"scan":    func(r *measured.Run) { r.Scan = r.Scan[:1] },
	} {
		run := sample()
		missing(&run)
		if err := run.Write(file); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := drawAll(&out, file, dir)
		if n := strings.Count(out.String(), ".svg\n"); n != len(pictures)-1 || strings.Contains(out.String(), name) {
			t.Errorf("without the figures of %s it says it has drawn %s", name, out.String())
		}
		if !errors.Is(err, errNothing) || strings.Count(err.Error(), "left as it is") != 1 || !strings.Contains(err.Error(), name+".svg") {
			t.Errorf("without the figures of %s: %v", name, err)
		}
		for _, p := range pictures {
			text, err := os.ReadFile(filepath.Join(dir, p.name+".svg"))
			if old := string(text) == "old"; err != nil || old != (p.name == name) {
				t.Errorf("without the figures of %s, %s is the old one: %v, %v", name, p.name, old, err)
			}
		}
	}
	if err := drawAll(io.Discard, filepath.Join(dir, "none"), dir); err == nil {
		t.Error("a file that is not there is drawn")
	}
}

func TestCumulative(t *testing.T) {
	got := cumulative([]float64{30, 10, 20, 20}, 100)
	want := plotter.XYs{{X: 0, Y: 0}, {X: 10, Y: 0}, {X: 10, Y: 25}, {X: 20, Y: 25}, {X: 20, Y: 50}, {X: 20, Y: 50}, {X: 20, Y: 75}, {X: 30, Y: 75}, {X: 30, Y: 100}, {X: 100, Y: 100}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAxes(t *testing.T) {
	marks := func(a plot.Axis) (labels []string) {
		for _, tick := range a.Tick.Marker.Ticks(a.Min, a.Max) {
			labels = append(labels, tick.Label)
		}
		return labels
	}
	var a plot.Axis
	decades(&a, 1.4, 58977, microseconds)
	if got := strings.Join(marks(a), ", "); a.Min != 0 || a.Max != 5 || got != "1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms" {
		t.Errorf("from %v to %v: %s", a.Min, a.Max, got)
	}
	evenly(&a, 1001, 500)
	if got := strings.Join(marks(a), ", "); a.Min != 0 || a.Max != 1500 || got != "0, 500, 1,000, 1,500" {
		t.Errorf("from %v to %v: %s", a.Min, a.Max, got)
	}
	for n, want := range map[int]string{0: "0", 20: "20", 999: "999", 1000: "1,000", 100000: "100,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
	if got := microseconds(1e6) + microseconds(2.5e7); got != "1 s25 s" {
		t.Error(got)
	}
}

// A disk is what people have; without one whatever was measured is shown.
func TestPlace(t *testing.T) {
	for want, places := range map[string][]string{"disk": {"tmpfs", "disk", "tmpfs"}, "tmpfs": {"tmpfs"}, "": {}} {
		var all []measured.Scan
		for _, p := range places {
			all = append(all, measured.Scan{Place: p})
		}
		if got := placeOf(all); got != want {
			t.Errorf("of %q %q is shown", places, got)
		}
	}
}
