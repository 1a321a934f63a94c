package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/conformance/peers/measured"
)

// printed is a figures that measures nothing, and what it prints.
func printed(t *testing.T) (*figures, *strings.Builder) {
	var out strings.Builder
	return &figures{ctx: t.Context(), out: &out, kept: &measured.Run{}}, &out
}

func TestRow(t *testing.T) {
	for _, test := range []struct {
		ours, theirs time.Duration
		ratio        float64
		limit        time.Duration
		want         string
	}{
		{80 * time.Millisecond, 500 * time.Millisecond, 0, 0, "| x | 80 ms | 500 ms | 0.16 |  |  |"},
		{125 * time.Millisecond, 500 * time.Millisecond, 0.25, 0, "| x | 125 ms | 500 ms | 0.25 | ≤ 0.25 × | ok |"},
		{126 * time.Millisecond, 500 * time.Millisecond, 0.25, 0, "| x | 126 ms | 500 ms | 0.25 | ≤ 0.25 × | OVER |"},
		{10 * time.Millisecond, 5 * time.Millisecond, 0, 10 * time.Millisecond, "| x | 10 ms | 5 ms | 2.00 | ≤ 10 ms | ok |"},
		{11 * time.Millisecond, time.Second, 0, 10 * time.Millisecond, "| x | 11 ms | 1000 ms | 0.01 | ≤ 10 ms | OVER |"},
		// Of two bars both must hold.
		{9 * time.Millisecond, time.Second, 0.05, 10 * time.Millisecond, "| x | 9 ms | 1000 ms | 0.01 | ≤ 0.05 ×, ≤ 10 ms | ok |"},
		{9 * time.Millisecond, 20 * time.Millisecond, 0.05, 10 * time.Millisecond, "| x | 9 ms | 20 ms | 0.45 | ≤ 0.05 ×, ≤ 10 ms | OVER |"},
		{11 * time.Millisecond, time.Second, 0.05, 10 * time.Millisecond, "| x | 11 ms | 1000 ms | 0.01 | ≤ 0.05 ×, ≤ 10 ms | OVER |"},
		// Nothing is no measure.
		{time.Millisecond, 0, 0.05, 0, "| x | 1.00 ms | 0.00 ms | - | ≤ 0.05 × | OVER |"},
		{0, 0, 0.05, 0, "| x | 0.00 ms | 0.00 ms | - | ≤ 0.05 × | OVER |"},
	} {
		f, out := printed(t)
		row(f, "x", test.ours, test.theirs, ms, test.ratio, test.limit)
		if got := strings.TrimSuffix(out.String(), "\n"); got != test.want {
			t.Errorf("%v beside %v: %s, want %s", test.ours, test.theirs, got, test.want)
		}
	}
	f, out := printed(t)
	row(f, "idle", 0.206, 14.779, percent, 0.05, 0.2)
	row(f, "memory", int64(3)<<20, int64(2)<<20, megabytes, 0, 0)
	if want := "| idle | 0.206 % | 14.779 % | 0.01 | ≤ 0.05 ×, ≤ 0.200 % | OVER |\n| memory | 3.0 MB | 2.0 MB | 1.50 |  |  |\n"; out.String() != want {
		t.Errorf("%s, want %s", out, want)
	}
}

func TestPercentile(t *testing.T) {
	ten := []time.Duration{7, 3, 9, 1, 5, 10, 2, 8, 6, 4}
	for _, test := range []struct {
		waits         []time.Duration
		percent, want int
	}{
		{nil, 50, 0}, {ten[:1], 50, 7}, {ten[:1], 99, 7}, {ten[:1], 100, 7}, {ten, 50, 5}, {ten, 51, 6}, {ten, 90, 9}, {ten, 91, 10}, {ten, 99, 10}, {ten, 100, 10}, {ten, 1, 1},
	} {
		if got := percentile(slices.Clone(test.waits), test.percent); int(got) != test.want {
			t.Errorf("p%d of %v is %d, want %d", test.percent, test.waits, got, test.want)
		}
	}
}

func TestSamples(t *testing.T) {
	got := newSamples()
	for i := range 4 {
		got.add("plugpoll", "appears", time.Duration(4-i)*100*time.Millisecond)
		got.add("kubelet", "appears", time.Duration(i+1)*time.Second)
		got.add("kubelet", "leaves", time.Hour)
	}
	f, out := printed(t)
	got.row(f, "told", "appears", 50, 0.25, 0)
	got.row(f, "told", "appears", 100, 0, 0)
	if want := "| told, p50 of 4 | 200 ms | 2000 ms | 0.10 | ≤ 0.25 × | ok |\n| told, max of 4 | 400 ms | 4000 ms | 0.10 |  |  |\n"; out.String() != want {
		t.Errorf("%s, want %s", out, want)
	}
	want := map[string][]float64{"plugpoll": {100, 200, 300, 400}, "kubelet": {1000, 2000, 3000, 4000}}
	if all := got.milliseconds("appears"); !maps.EqualFunc(all, want, slices.Equal) {
		t.Errorf("for pictures: %v, want %v", all, want)
	}
}

// What fails has its row, and the rest is measured all the same.
func TestPartsFail(t *testing.T) {
	f, out := printed(t)
	broken := errors.New("the farm | takes\nno orders")
	rest := func() { row(f, "rest", time.Second, time.Second, ms, 0, 0) }
	err := f.each([]part{{"first", func() { must(broken) }}, {"second", rest}, {"third", func() { rest(); must(broken) }}})
	want := "| first | not measured: the farm / takes no orders | | | | |\n| rest | 1000 ms | 1000 ms | 1.00 |  |  |\n" +
		"| rest | 1000 ms | 1000 ms | 1.00 |  |  |\n| third | not measured: the farm / takes no orders | | | | |\n"
	if out.String() != want {
		t.Errorf("%s, want %s", out, want)
	}
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "first: ") || !strings.Contains(err.Error(), "third: ") || strings.Contains(err.Error(), "second") {
		t.Errorf("error %v", err)
	}
}

func TestPartsEnd(t *testing.T) {
	f, out := printed(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.ctx = ctx
	last := func() {
		cancel()
		must(ctx.Err())
	}
	err := f.each([]part{{"first", last}, {"second", func() { t.Error("measured after the end") }}})
	if !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("error %v, and %q", err, out)
	}
}

func TestCatch(t *testing.T) {
	defer func() {
		if p := recover(); p != "ours" {
			t.Errorf("a panic that is no fault became %v", p)
		}
	}()
	_ = catch(func() { panic("ours") })
}
