package cni

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	gocni "github.com/containerd/go-cni"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/scanner"
)

// Defaults of Config (CN12, CN14, CN16).
const (
	// DefaultConfDir and DefaultBinDir are the operating system's, as containerd documents them.
	DefaultConfDir = gocni.DefaultNetDir
	DefaultBinDir  = gocni.DefaultCNIDir
	// DefaultMaxConfNum is how many files make networks: the first one.
	DefaultMaxConfNum = gocni.DefaultMaxConfNum
	// DefaultMinNetworks is one network: a pod without any is no use.
	DefaultMinNetworks = 1
	// DefaultInterfacePrefix begins the name of a pod's interface: eth0.
	DefaultInterfacePrefix = gocni.DefaultPrefix
	// DefaultStatusInterval is as often as the kubelet reports a node's conditions: asked more often, nobody would hear of it sooner, and each time is a process for each plugin.
	DefaultStatusInterval = 10 * time.Second
	// DefaultStatusTimeout bounds all STATUS verbs of a directory together.
	DefaultStatusTimeout = 10 * time.Second
)

// Config says which directory a Syncer follows and what it makes of it. It is checked by New and copied. The zero value is containerd's default network.
type Config struct {
	// Name is that of the runtime handler the directory belongs to, for people and metrics. "": the default one (CN14).
	Name string
	// FS is the filesystem of ConfDir and BinDirs. nil: the operating system's. Plugins run on the operating system's, whatever this is.
	FS afero.Fs
	// ConfDir is the directory of configuration files. It is never made; one that is missing is waited for. "": DefaultConfDir.
	ConfDir string
	// BinDirs are searched for plugins, in this order. They are never made. nil: DefaultBinDir.
	BinDirs []string
	// MaxConfNum is how many files make networks, the first ones in the order of their names (CN16). 0: DefaultMaxConfNum; negative: all, as containerd's 0.
	MaxConfNum int
	// MinNetworks is how many networks the files must make, the loopback one not counted; fewer cannot be used. 0: DefaultMinNetworks.
	MinNetworks int
	// InterfacePrefix begins the names of a pod's interfaces. "": DefaultInterfacePrefix.
	InterfacePrefix string
	// Loopback has the instance set up the loopback interface as well, after the networks, so that theirs stay eth0 and so on. It is go-cni's, whose
	// cniVersion has no CHECK: the instance's Check fails with it.
	Loopback bool
	// DefaultNetwork is the name of the network that must come first, whatever its file is called (CN9). "": whichever comes first.
	DefaultNetwork string
	// Grace is how long all files may be gone, or the directory, before the network counts as not ready (CN8). 0: at once; negative: for ever.
	Grace time.Duration
	// Interval is the pause between two polls (U6). 0: scanner.DefaultInterval.
	Interval time.Duration
	// StatusInterval is the pause between two STATUS verbs while all is well (CN10). 0: DefaultStatusInterval; negative: they are asked after a reload and while they fail only.
	StatusInterval time.Duration
	// StatusTimeout bounds the STATUS verbs of one asking together (CN12). 0: DefaultStatusTimeout; negative: they are never asked, and no plugin is run.
	StatusTimeout time.Duration
	// Options go to each go-cni instance, twice: for what they set, which goes before this Config, and behind the files' networks for the networks they add.
	Options []gocni.Opt
	// Logger gets a line for each change of state (O1). nil: silence.
	Logger hclog.Logger
	// Seed of the backoff's jitter. 0: a random one.
	Seed uint64
}

// Check returns every error New would find, joined; each names its field (C1). It touches no filesystem.
func (c Config) Check() error {
	var errs []error
	fault := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("cni: Config."+field+" "+format, args...))
	}
	if len(c.Name) > maxHandler || scanner.Clean(c.Name, maxHandler) != c.Name {
		fault("Name", "is %s: it must be UTF-8 without control characters, of at most %d bytes", scanner.Quote(c.Name), maxHandler)
	}
	for i, dir := range c.BinDirs {
		if dir == "" {
			fault(fmt.Sprintf("BinDirs[%d]", i), "is empty: name a directory, or leave BinDirs nil for %s", DefaultBinDir)
		}
	}
	if len(c.InterfacePrefix) > maxPrefix || strings.ContainsAny(c.InterfacePrefix, "/: \t\n\x00") {
		fault("InterfacePrefix", "is %s: it must have at most %d bytes, and neither blanks, slashes nor colons", scanner.Quote(c.InterfacePrefix), maxPrefix)
	}
	if c.MinNetworks < 0 {
		fault("MinNetworks", "is %d: it must not be negative (0 means %d)", c.MinNetworks, DefaultMinNetworks)
	}
	if c.MaxConfNum >= 0 && max(c.MinNetworks, DefaultMinNetworks) > max(c.MaxConfNum, DefaultMaxConfNum) {
		fault("MinNetworks", "is %d, but MaxConfNum allows for %d: there would never be enough", c.MinNetworks, max(c.MaxConfNum, DefaultMaxConfNum))
	}
	if c.Interval < 0 {
		fault("Interval", "is %v: it must not be negative (0 means %v)", c.Interval, scanner.DefaultInterval)
	}
	return errors.Join(errs...)
}

const (
	maxPrefix  = 12  // bytes: the name of an interface of Linux has 15, and a number follows
	maxHandler = 253 // bytes, as those of plugins (R16)
)

func (c Config) withDefaults() Config {
	if c.FS == nil {
		c.FS = afero.NewOsFs()
	}
	if c.ConfDir == "" {
		c.ConfDir = DefaultConfDir
	}
	if _, ok := c.FS.(*afero.OsFs); ok {
		c.ConfDir = scanner.NormalPath(c.ConfDir, runtime.GOOS)
	}
	// The paths of what is in it begin with it, and it is one of the errors' paths.
	for least := len(filepath.VolumeName(c.ConfDir)) + 1; len(c.ConfDir) > least && os.IsPathSeparator(c.ConfDir[len(c.ConfDir)-1]); {
		c.ConfDir = c.ConfDir[:len(c.ConfDir)-1]
	}
	if c.BinDirs == nil {
		c.BinDirs = []string{DefaultBinDir}
	}
	if c.MaxConfNum == 0 {
		c.MaxConfNum = DefaultMaxConfNum
	}
	if c.MinNetworks == 0 {
		c.MinNetworks = DefaultMinNetworks
	}
	if c.InterfacePrefix == "" {
		c.InterfacePrefix = DefaultInterfacePrefix
	}
	if c.StatusInterval == 0 {
		c.StatusInterval = DefaultStatusInterval
	}
	if c.StatusTimeout == 0 {
		c.StatusTimeout = DefaultStatusTimeout
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	c.BinDirs, c.Options = slices.Clone(c.BinDirs), slices.Clone(c.Options)
	return c
}
