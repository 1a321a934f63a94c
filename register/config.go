package register

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/scanner"
)

// Defaults of Config (R10, S1, L2).
const (
	DefaultDialTimeout    = 10 * time.Second
	DefaultInfoTimeout    = 10 * time.Second
	DefaultNotifyTimeout  = 5 * time.Second
	DefaultHandlerTimeout = 3 * time.Minute
	DefaultStopTimeout    = 10 * time.Second
	DefaultLivenessGrace  = 30 * time.Second
)

// Config says what a Manager watches and how long it waits. It is checked by NewManager and copied.
type Config struct {
	// Roots are the directories to scan. At least one; none inside another.
	Roots []scanner.Config
	// Dial connects to a socket. nil: the operating system's unix sockets; required if the filesystem of a root is another one.
	Dial Dialer
	// Peer says whose socket a connection leads to. nil: the operating system does, of its own sockets (Linux: user and process; darwin: user; Windows: nothing).
	Peer PeerFunc
	// AllowedUIDs are the users whose plugins are dealt with (X1, Unix): the socket's owner and the user who listens must both be among them, else the
	// socket is rejected and nothing is sent to it. In a root whose filesystem is not the operating system's only who listens is checked, as Peer says. Empty: anybody.
	AllowedUIDs []int
	// Observe has plugins asked and validated, and neither registered nor told anything (R18). A missing root is then waited for, never made (D8).
	Observe bool
	// LivenessGrace is how long a registered plugin may be unreachable before it is deregistered (L2). 0: DefaultLivenessGrace; negative: for ever.
	LivenessGrace time.Duration
	// DialTimeout bounds connecting, calls of the filesystem that connecting takes among it. 0: DefaultDialTimeout.
	DialTimeout time.Duration
	// InfoTimeout bounds GetInfo. 0: DefaultInfoTimeout.
	InfoTimeout time.Duration
	// NotifyTimeout bounds NotifyRegistrationStatus. 0: DefaultNotifyTimeout.
	NotifyTimeout time.Duration
	// HandlerTimeout is the deadline of a handler call. 0: DefaultHandlerTimeout; negative: none.
	HandlerTimeout time.Duration
	// StopTimeout is how long Run waits for handlers after its context has ended (S1), and at most 1 s of it for calls of filesystems. 0: DefaultStopTimeout.
	StopTimeout time.Duration
	// DeregisterOnStop has every plugin deregistered when Run's context ends (S2).
	DeregisterOnStop bool
	// Seed of the backoff's jitter. 0: a random one.
	Seed uint64
	// Logger gets a line for each change of state (O1), and what the scanner of a root without a Logger of its own says (X1). nil: silence.
	Logger hclog.Logger
}

// Check returns every error NewManager would find, joined; each names its field (C1).
func (c Config) Check() error {
	var errs []error
	if len(c.Roots) == 0 {
		errs = append(errs, errors.New("register: Config.Roots is empty: name a directory to scan"))
	}
	for i, r := range c.Roots {
		for _, err := range joined(r.Check()) {
			errs = append(errs, fmt.Errorf("register: Config.Roots[%d]: %w", i, err))
		}
		if c.Dial == nil && !isOS(r.FS) {
			errs = append(errs, fmt.Errorf("register: Config.Dial is nil, but Config.Roots[%d].FS is %s: sockets of a filesystem that is not the operating system's need a Dialer of their own",
				i, r.FS.Name()))
		}
		for j, other := range c.Roots[:i] {
			if r.Root != "" && other.Root != "" && scanner.Nested(absolute(r), absolute(other), runtime.GOOS) {
				errs = append(errs, fmt.Errorf("register: Config.Roots[%d] (%s) and Config.Roots[%d] (%s) are the same or inside one another: name the outer one only",
					j, scanner.Quote(other.Root), i, scanner.Quote(r.Root)))
			}
		}
	}
	for _, t := range []struct {
		field string
		value time.Duration
	}{
		{"DialTimeout", c.DialTimeout},
		{"InfoTimeout", c.InfoTimeout},
		{"NotifyTimeout", c.NotifyTimeout},
		{"StopTimeout", c.StopTimeout},
	} {
		if t.value < 0 {
			errs = append(errs, fmt.Errorf("register: Config.%s is %v: it must not be negative (0 means the default)", t.field, t.value))
		}
	}
	return errors.Join(append(errs, c.checkUIDs(runtime.GOOS)...)...)
}

// checkUIDs checks that what AllowedUIDs asks for can be known (X1).
func (c Config) checkUIDs(goos string) (errs []error) {
	if len(c.AllowedUIDs) == 0 {
		return nil
	}
	for i, uid := range c.AllowedUIDs {
		if uid < 0 {
			errs = append(errs, fmt.Errorf("register: Config.AllowedUIDs[%d] is %d: a uid is not negative", i, uid))
		}
	}
	if goos == "windows" {
		errs = append(errs, errors.New("register: Config.AllowedUIDs is set, but Windows has no uids: leave it empty"))
	}
	for i, r := range c.Roots {
		if c.Peer == nil && !isOS(r.FS) {
			errs = append(errs, fmt.Errorf("register: Config.Peer is nil, but Config.AllowedUIDs is set and Config.Roots[%d].FS is %s: only a PeerFunc of your own can tell who listens there",
				i, r.FS.Name()))
		}
	}
	return errs
}

func (c Config) withDefaults() Config {
	for _, t := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&c.DialTimeout, DefaultDialTimeout},
		{&c.InfoTimeout, DefaultInfoTimeout},
		{&c.NotifyTimeout, DefaultNotifyTimeout},
		{&c.HandlerTimeout, DefaultHandlerTimeout},
		{&c.StopTimeout, DefaultStopTimeout},
		{&c.LivenessGrace, DefaultLivenessGrace},
	} {
		if *t.value == 0 {
			*t.value = t.standard
		}
	}
	c.Roots, c.AllowedUIDs = slices.Clone(c.Roots), slices.Clone(c.AllowedUIDs)
	if c.Observe {
		for i := range c.Roots {
			c.Roots[i].MissingRoot = scanner.WaitForRoot
		}
	}
	switch {
	case c.Dial == nil:
		c.Dial = unixDialer(c.AllowedUIDs)
	case len(c.AllowedUIDs) > 0:
		c.Dial = ownersOnly(c.Dial, c.AllowedUIDs, c.Roots)
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}

// joined returns the errors that errors.Join made one of.
func joined(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the outermost is asked for
		return all.Unwrap()
	}
	return nil
}

func isOS(fs afero.Fs) bool {
	switch fs.(type) {
	case nil, *afero.OsFs, afero.OsFs:
		return true
	}
	return false
}

func absolute(c scanner.Config) string {
	if isOS(c.FS) {
		if abs, err := filepath.Abs(c.Root); err == nil {
			return abs
		}
	}
	return filepath.Clean(c.Root)
}
