package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
)

var cniCheckHelp = `Look at a directory of network configuration once, and say what it comes to, without a daemon.

Of each file it says what it is and whether it is used, of a broken one where, what is wrong and what to change:
FILE:LINE:COLUMN: what is wrong; what to do. It reads what the daemon and container runtimes would read, looks for the
plugins in --cni-bin-dir, and makes and changes nothing. No plugin is run, unless --status has them asked whether
they are ready, as the user who calls.

With -o json it prints one directory of /v1/cni of docs/api.md, with -o yaml the same as YAML.
` + fmt.Sprintf(cniCodes, "it failed", "a broken file\n     lies about that is not needed now, or the directory cannot be read as a whole")

// cniCheckOptions are the flags of cni check.
type cniCheckOptions struct {
	binDirs    []string
	maxConfNum int
	network    string
	pinned     bool // whether network was given
	status     bool
	output     *choice
}

func newCNICheck() *cobra.Command {
	o := &cniCheckOptions{}
	cmd := &cobra.Command{
		Use:     "check DIR",
		Short:   "Look at a directory of network configuration, and say what to change",
		Long:    cniCheckHelp,
		Example: "  plugpoll cni check /etc/cni/net.d\n  plugpoll cni check --status --cni-bin-dir /opt/cni/bin --cni-bin-dir /usr/lib/cni /etc/cni/net.d\n  plugpoll cni check -o json ./net.d | jq '.files[].error | select(.)'",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("DIR is missing: name the directory to look at (plugpoll cni check %s)", cni.DefaultConfDir)
			case len(args) > 1:
				return usagef("unexpected argument %q: check takes one directory", args[1])
			case args[0] == "":
				return usagef("DIR is empty: name the directory to look at")
			}
			return nil
		},
		DisableFlagsInUseLine: false,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.binDirs, "cni-bin-dir", nil, "`directory` of network plugins; may be given several times (default "+cni.DefaultBinDir+")")
	f.IntVar(&o.maxConfNum, "cni-max-conf-num", cni.DefaultMaxConfNum, "how many `files` make networks, the first ones by name; 0: all")
	f.StringVar(&o.network, "cni-default-network", "", "`network` that must come first, whatever its file is called")
	f.BoolVar(&o.status, "status", false, "run the plugins of the networks that would be used, and ask them for their STATUS")
	must(cmd.MarkFlagDirname("cni-bin-dir"))
	complete(cmd, "cni-max-conf-num")
	complete(cmd, "cni-default-network")
	o.output = addCNIOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.pinned = cmd.Flags().Changed("cni-default-network")
		cfg, err := o.config(args[0])
		if err != nil {
			return err
		}
		ctx, end := signal.NotifyContext(cmd.Context(), stopSignals()...)
		defer end()
		if (diskFacts{ctx}).look(cfg.ConfDir).what == typeName(0) {
			return usagef("DIR is %s, which is a file: name its directory (plugpoll cni check %s)", scanner.Quote(cfg.ConfDir), shellWord(filepath.Dir(cfg.ConfDir)))
		}
		v, err := lookOnce(ctx, cfg)
		if err != nil {
			return err
		}
		content, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := printCNI(cmd.OutOrStdout(), o.output.value, content, cniCheckText(v, o.status)); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		return cniVerdict(v)
	}
	return cmd
}

// config is what the flags mean, or a usageError.
func (o *cniCheckOptions) config(dir string) (cni.Config, error) {
	maxConfNum, binDirs, errs := networks(o.maxConfNum, o.binDirs)
	dir, err := absolute("DIR", dir)
	errs = append(errs, err)
	if o.pinned && o.network == "" {
		errs = append(errs, usagef("--cni-default-network is empty: name a network"))
	} else if o.pinned {
		errs = append(errs, canBeCalled(o.network))
	}
	if err := usage(errs...); err != nil {
		return cni.Config{}, err
	}
	c := cni.Config{ConfDir: dir, BinDirs: binDirs, MaxConfNum: maxConfNum, DefaultNetwork: o.network, Logger: hclog.NewNullLogger(), StatusTimeout: -1}
	if o.status {
		c.StatusTimeout = cni.DefaultStatusTimeout
	}
	return c, cniFlagErrors(c.Check())
}

// lookLonger is how long a look may take beside the plugins: files that are written to without end are waited for (CN5).
const lookLonger = 30 * time.Second

// lookOnce follows a directory until it is known what it comes to.
func lookOnce(ctx context.Context, cfg cni.Config) (cni.View, error) {
	s, err := cni.New(cfg)
	if err != nil {
		return cni.View{}, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	late := time.NewTimer(lookLonger + max(cfg.StatusTimeout, 0))
	defer late.Stop()
	var why error
	select {
	case <-s.Synced():
	case <-late.C: // the View says what it waits for
	case <-ctx.Done():
		why = errors.New("interrupted")
	}
	v := s.View()
	stop()
	if err := <-ended; why == nil && !isStuck(err) {
		why = err // what is stuck ends with the process, and is in the View
	}
	return v, why
}
