package measured

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	for _, want := range []Run{
		{About: "nothing"},
		{
			About:   "Measured today",
			Appears: map[string][]float64{"plugpoll": {0.25, 80}, "kubelet": {500.125}},
			Idle:    []Idle{{Plugins: 0, Percent: map[string]float64{"plugpoll": 0.1, "kubelet": 0}}},
			Scan:    []Scan{{Place: "disk", Entries: 20, Kind: First, Look: 91.5, Floor: 9.96}},
		},
	} {
		if err := want.Write(file); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(file); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	if err := os.WriteFile(file, []byte(`{"idle": 3}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v", err)
	}
	gone := filepath.Join(file, "none")
	if _, err := Read(gone); err == nil || !strings.Contains(err.Error(), gone) {
		t.Errorf("error %v", err)
	}
	if err := (Run{}).Write(filepath.Join(t.TempDir(), "none", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

const output = `goos: linux
pkg: github.com/plugpoll/plugpoll/scanner
BenchmarkScan/disk/20/unchanged-2         	   24974	         1.462 floor-µs	         5.147 look-µs	         3.477 look/floor
BenchmarkScan/disk/20/first-2             	    2150	         9.965 floor-µs	        91.50 look-µs	         8.965 look/floor
BenchmarkScan/disk/1000/filepath.WalkDir-2 	     276	       262.0 floor-µs	       505.1 look-µs	         1.847 look/floor
BenchmarkScan/tmpfs/100000/unchanged      	      61	      1403 floor-µs	      1770 look-µs	         1.187 look/floor
BenchmarkOther/tmpfs/100000/unchanged     	      61	      1403 ns/op
PASS
ok  	github.com/plugpoll/plugpoll/scanner	11.396s
`

func TestParseScan(t *testing.T) {
	got, err := ParseScan(strings.NewReader(output))
	want := []Scan{
		{"disk", 20, Unchanged, 5.147, 1.462},
		{"disk", 20, First, 91.5, 9.965},
		{"tmpfs", 100000, Unchanged, 1770, 1403},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for what, broken := range map[string]string{
		"nothing":       "PASS\n",
		"no scan":       "BenchmarkScan/disk/20 1 5 look-µs\n",
		"no floor":      "BenchmarkScan/disk/20/first-2 1 5 look-µs\n",
		"no number":     "BenchmarkScan/disk/many/first-2 1 5 look-µs 4 floor-µs\n",
		"a broken line": output + "BenchmarkScan/disk/20/first-2 1 five look-µs\n",
	} {
		if got, err := ParseScan(strings.NewReader(broken)); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
