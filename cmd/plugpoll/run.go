package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

const runHelp = `Watch directories and register the plugins whose sockets appear there, or follow network configuration, or both.

The directories and what is below them are read again and again; no inotify is needed. Names that begin with
a dot are skipped. A plugin of a type that Kubernetes knows (CSIPlugin, DevicePlugin, DRAPlugin) is asked what
it is, checked by the rules for its type and told whether it is registered. It is only recorded, not handed to
a kubelet: the log and the events show what is registered. One that stops answering is unreachable: it is asked
again and again, and deregistered when that has lasted for --liveness-grace.

Where a kubelet is at work plugpoll does not start, since each plugin would be told by both what it is. A
kubelet is taken to serve DIR if a process listens at DIR/kubelet.sock or DIR/../device-plugins/kubelet.sock.
With --observe plugpoll looks on there, and anywhere else: it asks plugins what they are and checks that, but
registers none, tells none anything and makes no directory.

With --cni-conf-dir the CNI configuration in DIR is followed as well, or alone: which files are used, whether the
network is ready, and what is wrong (plugpoll cni). Nothing is made or changed there, and no pod is set up; the
only thing that is run are the plugins of the networks in use, which are asked for their STATUS, as the daemon's user.

The log goes to standard error. If nobody reads it the daemon works on; lines that do not fit in memory are
dropped, and a line says how many. With -o json each change is one line on standard output (docs/api.md); the
first is the whole state. If its reader goes away the daemon stops and exits with 1.

plugpoll status, why and watch ask it at --listen, where a browser finds a page as well, and monitoring /metrics,
/healthz and /readyz. Nothing can be changed there. A port that is taken is a warning, unless --listen was given.

SIGINT or SIGTERM stops it cleanly: plugins stay registered, unless --deregister-on-stop is given. A second
signal ends it at once. SIGHUP has it read everything and retry what failed now.

A duration or a limit of 0 means the default, but for --cni-max-conf-num and --cni-grace.`

// runTitles are the headings in the list of run's flags, by the flag that each stands before.
var runTitles = map[string]string{
	"dir":          "What to watch",
	"observe":      "What to do with plugins",
	"cni-conf-dir": "Network configuration",
	"dial-timeout": "How long to wait",
	"listen":       "Where to answer",
	"output":       "What to print",
}

const runExamples = `  plugpoll run --observe --dir /var/lib/kubelet/plugins_registry
  plugpoll run --dir /run/a --dir /run/b -o json --log-level warn
  plugpoll run --dir /run/plugins --allowed-uid 0 --allowed-uid 1000
  plugpoll run --cni-conf-dir /etc/cni/net.d --cni-conf-dir kata=/etc/cni/kata.d --cni-bin-dir /opt/cni/bin`

// runOptions are the flags of run.
type runOptions struct {
	dirs                []string
	interval            time.Duration
	missingRoot         *choice
	observe, exclusive  bool
	allowed             uids
	deregister          bool
	logLevel, logFormat *choice
	output              *choice

	dial, info, notify, stop time.Duration
	liveness, grace, call    time.Duration
	maxDepth, maxEntries     int
	cni                      cniOptions
	web                      webOptions
}

func newRun() *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:     "run --dir DIR...",
		Short:   "Watch directories and register the plugins in them, follow network configuration",
		Long:    runHelp,
		Example: runExamples,
		Args:    noArgs("name directories with --dir DIR"),

		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	o.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, stderr := newLogger(os.Stderr, o.logLevel.value, o.logFormat.value)
		defer stderr.close(lastLines)
		cfg, err := o.config(cmd, log)
		if err != nil {
			return err
		}
		configs, err := o.cni.configs(cmd, o.interval, log)
		if err != nil {
			return err
		}
		if err := o.web.check(cmd, o.dirs); err != nil {
			return err
		}
		if !o.observe && !o.exclusive {
			if err := keepAway(cmd.Context(), cfg.Roots, log); err != nil {
				return err
			}
		}
		d, err := newDaemon(cfg, configs, log, stderr)
		if err != nil {
			return err
		}
		d.web = o.web
		if o.output.value == "json" {
			d.events = cmd.OutOrStdout()
		}
		return d.run(cmd.Context())
	}
	return cmd
}

