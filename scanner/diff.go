package scanner

// Kind is what happened to a path between two snapshots.
type Kind int

// The kinds of a Change.
const (
	Added Kind = iota + 1
	Replaced
	Removed
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Added:
		return "added"
	case Replaced:
		return "replaced"
	case Removed:
		return "removed"
	}
	return "unknown"
}

// Change is one difference between two snapshots. For Removed, Entry is the one that was there.
type Change struct {
	Kind  Kind
	Entry Entry
}

// Diff returns what changed from old to next, in the order of paths. Replaced means that the identity differs and nothing more (D6), or of a file
// its Content, Problem or Detail (CN2); an entry that only became stale or was confirmed again is no change. Either may be nil.
func Diff(old, next *Snapshot) []Change {
	if old == next {
		return nil
	}
	var changes []Change
	a, b := old.list(), next.list()
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Path < b[0].Path:
			changes = append(changes, Change{Removed, a[0]})
			a = a[1:]
		case len(a) == 0 || b[0].Path < a[0].Path:
			changes = append(changes, Change{Added, b[0]})
			b = b[1:]
		default:
			if a[0].ID != b[0].ID || a[0].Maybe != b[0].Maybe || !sameFile(a[0].File, b[0].File) {
				changes = append(changes, Change{Replaced, b[0]})
			}
			a, b = a[1:], b[1:]
		}
	}
	return changes
}

func (s *Snapshot) list() []Entry {
	if s == nil {
		return nil
	}
	return s.entries
}
