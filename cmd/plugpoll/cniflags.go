package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
)

// cniOptions are the flags of run about network configuration.
type cniOptions struct {
	confDirs, binDirs []string
	maxConfNum        int
	defaults          []string
	grace             time.Duration
}

func (o *cniOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.confDirs, "cni-conf-dir", nil,
		"`[NAME=]DIR` of network configuration to follow, of the runtime handler NAME or of the default one (a DIR with a = in it: ./A=B); may be given several times")
	f.StringArrayVar(&o.binDirs, "cni-bin-dir", nil, "`directory` of network plugins, for all of them; may be given several times (default "+cni.DefaultBinDir+")")
	f.IntVar(&o.maxConfNum, "cni-max-conf-num", cni.DefaultMaxConfNum, "how many `files` of a directory make networks, the first ones by name; 0: all")
	f.StringArrayVar(&o.defaults, "cni-default-network", nil, "`[NAME=]NETWORK` that must come first, whatever its file is called; may be given for each directory")
	addDuration(cmd, &o.grace, "cni-grace", 0, "how long all files may be gone until the network counts as not ready; 0: at once, negative: for ever")
	must(cmd.MarkFlagDirname("cni-conf-dir"))
	must(cmd.MarkFlagDirname("cni-bin-dir"))
	complete(cmd, "cni-max-conf-num")
	complete(cmd, "cni-default-network")
}

// configs is what the flags mean, or a usageError that names each flag that is wrong.
func (o *cniOptions) configs(cmd *cobra.Command, interval time.Duration, log hclog.Logger) ([]cni.Config, error) {
	if len(o.confDirs) == 0 {
		var errs []error
		for _, flag := range []string{"cni-bin-dir", "cni-max-conf-num", "cni-default-network", "cni-grace"} {
			if cmd.Flags().Changed(flag) {
				errs = append(errs, fmt.Errorf("--%s is of no use without a directory: name one with --cni-conf-dir [NAME=]DIR", flag))
			}
		}
		return nil, usage(errs...)
	}
	maxConfNum, binDirs, errs := networks(o.maxConfNum, o.binDirs)
	pins, err := o.pins()
	errs = append(errs, err)
	var all []cni.Config
	dirs := map[string]string{} // by the handler's name
	for _, text := range o.confDirs {
		name, dir, err := named("--cni-conf-dir", text, "directory (/etc/cni/net.d)")
		if err == nil {
			dir, err = absolute("--cni-conf-dir", dir)
		}
		if other, taken := dirs[name]; taken && err == nil {
			err = fmt.Errorf("--cni-conf-dir (%s) and --cni-conf-dir (%s) are both for %s: give one of them another name (NAME=DIR)",
				scanner.Quote(other), scanner.Quote(dir), handlerText(name))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		dirs[name] = dir
		all = append(all, cni.Config{
			Name: name, ConfDir: dir, BinDirs: binDirs, MaxConfNum: maxConfNum, DefaultNetwork: pins[name], Grace: o.grace, Interval: interval, Logger: log,
		})
	}
	for name := range pins {
		if _, ok := dirs[name]; !ok {
			errs = append(errs, fmt.Errorf("--cni-default-network is for %s, which no --cni-conf-dir is for", handlerText(name)))
		}
	}
	if err := usage(errs...); err != nil {
		return nil, err
	}
	for _, c := range all {
		errs = append(errs, cniFlagErrors(c.Check()))
	}
	return all, usage(errs...)
}

// networks reads the flags that check has as well.
func networks(most int, binDirs []string) (maxConfNum int, dirs []string, errs []error) {
	switch {
	case most < 0:
		errs = append(errs, fmt.Errorf("--cni-max-conf-num is %d: it must not be negative (0 means all)", most))
	case most == 0:
		most = -1 // all, to a Config
	}
	for _, dir := range binDirs {
		if dir == "" {
			errs = append(errs, fmt.Errorf("--cni-bin-dir is empty: name a directory (%s)", cni.DefaultBinDir))
			continue
		}
		dir, err := absolute("--cni-bin-dir", dir)
		dirs, errs = append(dirs, dir), append(errs, err)
	}
	return most, dirs, errs
}

// pins are the default networks, by the handler's name.
func (o *cniOptions) pins() (map[string]string, error) {
	pins := map[string]string{}
	var errs []error
	for _, text := range o.defaults {
		name, network, err := named("--cni-default-network", text, "network")
		if other, taken := pins[name]; taken && err == nil {
			err = fmt.Errorf("--cni-default-network (%s) and --cni-default-network (%s) are both for %s: give only one of them",
				scanner.Quote(other), scanner.Quote(network), handlerText(name))
		}
		if err == nil {
			err = canBeCalled(network)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pins[name] = network
	}
	return pins, errors.Join(errs...)
}

// networkName is what the CNI specification allows (CN11).
var networkName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// canBeCalled refuses a name that no network can have.
func canBeCalled(network string) error {
	if !networkName.MatchString(network) {
		return fmt.Errorf("--cni-default-network is %s: no network can be called that, use letters, digits, _, . and -", scanner.Quote(network))
	}
	return nil
}

// named reads [NAME=]VALUE. What has a slash before the = is no name, so that a directory with a = in it can be written as ./a=b.
func named(flag, text, what string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || strings.ContainsAny(name, `/`+string(filepath.Separator)) {
		name, value = "", text
	}
	switch {
	case ok && name == "" && value != text:
		return "", "", fmt.Errorf("%s is %s: there is no name before the =", flag, scanner.Quote(text))
	case value == "" && name == "":
		return "", "", fmt.Errorf("%s is empty: name a %s", flag, what)
	case value == "":
		return "", "", fmt.Errorf("%s is %s: there is nothing after the =, name a %s", flag, scanner.Quote(text), what)
	}
	return name, value, nil
}

// handlerText is a runtime handler in a sentence.
func handlerText(name string) string {
	if name == "" {
		return "the default runtime handler"
	}
	return "the runtime handler " + word(name)
}

var (
	cniField  = regexp.MustCompile(`^cni: Config\.(\w+)(?:\[\d+\])?`)
	cniFlagOf = map[string]string{
		"Name": "--cni-conf-dir: the name", "ConfDir": "--cni-conf-dir", "BinDirs": "--cni-bin-dir", "MaxConfNum": "--cni-max-conf-num", "MinNetworks": "--cni-max-conf-num",
		"DefaultNetwork": "--cni-default-network", "Grace": "--cni-grace", "Interval": "--interval",
	}
)

// cniFlagErrors says what Config.Check found with the names of flags.
func cniFlagErrors(err error) error {
	if err == nil {
		return nil
	}
	var errs []error
	for text := range strings.SplitSeq(err.Error(), "\n") {
		if m := cniField.FindStringSubmatch(text); m != nil && cniFlagOf[m[1]] != "" {
			text = cniFlagOf[m[1]] + text[len(m[0]):]
		}
		errs = append(errs, errors.New(text))
	}
	return usage(errs...)
}