func (o *runOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	titled(cmd, runTitles)
	f.StringArrayVar(&o.dirs, "dir", nil, "`directory` to watch; may be given several times")
	must(cmd.MarkFlagDirname("dir"))
	o.missingRoot = addChoice(cmd, "missing-root", "", "create", "if a directory does not exist at start: create it, or wait until it is there; --observe always waits", "create", "wait")
	addDuration(cmd, &o.interval, "interval", scanner.DefaultInterval, "pause between two readings of a directory, more where one takes long")
	addLimits(cmd, &o.maxDepth, &o.maxEntries)

	f.BoolVar(&o.observe, "observe", false, "ask plugins and check their answers, but register none and tell none anything; those of networks are asked for their STATUS all the same")
	f.BoolVar(&o.exclusive, "exclusive", false, "start even if a kubelet serves the directory: its plugins are meant for plugpoll")
	f.Var(&o.allowed, "allowed-uid", "`uid` whose plugins are dealt with, both as owner of the socket and as listener, others are rejected; may be given several times (default anybody)")
	complete(cmd, "allowed-uid")
	f.BoolVar(&o.deregister, "deregister-on-stop", false, "deregister every plugin when stopped")

	o.cni.add(cmd)

	addDuration(cmd, &o.dial, "dial-timeout", register.DefaultDialTimeout, "how long connecting to a socket may take")
	addDuration(cmd, &o.info, "info-timeout", register.DefaultInfoTimeout, "how long a plugin may take to say what it is")
	addDuration(cmd, &o.notify, "notify-timeout", register.DefaultNotifyTimeout, "how long a plugin may take to hear the result")
	addDuration(cmd, &o.liveness, "liveness-grace", register.DefaultLivenessGrace, "how long a registered plugin may be unreachable until it is deregistered; negative: for ever")
	addDuration(cmd, &o.grace, "root-grace", scanner.DefaultRootGrace, "how long a directory may be missing or unmounted until its plugins are deregistered; negative: for ever")
	addDuration(cmd, &o.call, "call-timeout", scanner.DefaultCallTimeout, "how long a call of the filesystem may take until its path is left alone; negative: for ever")
	addDuration(cmd, &o.stop, "stop-timeout", register.DefaultStopTimeout, "how long to wait for running calls when stopped")

	o.web.add(cmd)

	o.output = addOutput(cmd, "what to print on standard output: nothing (text) or one event per line (json)")
	o.logLevel = addChoice(cmd, "log-level", "", "info", "how much to log", "trace", "debug", "info", "warn", "error", "off")
	o.logFormat = addChoice(cmd, "log-format", "", "text", "form of the log", "text", "json")
}

// addLimits gives cmd the limits of a scan.
func addLimits(cmd *cobra.Command, depth, entries *int) {
	cmd.Flags().IntVar(depth, "max-depth", scanner.DefaultMaxDepth, "how many `levels` of subdirectories to read; negative: none")
	cmd.Flags().IntVar(entries, "max-entries", scanner.DefaultMaxEntries, "how many `names` to read at most, directories not counted; negative: no limit")
	complete(cmd, "max-depth")
	complete(cmd, "max-entries")
}

// config is what the flags mean, or a usageError that names each flag that is wrong.
func (o *runOptions) config(cmd *cobra.Command, log hclog.Logger) (register.Config, error) {
	c := register.Config{
		DialTimeout: o.dial, InfoTimeout: o.info, NotifyTimeout: o.notify, StopTimeout: o.stop,
		Observe: o.observe, AllowedUIDs: o.allowed, LivenessGrace: o.liveness, DeregisterOnStop: o.deregister, Logger: log,
	}
	if err := o.contradiction(); err != nil {
		return c, err
	}
	if len(o.dirs) == 0 {
		if len(o.cni.confDirs) > 0 {
			return c, noUseWithoutDir(cmd) // network configuration alone
		}
		return c, usage(need(cmd, "dir", "name a directory to watch (plugpoll run --dir DIR), or one of network configuration (--cni-conf-dir DIR)", ""))
	}
	missing := scanner.CreateRoot
	if o.missingRoot.value == "wait" {
		missing = scanner.WaitForRoot
	}
	for _, dir := range o.dirs {
		dir, err := absolute("--dir", dir)
		if err != nil {
			return c, err
		}
		c.Roots = append(c.Roots, scanner.Config{
			Root: dir, Interval: o.interval, MissingRoot: missing, MaxDepth: o.maxDepth, MaxEntries: o.maxEntries,
			RootGrace: o.grace, CallTimeout: o.call, Logger: log.Named("scanner"),
		})
	}
	return c, flagErrors(c.Check())
}

