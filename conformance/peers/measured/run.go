package measured

import (
	"encoding/json"
	"fmt"
	"os"
)

// Run is what one run has measured. What is missing was not measured.
type Run struct {
	// About says when, where and of what.
	About string `json:"about"`
	// Appears has by registrar how long plugins that listened waited until they were told, in milliseconds.
	Appears map[string][]float64 `json:"appears,omitempty"`
	// Idle is what the registrars take while nothing happens.
	Idle []Idle `json:"idle,omitempty"`
	// Scan is what looks of plugpoll take.
	Scan []Scan `json:"scan,omitempty"`
}

// Idle is one measurement of all registrars with so many plugins.
type Idle struct {
	Plugins int                `json:"plugins"`
	Percent map[string]float64 `json:"percent"` // of a processor, by registrar
}

// Scan is one kind of look at a tree, and its floor: what the system itself takes for it.
type Scan struct {
	Place   string  `json:"place"` // what the tree is on
	Entries int     `json:"entries"`
	Kind    string  `json:"kind"`  // Unchanged or First
	Look    float64 `json:"look"`  // microseconds
	Floor   float64 `json:"floor"` // microseconds
}

// The kinds of looks that are kept.
const (
	Unchanged = "unchanged" // a poll that finds all as it was
	First     = "first"     // the first scan
)

// Read reads a Run from a file.
func Read(file string) (Run, error) {
	var r Run
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return Run{}, fmt.Errorf("reading what was measured from %s: %w", file, err)
	}
	return r, nil
}

// Write writes a Run to a file, one value on a line at most, so that differences can be read.
func (r Run) Write(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing what was measured to %s: %w", file, err)
	}
	return nil
}
