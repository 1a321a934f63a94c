package main

import (
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

const whyHelp = `Say of one plugin, socket or network, in a paragraph: what was seen, what was tried, what failed, and what to do.

NAME is a plugin's name, or that of its socket's file, also without .sock or -reg.sock; PATH is the socket
itself. Of network configuration NAME is a network, a configuration file, a runtime handler (default for the default
one) or the type of a network's plugin; PATH is a configuration file or its directory. What the daemon does not know is
looked for on the filesystem, as this command sees it: run it on the daemon's node, as root if you can.

With -o json each finding is an object on a line; its causes are the headings of docs/troubleshooting.md.

Exit codes:
  0  it is registered (or on standby, or observed, as it should be); its network is in use and ready
  1  no daemon answers, or it failed; standard error says why
  2  bad flags
  4  it is not registered or not in use, or something about it needs attention`

func newWhy() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "why NAME|PATH",
		Short:   "Say why a plugin is not registered, or a network not in use, and what to do",
		Long:    whyHelp,
		Example: "  plugpoll why ebs.csi.aws.com\n  plugpoll why /var/lib/kubelet/plugins_registry/gpu.sock\n  plugpoll why gpu.sock -o json\n  plugpoll why 10-bridge.conflist",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("NAME is missing: name a plugin, a network, or the path of a socket or a configuration file (plugpoll why NAME)")
			case len(args) > 1:
				return usagef("unexpected argument %q: why takes one name or path", args[1])
			case args[0] == "":
				return usagef("NAME is empty: name a plugin, a network, or the path of a socket or a configuration file")
			}
			return nil
		},
	}
	output := addOutput(cmd, "how to print the findings")
	at := addAddress(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return knownNames(cmd, *at), cobra.ShellCompDirectiveDefault
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := newAsker(*at)
		if err != nil {
			return err
		}
		ctx, end := signal.NotifyContext(cmd.Context(), stopSignals()...)
		defer end()
		v, _, err := a.view(ctx)
		if err != nil {
			return err
		}
		network, _, err := a.cni(ctx)
		if err != nil {
			return err
		}
		findings := explain(v, network.Directories, args[0], diskFacts{ctx})
		if err := printFindings(cmd.OutOrStdout(), findings, output.value == "json"); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		for _, f := range findings {
			if !f.OK {
				return attentionError{}
			}
		}
		return nil
	}
	return cmd
}

// knownNames are what a shell may offer: plugins and files the daemon knows. Without a daemon there are none.
func knownNames(cmd *cobra.Command, at string) (names []string) {
	a, err := newAsker(at)
	if err != nil {
		return nil
	}
	v, _, err := a.view(cmd.Context())
	if err != nil {
		return nil
	}
	for _, s := range v.Sockets {
		offered := []string{filepath.Base(s.Path)}
		if s.Plugin != nil {
			offered = append(offered, s.Plugin.Name)
		}
		for _, name := range offered {
			if scanner.Quote(name) == name {
				names = append(names, name)
			}
		}
	}
	if network, _, err := a.cni(cmd.Context()); err == nil {
		names = append(names, cniNames(network.Directories)...)
	}
	return names
}

// finding is what why says of one socket or file.
type finding struct {
	Version    string        `json:"version"`
	Cause      cause         `json:"cause"`
	OK         bool          `json:"ok"`
	Path       string        `json:"path"`
	PathBase64 string        `json:"path_base64,omitempty"`
	Phase      state.Phase   `json:"phase,omitempty"`
	Plugin     *state.Plugin `json:"plugin,omitempty"`
	CNI        *cniSubject   `json:"cni,omitempty"`
	// Text in sentences; what does not apply is empty.
	Seen   string `json:"seen"`
	Tried  string `json:"tried,omitempty"`
	Failed string `json:"failed,omitempty"`
	Do     string `json:"do,omitempty"`

	folded string // the four as a paragraph
}

// fold breaks a text at blanks so that its lines are no longer than width, if its words are not.
func fold(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, w := range strings.Fields(text) {
		n := len([]rune(w))
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(strings.ReplaceAll(w, noBreak, " "))
		column += n
	}
	return b.String()
}

func printFindings(w io.Writer, findings []finding, inJSON bool) error {
	for i, f := range findings {
		if inJSON {
			if err := printJSON(w, f); err != nil {
				return err
			}
			continue
		}
		between := ""
		if i > 0 {
			between = "\n"
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", between, f.folded); err != nil {
			return err
		}
	}
	return nil
}
