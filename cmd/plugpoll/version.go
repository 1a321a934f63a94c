package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/state"
)

// version is set when a release is linked: -ldflags "-X main.version=v1.2.3".
var version string

// build is what the program knows of itself. Version is the one of the JSON interface, as in all JSON that plugpoll prints.
type build struct {
	Version  string `json:"version"`
	Plugpoll string `json:"plugpoll"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func readBuild() build {
	b := build{state.APIVersion, version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if b.Plugpoll == "" {
		b.Plugpoll = "devel"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
			b.Plugpoll = info.Main.Version
		}
	}
	return b
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Example:           "  plugpoll version -o json",
		Args:              noArgs("version takes flags only"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output := addOutput(cmd, "how to print it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b := readBuild()
		if output.value == "json" {
			return printJSON(cmd.OutOrStdout(), b)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "plugpoll %s %s %s/%s\n", b.Plugpoll, b.Go, b.OS, b.Arch)
		return err
	}
	return cmd
}
