package scanner

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/afero"
)

// Defaults of Config.
const (
	DefaultInterval   = 200 * time.Millisecond
	DefaultMaxDepth   = 16
	DefaultMaxEntries = 100_000
	DefaultRootGrace  = 10 * time.Second
	// DefaultCallTimeout is long for a disk and short for a person. A call that is given up too early costs little: what was known stays.
	DefaultCallTimeout = 5 * time.Second
)

// MissingRoot says what becomes of a root that is not there (D8).
type MissingRoot int

const (
	// WaitForRoot waits until somebody makes the root. It is the zero value.
	WaitForRoot MissingRoot = iota
	// CreateRoot makes the root, mode 0755 (on Windows with access for SYSTEM and Administrators only), until it has been seen once.
	// A root that disappears later is waited for.
	CreateRoot
)

// Config says what to scan. It is checked by New and copied.
type Config struct {
	// FS is the filesystem that is scanned. nil: the operating system's.
	FS afero.Fs
	// Root is the directory to scan, as FS names it. Required. It may be a symbolic link, resolved anew by each scan (D5), and need not exist (D8).
	Root string
	// Select says what is looked for. The zero value selects sockets; see Files.
	Select Selector
	// Interval is the pause from the end of one scan to the start of the next (U6). 0: DefaultInterval.
	Interval time.Duration
	// MaxDepth is how many levels of directories below the root are read (D4). 0: DefaultMaxDepth; negative: the root alone.
	MaxDepth int
	// MaxEntries is how many listed names that are not directories one scan takes (D4); beyond it a directory is partial. 0: DefaultMaxEntries; negative: no limit.
	MaxEntries int
	// MissingRoot says what to do while Root does not exist. The zero value waits.
	MissingRoot MissingRoot
	// RootGrace is how long the root must be missing, be no directory, or be on another device than before, in the same way at each look, until
	// what was known in it counts as gone (U5). What is found meanwhile counts at once. A root that was replaced on its device is an ordinary
	// change. 0: DefaultRootGrace; negative: it never counts as gone.
	RootGrace time.Duration
	// CallTimeout is how long one call of the filesystem may take (U4). One that takes longer is given up: what is known at its path, or below it,
	// stays as it is, and the scan goes on elsewhere; the path is looked at again once the call has returned. Once a scan has given one up,
	// others get less time, and so does a path that has just hung. 0: DefaultCallTimeout; negative: as
	// long as it likes, and a call that hangs holds up its root.
	CallTimeout time.Duration
	// Each is called for every entry a scan reads, from the goroutine of Scan (D9); what is in a directory that is skipped is not read. nil: none.
	Each func(path string, v Verdict)
	// Logger gets a Trace line per scan, Info when the root was made, and Warn for each directory that anybody may write to, once, the first 20 of
	// them: the root, those below that are read, and those above it at the first scan (X1). nil: silence.
	Logger hclog.Logger
}

// Check returns every error New would find, joined; each names its field (C1).
func (c Config) Check() error {
	var errs []error
	if c.Root == "" {
		errs = append(errs, errors.New("scanner: Config.Root is empty: name the directory to scan"))
	}
	if c.Interval < 0 {
		errs = append(errs, fmt.Errorf("scanner: Config.Interval is %v: it must not be negative (0 means %v)", c.Interval, DefaultInterval))
	}
	if c.MissingRoot != WaitForRoot && c.MissingRoot != CreateRoot {
		errs = append(errs, fmt.Errorf("scanner: Config.MissingRoot is %d: use WaitForRoot or CreateRoot", c.MissingRoot))
	}
	if err := c.Select.check(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.FS == nil {
		c.FS = afero.NewOsFs()
	}
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	if c.MaxDepth == 0 {
		c.MaxDepth = DefaultMaxDepth
	}
	if c.MaxEntries == 0 {
		c.MaxEntries = DefaultMaxEntries
	}
	if c.RootGrace == 0 {
		c.RootGrace = DefaultRootGrace
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}
