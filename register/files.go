package register

import (
	"errors"
	"fmt"
	"sync"
)

// The descriptors that are left to others, so that many plugins never keep a scan from opening a directory (U3): what one root can have open, which is a
// directory for each of its eight calls that may hang and one for the scan that runs, and what the rest of the process may need for logs, events, HTTP and its own
// purposes. Where that would be more than half of the limit it is half.
const (
	reservedForRoot = 9
	reservedForRest = 64
)

var errNoFile = errors.New("too many open files")

// files counts the descriptors of dials and connections.
type files struct {
	mu   sync.Mutex
	most int // 0: there is no limit
	used int
	soft int // the process's limit
}

// limit sets what there is to give from the process's limit of open files. soft 0: there is none.
func (f *files) limit(soft, roots int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.soft, f.most = soft, max(soft-reservedForRest-reservedForRoot*roots, soft/2)
}

// take takes n descriptors, all or none.
func (f *files) take(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.most > 0 && f.used+n > f.most {
		// The text has no number that changes: each would be another cause in the log (O1).
		return fmt.Errorf("%w: of the %d that the process may have %d are kept free from connections: raise its limit (ulimit -n, LimitNOFILE=)",
			errNoFile, f.soft, f.soft-f.most)
	}
	f.used += n
	return nil
}

func (f *files) give(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used -= n
}
