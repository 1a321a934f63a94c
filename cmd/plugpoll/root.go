package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `plugpoll looks for plugin registration sockets, again and again, and keeps the set of registered
plugins equal to what is on disk. It is the kubelet's plugin manager without inotify. It follows the configuration
of container networks (CNI) in the same way.

Exit codes:
  0  done, or stopped cleanly by a signal
  1  it failed; standard error says why. check: some rules do not hold
  2  bad flags or configuration; nothing was started
  3  stopped, but some calls did not end or were not waited for
  4  status, why and cni: something needs attention
  5  cni: the network is not ready, no pod can be set up`

// newRoot makes the tree of commands. Nothing of it is shared between two calls.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "plugpoll",
		Short:         "Register the plugins whose sockets are in a directory",
		Long:          rootHelp,
		Example:       "  plugpoll run --dir /run/plugins\n  plugpoll run --observe --dir /var/lib/kubelet/plugins_registry",
		Version:       readBuild().Plugpoll,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Without this the usage line says "plugpoll [flags]", which does nothing.
		DisableFlagsInUseLine: true,
		RunE:                  group,
		Args:                  cobra.ArbitraryArgs,
	}
	root.AddCommand(newRun(), newStatus(), newWhy(), newWatch(), newPlugin(), newScan(), newCheck(), newCNI(), newVersion())
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (%s --help lists the flags)", err, cmd.CommandPath())
	})
	for _, c := range root.Commands() {
		if c.HasSubCommands() && !c.Runnable() {
			c.RunE, c.Args = group, cobra.ArbitraryArgs
		}
	}
	return root
}

// group is a command that only has others below it: alone it shows its help, and whatever else is not known.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s? ", strings.Join(near, " or "))
	}
	return usagef("unknown command %q: %s%s --help lists the commands", args[0], hint, cmd.CommandPath())
}

// noArgs refuses what is left beside the flags; want says what to write instead.
func noArgs(want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usagef("unexpected argument %q: %s", args[0], want)
	}
}
