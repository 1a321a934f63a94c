package scanner

import (
	"slices"
	"strings"
)

// maxExamples is how many names an Ignored keeps (D9).
const maxExamples = 20

// reasons in the order of their texts, which is the order in Snapshot.Ignored.
var reasons = [...]Reason{OtherName, DanglingLink, DotName, LinkToDirectory, NotSocket, TooDeep, Unreadable}

// tally counts what one directory holds besides what is selected. Names come sorted, so the first examples are the ones to keep.
type tally struct {
	dir   string
	count [len(reasons)]Ignored
}

func (t *tally) add(r Reason, name string) *Ignored {
	i := slices.Index(reasons[:], r)
	c := &t.count[i]
	if c.Count < maxExamples {
		c.Examples = append(c.Examples, strings.Clone(name))
	}
	c.Count++
	return c
}

func (t *tally) unreadable(name string, err error) {
	if c := t.add(Unreadable, name); c.Count == 1 {
		c.Detail = err.Error()
	}
}

func (t *tally) appendTo(list []Ignored) []Ignored {
	for i, c := range t.count {
		if c.Count > 0 {
			c.Dir, c.Reason = t.dir, reasons[i]
			list = append(list, c)
		}
	}
	return list
}

func (g Ignored) equal(o Ignored) bool {
	return g.Dir == o.Dir && g.Reason == o.Reason && g.Count == o.Count && g.Detail == o.Detail && slices.Equal(g.Examples, o.Examples)
}
