package scanner

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"
	"time"
)

// Entry is one socket, or what may be one, or a file.
type Entry struct {
	// Path is Config.Root joined with the names below it, as given to the filesystem.
	Path string
	// ID tells this instance from an earlier or later one at the same path.
	ID Identity
	// Maybe is true if the filesystem cannot say whether this is a socket: dialling decides (D2).
	Maybe bool
	// File is what was read, if files are selected; nil for sockets. ID and Maybe are zero then.
	File *File
	// Stale is nil for an entry this scan saw. Otherwise the entry was seen by an earlier scan and this one could neither see nor rule it out (U1, U2).
	Stale *Stale
}

// Stale says why and since when an entry is unconfirmed.
type Stale struct {
	// Since is when the first scan that could not confirm the entry started.
	Since time.Time
	// Err is why. Its text has no raw control characters.
	Err error
}

// Ignored counts what one directory holds besides what is selected, by reason (D9).
type Ignored struct {
	// Dir is the directory's path.
	Dir string
	// Reason is why these entries are no candidates.
	Reason Reason
	// Count is how many there are, Examples the names of the first 20, sorted.
	Count    int
	Examples []string
	// Detail is, for Unreadable, the error of the first example.
	Detail string
}

// Snapshot is what one scan found: sorted by path and immutable. The zero value, and nil, is an empty world.
type Snapshot struct {
	entries []Entry
	ignored []Ignored
	root    rootState
}

// NewSnapshot returns a snapshot of these entries, for tests and other sources of entries. It copies and sorts them; no path may be there twice.
func NewSnapshot(entries []Entry, ignored []Ignored) *Snapshot {
	s := &Snapshot{entries: slices.Clone(entries), ignored: slices.Clone(ignored)}
	slices.SortFunc(s.entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(s.ignored, func(a, b Ignored) int {
		return cmp.Or(strings.Compare(a.Dir, b.Dir), strings.Compare(string(a.Reason), string(b.Reason)))
	})
	return s
}

// All yields the entries in the order of their paths.
func (s *Snapshot) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if s == nil {
			return
		}
		for _, e := range s.entries {
			if !yield(e) {
				return
			}
		}
	}
}

// At returns the entry at path, and whether there is one.
func (s *Snapshot) At(path string) (Entry, bool) {
	if s == nil {
		return Entry{}, false
	}
	i := sort.Search(len(s.entries), func(i int) bool { return s.entries[i].Path >= path })
	if i < len(s.entries) && s.entries[i].Path == path {
		return s.entries[i], true
	}
	return Entry{}, false
}

// Len is the number of entries.
func (s *Snapshot) Len() int {
	if s == nil {
		return 0
	}
	return len(s.entries)
}

// Ignored tells what was seen and is no candidate, by directory and reason, sorted. The slice is shared: do not change it.
func (s *Snapshot) Ignored() []Ignored {
	if s == nil {
		return nil
	}
	return s.ignored
}
