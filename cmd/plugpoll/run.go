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

const runHelp = `Watch directories and register the plugins whose sockets appear there.

The directories and what is below them are read again and again; no inotify is needed. Names that begin with
a dot are skipped. A plugin of a type that Kubernetes knows (CSIPlugin, DevicePlugin, DRAPlugin) is asked what
it is, checked by the rules for its type and told whether it is registered. It is only recorded, not handed to
a kubelet: the log and the events show what is registered.

The log goes to standard error. If nobody reads it the daemon works on; lines that do not fit in memory are
dropped, and a line says how many. With -o json each change is one line on standard output (docs/api.md); the
first is the whole state. If its reader goes away the daemon stops and exits with 1.

SIGINT or SIGTERM stops it cleanly: plugins stay registered, unless --deregister-on-stop is given. A second
signal ends it at once. SIGHUP has it read everything and retry what failed now.

A duration or a limit of 0 means the default.`

// runOptions are the flags of run.
type runOptions struct {
	dirs                []string
	interval            time.Duration
	missingRoot         *choice
	deregister          bool
	logLevel, logFormat *choice
	output              *choice

	dial, info, notify, stop time.Duration
	grace, call              time.Duration
	maxDepth, maxEntries     int
}

func newRun() *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:     "run --dir DIR...",
		Short:   "Watch directories and register the plugins in them",
		Long:    runHelp,
		Example: "  plugpoll run --dir /var/lib/kubelet/plugins_registry\n  plugpoll run --dir /run/a --dir /run/b -o json --log-level warn",
		Args:    noArgs("name directories with --dir DIR"),

		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.dirs, "dir", nil, "`directory` to watch; may be given several times")
	must(cmd.MarkFlagDirname("dir"))
	f.DurationVar(&o.interval, "interval", scanner.DefaultInterval, "pause between two readings of a directory, more where one takes long")
	o.missingRoot = addChoice(cmd, "missing-root", "", "create", "if a directory does not exist at start: create it, or wait until it is there", "create", "wait")
	f.BoolVar(&o.deregister, "deregister-on-stop", false, "deregister every plugin when stopped")
	o.logLevel = addChoice(cmd, "log-level", "", "info", "how much to log", "trace", "debug", "info", "warn", "error", "off")
	o.logFormat = addChoice(cmd, "log-format", "", "text", "form of the log", "text", "json")
	o.output = addOutput(cmd, "what to print on standard output: nothing (text) or one event per line (json)")
	f.DurationVar(&o.dial, "dial-timeout", register.DefaultDialTimeout, "how long connecting to a socket may take")
	f.DurationVar(&o.info, "info-timeout", register.DefaultInfoTimeout, "how long a plugin may take to say what it is")
	f.DurationVar(&o.notify, "notify-timeout", register.DefaultNotifyTimeout, "how long a plugin may take to hear the result")
	f.DurationVar(&o.stop, "stop-timeout", register.DefaultStopTimeout, "how long to wait for running calls when stopped")
	f.DurationVar(&o.grace, "root-grace", scanner.DefaultRootGrace, "how long a directory may be missing or unmounted until its plugins are deregistered; negative: for ever")
	f.DurationVar(&o.call, "call-timeout", scanner.DefaultCallTimeout, "how long a call of the filesystem may take until its path is left alone; negative: for ever")
	addLimits(cmd, &o.maxDepth, &o.maxEntries)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, stderr := newLogger(os.Stderr, o.logLevel.value, o.logFormat.value)
		defer stderr.close(lastLines)
		cfg, err := o.config(cmd, log)
		if err != nil {
			return err
		}
		d, err := newDaemon(cfg, log, stderr)
		if err != nil {
			return err
		}
		if o.output.value == "json" {
			d.events = cmd.OutOrStdout()
		}
		return d.run(cmd.Context())
	}
	return cmd
}

// addLimits gives cmd the limits of a scan.
func addLimits(cmd *cobra.Command, depth, entries *int) {
	cmd.Flags().IntVar(depth, "max-depth", scanner.DefaultMaxDepth, "how many `levels` of subdirectories to read; negative: none")
	cmd.Flags().IntVar(entries, "max-entries", scanner.DefaultMaxEntries, "how many `names` to read at most, directories not counted; negative: no limit")
}

// config is what the flags mean, or a usageError that names each flag that is wrong.
func (o *runOptions) config(cmd *cobra.Command, log hclog.Logger) (register.Config, error) {
	c := register.Config{
		DialTimeout: o.dial, InfoTimeout: o.info, NotifyTimeout: o.notify, StopTimeout: o.stop,
		DeregisterOnStop: o.deregister, Logger: log,
	}
	if len(o.dirs) == 0 {
		return c, usage(need(cmd, "dir", "name a directory to watch (plugpoll run --dir DIR)", ""))
	}
	missing := scanner.CreateRoot
	if o.missingRoot.value == "wait" {
		missing = scanner.WaitForRoot
	}
	for _, dir := range o.dirs {
		dir, err := absolute(dir)
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

// absolute is dir seen from the root, so that what people read does not depend on where the daemon was started. Nothing else is changed: what a ".."
// behind a link leads to is for the filesystem to say.
func absolute(dir string) (string, error) {
	if dir == "" || filepath.IsAbs(dir) {
		return dir, nil
	}
	if filepath.VolumeName(dir) != "" || os.IsPathSeparator(dir[0]) {
		return filepath.Abs(dir) // C:dir and \dir on Windows
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("--dir %s is relative: %w", scanner.Quote(dir), err)
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
