package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that takes one word of a list.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.allowed, "|") }

// Set takes a word of the list.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("use one of %s", strings.Join(c.allowed, ", "))
	}
	c.value = s
	return nil
}

// addChoice gives cmd such a flag, with completion. short may be empty.
func addChoice(cmd *cobra.Command, name, short, standard, help string, allowed ...string) *choice {
	c := &choice{standard, allowed}
	cmd.Flags().VarP(c, name, short, help)
	complete(cmd, name, allowed...)
	return c
}

func addOutput(cmd *cobra.Command, help string) *choice {
	return addChoice(cmd, "output", "o", "text", help, "text", "json")
}

// complete has the shell offer words for a flag.
func complete(cmd *cobra.Command, name string, words ...string) {
	must(cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
}

// must is for errors that only a mistake in this package can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// need is an error if a flag that must be there is not.
func need(cmd *cobra.Command, name, what, value string) error {
	switch {
	case value != "":
		return nil
	case cmd.Flags().Changed(name):
		return fmt.Errorf("--%s is empty: %s", name, what)
	}
	return errors.New("--" + name + " is missing: " + what)
}