// noUseWithoutDir refuses the flags that are about directories of sockets alone.
func noUseWithoutDir(cmd *cobra.Command) error {
	var errs []error
	for _, flag := range []string{
		"missing-root", "max-depth", "max-entries", "observe", "exclusive", "allowed-uid", "deregister-on-stop",
		"dial-timeout", "info-timeout", "notify-timeout", "liveness-grace", "root-grace", "call-timeout", "stop-timeout",
	} {
		why := ""
		if flag == "observe" {
			why = "network plugins are asked for their STATUS with it as well; "
		}
		if cmd.Flags().Changed(flag) {
			errs = append(errs, fmt.Errorf("--%s is of no use without a directory of sockets: %sname one with --dir DIR", flag, why))
		}
	}
	return usage(errs...)
}

// contradiction says which flags cannot be meant together. A --missing-root create beside --observe is none: looking on never makes anything (D8).
func (o *runOptions) contradiction() error {
	var errs []error
	if o.observe && o.exclusive {
		errs = append(errs, errors.New("--exclusive and --observe: one has plugins registered, the other has none; give only one of them"))
	}
	if o.observe && o.deregister {
		errs = append(errs, errors.New("--deregister-on-stop and --observe: nothing is registered then; give only one of them"))
	}
	return usage(errs...)
}

// absolute is dir seen from the root, so that what people read does not depend on where the daemon was started. Nothing else is changed: what a ".."
// behind a link leads to is for the filesystem to say.
func absolute(flag, dir string) (string, error) {
	if dir == "" || filepath.IsAbs(dir) {
		return dir, nil
	}
	if filepath.VolumeName(dir) != "" || os.IsPathSeparator(dir[0]) {
		return filepath.Abs(dir) // C:dir and \dir on Windows
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("%s %s is relative: %w", flag, scanner.Quote(dir), err)
	}
	if dir == "." {
		return wd, nil
	}
	return strings.TrimSuffix(wd, string(filepath.Separator)) + string(filepath.Separator) + dir, nil
}

// Fields of the configuration, as they begin an error of its check or name a second root in it.
var (
	rootField   = regexp.MustCompile(`^(?:register: Config\.Roots\[\d+\]: )?scanner: Config\.(\w+)`)
	field       = regexp.MustCompile(`^register: Config\.(\w+)(?:\[\d+\])?`)
	secondField = regexp.MustCompile(`\) and Config\.Roots\[\d+\] \(`)
)

var flagOf = map[string]string{
	"Root": "--dir", "Roots": "--dir", "Interval": "--interval", "MissingRoot": "--missing-root",
	"DialTimeout": "--dial-timeout", "InfoTimeout": "--info-timeout", "NotifyTimeout": "--notify-timeout", "StopTimeout": "--stop-timeout",
	"AllowedUIDs": "--allowed-uid",
}

// flagErrors says what Config.Check found with the names of flags, each once.
func flagErrors(err error) error {
	if err == nil {
		return nil
	}
	var errs []error
	seen := map[string]bool{}
	// One error a line: paths are quoted in them.
	for text := range strings.SplitSeq(err.Error(), "\n") {
		for _, re := range []*regexp.Regexp{rootField, field} {
			if m := re.FindStringSubmatch(text); m != nil && flagOf[m[1]] != "" {
				text = flagOf[m[1]] + text[len(m[0]):]
			}
		}
		if loc := secondField.FindStringIndex(text); loc != nil {
			text = text[:loc[0]] + ") and --dir (" + text[loc[1]:]
		}
		if !seen[text] {
			seen[text] = true
			errs = append(errs, errors.New(text))
		}
	}
	return usage(errs...)
}
