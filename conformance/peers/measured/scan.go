package measured

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// ParseScan reads the output of the scanner's BenchmarkScan. Kinds of looks that are not kept are left out; that none is there, or one without its figures, is an error.
func ParseScan(output io.Reader) ([]Scan, error) {
	var all []Scan
	reader := benchfmt.NewReader(output, "the benchmark")
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, record
		case *benchfmt.Result:
			scan, kept, err := scanOf(record)
			if err != nil {
				return nil, err
			}
			if kept {
				all = append(all, scan)
			}
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the benchmark has measured no scan")
	}
	return all, nil
}

// scanOf reads Scan/PLACE/ENTRIES/KIND-PROCESSORS.
func scanOf(r *benchfmt.Result) (s Scan, kept bool, err error) {
	_, parts := r.Name.Parts()
	if string(r.Name.Base()) != "Scan" || len(parts) < 3 {
		return Scan{}, false, nil
	}
	field := func(i int) string { return strings.TrimPrefix(string(parts[i]), "/") }
	s = Scan{Place: field(0), Kind: field(2)}
	if s.Kind != Unchanged && s.Kind != First {
		return Scan{}, false, nil
	}
	if s.Entries, err = strconv.Atoi(field(1)); err != nil {
		return Scan{}, false, fmt.Errorf("%s: %w", r.Name, err)
	}
	for unit, to := range map[string]*float64{"look-µs": &s.Look, "floor-µs": &s.Floor} {
		var ok bool
		if *to, ok = r.Value(unit); !ok {
			return Scan{}, false, fmt.Errorf("%s has no %s", r.Name, unit)
		}
	}
	return s, true, nil
}
