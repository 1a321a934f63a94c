package main

import (
	"fmt"
	"io"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/register/cni"
)

const cniHelp = `Say what a node's network configuration (CNI) comes to: which files are used, whether the network is ready, and
what is wrong with the others.

status and watch ask the daemon that was started with --cni-conf-dir; check looks at a directory itself.`

const cniCodes = `
Exit codes:
  0  the network is ready
  1  %s; standard error says why
  2  bad flags
  4  pods can be set up, and something needs attention: %s
  5  the network is not ready: no pod can be set up`

var cniStatusHelp = `Ask the running daemon for its CNI directories: their state, the networks in use, and a verdict on each file.

States: loading (nothing was decided yet), ready, stale (the last good configuration is in use and works; what is on
disk now cannot be used), not ready. Files are used, not used (others come first), duplicate (an earlier file has
a network of this name) or broken; of a broken one it says where, what is wrong and what to change.

The daemon answers at 127.0.0.1:9808 unless its --listen says otherwise; --address must say the same. With -o json
it prints what /v1/cni of docs/api.md has, as the daemon gave it, with -o yaml the same as YAML.
` + fmt.Sprintf(cniCodes, "no daemon answers, it follows no CNI directory, or it failed", "a directory is\n     stale or cannot be read, or holds a broken file")

func newCNI() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cni",
		Short:   "Say whether network configuration is in use, and what is wrong with it",
		Long:    cniHelp,
		Example: "  plugpoll cni check /etc/cni/net.d\n  plugpoll cni status",

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(newCNIStatus(), newCNIWatch(), newCNICheck())
	return cmd
}

func newCNIStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show what the running daemon makes of its CNI directories",
		Long:    cniStatusHelp,
		Example: "  plugpoll cni status\n  plugpoll cni status -o json | jq '.directories[].files[] | select(.state == \"broken\")'",
		Args:    noArgs("it shows every directory; plugpoll why NAME tells about one network or file"),

		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	output := addCNIOutput(cmd)
	at := addAddress(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a, err := newAsker(*at)
		if err != nil {
			return err
		}
		a.flag = "--cni-conf-dir"
		ctx, end := signal.NotifyContext(cmd.Context(), stopSignals()...)
		defer end()
		all, content, err := a.someCNI(ctx)
		if err != nil {
			return err
		}
		if err := printCNI(cmd.OutOrStdout(), output.value, content, cniText(all.Directories)); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		return cniVerdict(all.Directories...)
	}
	return cmd
}

func addCNIOutput(cmd *cobra.Command) *choice {
	return addChoice(cmd, "output", "o", "text", "how to print", "text", "json", "yaml")
}

func printCNI(w io.Writer, form string, content []byte, text string) (err error) {
	switch form {
	case "json":
		_, err = printableJSON{w}.Write(append(content, '\n'))
	case "yaml":
		err = printYAML(w, content)
	default:
		_, err = io.WriteString(w, text)
	}
	return err
}

// cniVerdict is nil if every network is ready and nothing needs attention.
func cniVerdict(dirs ...cni.View) error {
	for _, v := range dirs {
		if !v.Ready {
			return attentionError{notReady: true}
		}
	}
	for _, v := range dirs {
		if len(cniTroubles(v)) > 0 {
			return attentionError{}
		}
	}
	return nil
}
