package cni

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plugpoll/plugpoll/scanner"
)

// choose gives each file its verdict, and the set its networks or its error: the first files in order decide (CN7), the pinned one before them (CN9).
func (s *set) choose(dir string, top []*conf, o choose) {
	order := top
	if o.pin != "" && len(top) > 0 {
		i := slices.IndexFunc(top, func(c *conf) bool { return c.err == nil && c.network.name == o.pin })
		if i < 0 {
			s.err = noPinned(dir, top, o.pin)
		} else {
			order = slices.Concat(top[i:i+1], top[:i], top[i+1:])
		}
	}

	first := map[string]*conf{} // by the name of the network
	var used []*conf
	full := func() bool { return o.max > 0 && len(used) == o.max }
	for _, c := range order {
		c.view = c.verdict()
		decides := s.err == nil && !full()
		if decides && c.merges {
			s.subdirs = append(s.subdirs, c.subdir)
		}
		earlier := first[c.network.name]
		switch {
		case c.err != nil:
			if decides {
				s.err = c.err
			}
		case earlier != nil:
			c.view.State, c.view.Error = Duplicate, c.duplicates(earlier)
			c.view.Reason = scanner.Quote(earlier.base) + " has this network already"
		case full():
			c.view.State, c.view.Reason = NotUsed, scanner.Quote(used[0].base)+" comes first"
			if len(used) > 1 {
				c.view.Reason = fmt.Sprintf("%d networks come first", len(used))
			}
		case s.err != nil:
			c.view.State = NotUsed
		default:
			if c.network.list == nil {
				c.parse(nil)
			}
			first[c.network.name] = c
			used = append(used, c)
		}
	}
	if s.err != nil {
		for _, c := range top {
			if c.view.State == Used || c.view.State == NotUsed {
				c.view.State, c.view.Reason = NotUsed, "nothing of this directory is used: "+blame(s.err, dir)
			}
		}
		return
	}
	for _, c := range used {
		s.networks = append(s.networks, c.network)
	}
}

// blame names what makes a set unusable.
func blame(err *ConfError, dir string) string {
	if err.Kind == KindNoPinned {
		return err.Text
	}
	return scanner.Quote(relative(dir, err.Path)) + " cannot be"
}

// verdict is what a file is by itself.
func (c *conf) verdict() FileView {
	v := FileView{Path: c.path, PathBase64: scanner.Base64(c.path), State: Used, Reason: c.note}
	if c.err != nil {
		v.State, v.Error, v.Reason = Broken, c.err, ""
		if c.err.Path != c.path {
			v.Reason = "a file that belongs to it is broken: " + scanner.Quote(c.err.Path)
		}
		return v
	}
	v.Network, v.CNIVersion, v.Plugins = c.network.name, c.network.cniVersion, c.network.plugins
	return v
}

func (c *conf) duplicates(earlier *conf) *ConfError {
	return c.at(&fault{
		locate(c.content, c.key("name")), KindDuplicate,
		"network " + shown(c.network.name) + " is in " + scanner.Quote(earlier.base) + " already", "give it another name, or remove one of the two",
	})
}

// noPinned says that no file has the network that is asked for, and which there are.
func noPinned(dir string, top []*conf, pin string) *ConfError {
	var names, broken []string
	for _, c := range top {
		if c.err != nil {
			broken = append(broken, scanner.Quote(c.base))
		} else if !slices.Contains(names, c.network.name) {
			names = append(names, c.network.name)
		}
	}
	text := "there is no network " + shown(pin)
	if len(names) > 0 {
		text += "; there are " + some(names)
	}
	if len(broken) > 0 {
		text += "; it may be in what is broken: " + some(broken)
	}
	return &ConfError{
		Path: dir, PathBase64: scanner.Base64(dir), Kind: KindNoPinned, Text: text,
		Fix: "add it, or ask for another default network",
	}
}

// some lists the first names, in a text of bounded length.
func some(names []string) string {
	const most = 5
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = scanner.Clean(name, maxShown)
	}
	return strings.Join(shown, ", ") + more
}

// judgeBelow gives the files of subdirectories their verdicts.
func (s *set) judgeBelow(top, below []*conf) {
	for _, c := range below {
		c.view = FileView{Path: c.path, PathBase64: scanner.Base64(c.path), State: NotUsed, Reason: "the network " + c.dir + " is not used"}
		if c.err != nil {
			c.view.State, c.view.Error, c.view.Reason = Broken, c.err, ""
			continue
		}
		c.view.Plugins = c.network.plugins
		for _, owner := range top {
			if owner.merges && owner.subdir == c.dir && owner.view.State == Used {
				c.view.State, c.view.Reason, c.view.Network = Used, "", c.dir
			}
		}
	}
}
