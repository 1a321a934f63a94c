package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/plugpoll/plugpoll/conformance/peers/measured"
)

// registrars are the lines of pictures that compare.
var registrars = []struct {
	name  string
	style draw.LineStyle
	mark  draw.GlyphDrawer
}{
	{"plugpoll", ourLine, draw.CircleGlyph{}},
	{"kubelet", theirLine, draw.BoxGlyph{}},
}

func latency(p *plot.Plot, run measured.Run) error {
	p.Title.Text = "How soon a new plugin is told that it is registered"
	p.X.Label.Text = "since it listens [ms]"
	p.Y.Label.Text = "plugins told [%]"
	last := 0.0
	for _, r := range registrars {
		for _, wait := range run.Appears[r.name] {
			last = max(last, wait)
		}
	}
	for _, r := range registrars {
		waits := run.Appears[r.name]
		if len(waits) == 0 {
			return errNothing
		}
		name := fmt.Sprintf("%s, %d plugins", r.name, len(waits))
		if err := add(p, name, cumulative(waits, last), r.style, nil); err != nil {
			return err
		}
	}
	evenly(&p.X, last, 100)
	evenly(&p.Y, 100, 25)
	p.Legend.YOffs = vg.Points(10)
	p.Legend.XOffs = -vg.Points(10)
	return nil
}

// cumulative has the share, in percent, of waits that are over, as steps up to last.
func cumulative(waits []float64, last float64) plotter.XYs {
	sorted := slices.Sorted(slices.Values(waits))
	points := plotter.XYs{{X: 0, Y: 0}}
	for i, wait := range sorted {
		before, after := 100*float64(i)/float64(len(sorted)), 100*float64(i+1)/float64(len(sorted))
		points = append(points, plotter.XY{X: wait, Y: before}, plotter.XY{X: wait, Y: after})
	}
	return append(points, plotter.XY{X: max(last, sorted[len(sorted)-1]), Y: 100})
}

// idleBar is what plugpoll may take, in percent of a processor.
const idleBar = 0.2

func idle(p *plot.Plot, run measured.Run) error {
	p.Title.Text = "What a registrar takes while nothing happens"
	p.X.Label.Text = "registered plugins"
	p.Y.Label.Text = "time of a processor [%]"
	if len(run.Idle) == 0 {
		return errNothing
	}
	counts := map[float64]string{}
	low, high := idleBar/10, idleBar*10
	for _, r := range registrars {
		points := plotter.XYs{}
		for _, i := range run.Idle {
			x := logOf(i.Plugins)
			counts[x] = thousands(i.Plugins)
			// Less than can be measured has no place on this axis.
			y := max(i.Percent[r.name], 0.001)
			low, high = min(low, y), max(high, y)
			points = append(points, plotter.XY{X: x, Y: math.Log10(y)})
		}
		slices.SortFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		if err := add(p, r.name, points, r.style, r.mark); err != nil {
			return err
		}
	}
	mark(&p.X, counts)
	right, bar := slices.Max(keys(counts)), math.Log10(idleBar)
	if err := add(p, fmt.Sprintf("bar for plugpoll: %.1f %%", idleBar), plotter.XYs{{X: 0, Y: bar}, {X: right, Y: bar}}, barLine, nil); err != nil {
		return err
	}
	decades(&p.Y, low, high, func(v float64) string { return fmt.Sprintf("%g", v) })
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(10), -vg.Points(10)
	return nil
}

func scan(p *plot.Plot, run measured.Run) error {
	p.Title.Text = "What a look takes, and what the system itself takes for it"
	p.X.Label.Text = "entries in the tree"
	p.Y.Label.Text = "time of a look"
	place := placeOf(run.Scan)
	counts := map[float64]string{}
	low, high := math.Inf(1), 0.0
	for _, kind := range []struct {
		kind, look, floor string
		color             draw.LineStyle
		mark              draw.GlyphDrawer
	}{
		{measured.First, "first scan", "getdents of each directory", theirLine, draw.BoxGlyph{}},
		{measured.Unchanged, "poll, nothing changed", "fstatat of each directory", ourLine, draw.CircleGlyph{}},
	} {
		looks, floors := plotter.XYs{}, plotter.XYs{}
		for _, s := range run.Scan {
			if s.Place != place || s.Kind != kind.kind {
				continue
			}
			x := math.Log10(float64(s.Entries))
			counts[x] = thousands(s.Entries)
			looks, floors = append(looks, plotter.XY{X: x, Y: math.Log10(s.Look)}), append(floors, plotter.XY{X: x, Y: math.Log10(s.Floor)})
			low, high = min(low, s.Look, s.Floor), max(high, s.Look, s.Floor)
		}
		if len(looks) == 0 {
			return errNothing
		}
		solid, dashed := kind.color, kind.color
		solid.Dashes, dashed.Dashes, dashed.Width = nil, dashes, vg.Points(1)
		if err := add(p, kind.look, looks, solid, kind.mark); err != nil {
			return err
		}
		if err := add(p, "floor: "+kind.floor, floors, dashed, kind.mark); err != nil {
			return err
		}
	}
	mark(&p.X, counts)
	decades(&p.Y, low, high*10, microseconds) // room for the legend
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(10), -vg.Points(10)
	return nil
}

// placeOf is the place whose looks are drawn: a disk, if one was measured.
func placeOf(all []measured.Scan) string {
	place := ""
	for _, s := range all {
		if s.Place == "disk" || place == "" {
			place = s.Place
		}
	}
	return place
}
