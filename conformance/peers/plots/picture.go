package main

import (
	"bytes"
	"errors"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/plugpoll/plugpoll/conformance/peers/measured"
)

// picture is one file.
type picture struct {
	name string
	// fill puts title, axes and lines into a plot.
	fill func(*plot.Plot, measured.Run) error
}

var pictures = []picture{
	{"latency", latency},
	{"idle", idle},
	{"scan", scan},
}

// errNothing is for a picture without figures.
var errNothing = errors.New("nothing of it was measured")

const (
	width  = 16 * vg.Centimeter
	height = 10 * vg.Centimeter
)

// Colours that differ in lightness as well, for who sees no colours and for grey print; dashes tell them apart once more.
var (
	dark  = color.RGBA{0x00, 0x53, 0x8a, 0xff}
	light = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	grey  = color.RGBA{0x70, 0x70, 0x70, 0xff}
	pale  = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
)

var dashes = []vg.Length{vg.Points(6), vg.Points(3)}

// style is how a line of some kind is drawn, in every picture.
var (
	ourLine   = draw.LineStyle{Color: dark, Width: vg.Points(2)}
	theirLine = draw.LineStyle{Color: light, Width: vg.Points(2), Dashes: dashes}
	barLine   = draw.LineStyle{Color: grey, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(1), vg.Points(2)}}
)

func (p picture) svg(run measured.Run) ([]byte, error) {
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	plot.DefaultFont = sans
	plotter.DefaultFont = sans
	all := plot.New()
	all.Title.TextStyle.Font.Size = vg.Points(13)
	all.Title.Padding = vg.Points(6)
	all.Legend.Padding = vg.Points(4)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = pale, pale
	all.Add(grid)
	if err := p.fill(all, run); err != nil {
		return nil, err
	}
	canvas := vgsvg.New(width, height)
	area := draw.New(canvas)
	all.Draw(draw.Crop(area, vg.Points(4), -vg.Points(12), vg.Points(4), -vg.Points(4)))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return nil, err
	}
	// Who has not the font gets one like it.
	return []byte(strings.ReplaceAll(text.String(), "font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// add draws points joined by a line, each with a mark if mark is not nil, and names it in the legend.
func add(p *plot.Plot, name string, points plotter.XYs, style draw.LineStyle, mark draw.GlyphDrawer) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.LineStyle = style
	p.Add(line)
	if mark == nil {
		p.Legend.Add(name, line)
		return nil
	}
	marks, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: style.Color, Radius: vg.Points(3), Shape: mark}
	p.Add(marks)
	p.Legend.Add(name, line, marks)
	return nil
}
