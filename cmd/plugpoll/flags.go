package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

// uids is the value of a flag that takes numbers of users: given several times, or as a list with commas.
type uids []int

func (u uids) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(u)), " ", ","), "[]")
}

// Type is what its value is called in a list of flags.
func (u uids) Type() string { return "uid" }

// maxUID is the last one. The number after it, -1 to the kernel, means none.
const maxUID uint64 = 1<<32 - 2

// Set adds to what was given before. An empty value is refused: it must not come to mean anybody.
func (u *uids) Set(s string) error {
	var add uids
	for word := range strings.SplitSeq(s, ",") {
		uid, err := strconv.ParseUint(word, 10, 32)
		if err != nil || uid > maxUID {
			return fmt.Errorf("use the number of a user, as id -u prints it, 0 to %d", maxUID)
		}
		add = append(add, int(uid))
	}
	*u = append(*u, add...)
	return nil
}

// addDuration gives cmd a flag for a duration, for which the shell offers no files.
func addDuration(cmd *cobra.Command, value *time.Duration, name string, standard time.Duration, help string) {
	cmd.Flags().DurationVar(value, name, standard, help)
	complete(cmd, name)
}

// helpWidth is that of a list of flags under titles.
const helpWidth = 120

// titled has the help of cmd list its flags, in the order in which they were added, under titles; each is given by the flag that it stands before.
func titled(cmd *cobra.Command, titles map[string]string) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		var b strings.Builder
		fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
		group := new(cobra.Command).Flags()
		for _, flag := range visited(cmd.LocalFlags().VisitAll) {
			if title := titles[flag.Name]; title != "" {
				b.WriteString(group.FlagUsagesWrapped(helpWidth))
				b.WriteString("\n" + title + ":\n")
				group = new(cobra.Command).Flags()
				group.SortFlags = false
			}
			group.AddFlag(flag)
		}
		b.WriteString(group.FlagUsagesWrapped(helpWidth))
		_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
		return err
	})
}

// visited is everything that visit shows.
func visited[T any](visit func(func(T))) (all []T) {
	visit(func(t T) { all = append(all, t) })
	return all
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
