package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/state"
)

const pluginHelp = `Serve a real registration socket, for trying things out.

It prints a line for each thing that happens: that it listens, that it is asked what it is (GetInfo), and
whether it is told that it is registered. It can be slow, fail at first, and leave its socket behind, as real
plugins do. A socket that another process serves is left alone; one that was left behind is replaced.

SIGINT or SIGTERM stops it and removes the socket.`

// pluginOptions are the flags of plugin.
type pluginOptions struct {
	socket   string
	typ      string
	name     string
	versions []string
	endpoint string
	slow     time.Duration
	fail     int
	keep     bool
	output   *choice
}

func newPlugin() *cobra.Command {
	o := &pluginOptions{}
	cmd := &cobra.Command{
		Use:     "plugin --socket PATH",
		Short:   "Serve a registration socket, for trying things out",
		Long:    pluginHelp,
		Example: "  plugpoll plugin --socket /tmp/plugins/demo.sock\n  plugpoll plugin --socket /tmp/plugins/gpu.sock --type DRAPlugin --name gpu.example.com --fail 2",
		Args:    noArgs("name the socket with --socket PATH"),

		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.socket, "socket", "", "`path` to serve at")
	f.StringVar(&o.typ, "type", registerapi.CSIPlugin, "plugin `type` to announce: any text; Kubernetes knows CSIPlugin, DevicePlugin and DRAPlugin")
	complete(cmd, "type", record.Types[:]...)
	f.StringVar(&o.name, "name", "", "plugin `name` to announce (default one that fits the type)")
	complete(cmd, "name")
	f.StringArrayVar(&o.versions, "version", nil, "`version` to announce; may be given several times (default one that fits the type)")
	complete(cmd, "version")
	f.StringVar(&o.endpoint, "endpoint", "", "`path` of the plugin's own API to announce (default none: it is served at the socket itself)")
	f.DurationVar(&o.slow, "slow", 0, "how long to wait before each answer to GetInfo")
	f.IntVar(&o.fail, "fail", 0, "how many `times` to fail GetInfo before answering it")
	f.BoolVar(&o.keep, "keep-socket", false, "leave the socket behind at the end")
	o.output = addOutput(cmd, "how to print what happens")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(cmd, runtime.GOOS); err != nil {
			return err
		}
		log := &pluginLog{w: cmd.OutOrStdout(), json: o.output.value == "json", path: o.socket, plugin: o.plugin()}
		return o.serve(cmd.Context(), log)
	}
	return cmd
}

// standards are a name and a version that pass the rule of each type.
var standards = map[string]struct{ name, version string }{
	registerapi.CSIPlugin:    {"demo.example.com", "1.0.0"},
	registerapi.DevicePlugin: {"example.com/demo", "v1beta1"},
	registerapi.DRAPlugin:    {"demo.example.com", "v1.DRAPlugin"},
}

// check finds what is wrong with the flags, and fills in what was not given. It takes the operating system as data.
func (o *pluginOptions) check(cmd *cobra.Command, goos string) error {
	errs := []error{need(cmd, "socket", "name the path to serve at (plugpoll plugin --socket PATH)", o.socket)}
	// On Linux there is a way round that (R15).
	if _, err := register.SocketAddress(o.socket, goos); err != nil && goos != "linux" {
		errs = append(errs, fmt.Errorf("--socket: %w", err))
	}
	if o.slow < 0 {
		errs = append(errs, fmt.Errorf("--slow is %v: it must not be negative", o.slow))
	}
	if o.fail < 0 {
		errs = append(errs, fmt.Errorf("--fail is %d: it must not be negative", o.fail))
	}
	for _, t := range []struct {
		flag   string
		values []string
	}{
		{"type", []string{o.typ}},
		{"name", []string{o.name}},
		{"version", o.versions},
		{"endpoint", []string{o.endpoint}},
	} {
		if slices.ContainsFunc(t.values, func(s string) bool { return !utf8.ValidString(s) }) {
			errs = append(errs, errors.New("--"+t.flag+" is not UTF-8: the protocol cannot carry it"))
		}
	}
	standard, ok := standards[o.typ]
	if !ok {
		standard = standards[registerapi.CSIPlugin]
	}
	// What was given is announced as it is, even if empty: how the other side takes that is worth seeing.
	if !cmd.Flags().Changed("name") {
		o.name = standard.name
	}
	if !cmd.Flags().Changed("version") {
		o.versions = []string{standard.version}
	}
	return usage(errs...)
}

func (o *pluginOptions) plugin() *state.Plugin {
	return &state.Plugin{Type: o.typ, Name: o.name, Endpoint: o.endpoint, Versions: o.versions}
}
