package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// Logarithmic axes are linear ones of logarithms: gonum reserves room for the label of a plot.LogScale in the wrong place.

// logOf is the place of a number, 0 too, on a logarithmic axis of numbers.
func logOf(n int) float64 { return math.Log10(float64(n + 1)) }

// mark puts these marks on an axis.
func mark(axis *plot.Axis, marks map[float64]string) {
	var ticks plot.ConstantTicks
	for _, at := range keys(marks) {
		ticks = append(ticks, plot.Tick{Value: at, Label: marks[at]})
	}
	axis.Tick.Marker = ticks
}

func keys(marks map[float64]string) []float64 { return slices.Sorted(maps.Keys(marks)) }

// decades has a logarithmic axis begin and end at a power of ten, and marks each of them.
func decades(axis *plot.Axis, low, high float64, show func(float64) string) {
	axis.Min, axis.Max = math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	marks := map[float64]string{}
	for exponent := axis.Min; exponent <= axis.Max; exponent++ {
		marks[exponent] = show(math.Pow(10, exponent))
	}
	mark(axis, marks)
}

// evenly has an axis go from 0 to a multiple of step, and marks each.
func evenly(axis *plot.Axis, last, step float64) {
	axis.Min, axis.Max = 0, step*math.Ceil(last/step)
	marks := map[float64]string{}
	for at := 0.0; at <= axis.Max; at += step {
		marks[at] = thousands(int(at))
	}
	mark(axis, marks)
}

// microseconds shows a time in the unit that suits it.
func microseconds(v float64) string {
	switch {
	case v < 1e3:
		return fmt.Sprintf("%.3g µs", v)
	case v < 1e6:
		return fmt.Sprintf("%.3g ms", v/1e3)
	}
	return fmt.Sprintf("%.3g s", v/1e6)
}

// thousands shows a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return strings.Join(append([]string{text}, parts...), ",")
}
