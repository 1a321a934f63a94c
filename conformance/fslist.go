package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/scanner"
)

// listings are the rules about what a directory lists.
func (b bench) listings() []dirRule {
	rules := []dirRule{{
		Rule{
			ID: "FS1", Sentence: `A listing names every entry of the directory once, and neither "." nor "..".`,
			Fix: "Have Readdirnames and ReadDir of an opened directory give each name that is there, exactly once.",
		}, b.namesEachOnce,
	}, {
		Rule{
			ID: "FS2", Sentence: "A listing that is read in parts gives what one at once gives, and ends.",
			Fix: "Have ReadDir(n) and Readdirnames(n) go on where the call before ended, and return io.EOF, or nothing, at the end.",
		}, b.inParts,
	}, {
		Rule{
			ID: "U2", Sentence: "What a listing names can be lstat-ed.",
			Fix: "List only what is there: a name that is listed and cannot be found is kept as unknown, and looked for again and again.",
		}, b.listedIsThere,
	}, {
		Rule{
			ID: "U3", Sentence: "A listing that fails half way gives the entries before its error, and the error.",
			Fix: "Return the entries that were read together with the error, not instead of it and not without it.",
		}, b.partial,
	}, {
		Rule{
			ID: "FS7", Sentence: "A socket can be made.",
			Fix: "Keep plugins' sockets on a filesystem that has them, as tmpfs or ext4. Where they are made on another side of this one, or it is polled for files alone, leave this rule out (Lacks, --skip).",
		}, b.socketMade,
	}, {
		Rule{
			ID: "D2", Sentence: "A listing and Lstat tell the type of an entry: file, directory, socket. A listing may leave it open (fs.ModeIrregular).",
			Fix: "Give Mode().Type() in FileInfo and Type() in listings as they are, or fs.ModeIrregular in listings if they are not known there.",
		}, b.types,
	}, {
		Rule{
			ID: "D5", Sentence: "Lstat of a symbolic link tells of the link, Stat of its target.",
			Fix: "Implement afero.Lstater, and do not follow the link in it.",
		}, b.links,
	}, {
		Rule{
			ID: "D10", Sentence: "A name that can be made is listed byte for byte as it was made, and can be lstat-ed under it.",
			Fix: "Do not trim, fold, escape or normalise names; refuse those that cannot be kept.",
		}, b.names,
	}}
	for i, r := range rules {
		switch _, links := b.FS.(afero.Linker); {
		case r.ID == "U3" && b.Break == nil:
			rules[i].Skip = "the subject has no way to have a listing fail (Break)"
		case r.ID == "FS7" && b.Socket == nil && !b.onOS():
			rules[i].Skip = "the subject has no way to make a socket (Socket): files stand in for them"
		case r.ID == "D5" && !links:
			rules[i].Skip = "the filesystem has no way to make a link (afero.Linker)"
		}
	}
	return rules
}

// each is done for both kinds of listings, that of names and that with types.
func each(do func(types bool) error) error { return errors.Join(do(false), do(true)) }

func (b bench) namesEachOnce(_ context.Context, dir string) error {
	made := []string{"a", "b", "c"}
	if err := b.fill(dir, made...); err != nil {
		return err
	}
	return each(func(types bool) error {
		list, err := b.list(dir, -1, types)
		if err != nil {
			return err
		}
		names := namesOf(list)
		for _, want := range made {
			if n := len(list) - len(slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == want })); n != 1 {
				return fmt.Errorf("a file %s is in the listing %d times: %q", want, n, names)
			}
		}
		if slices.Contains(names, ".") || slices.Contains(names, "..") {
			return fmt.Errorf("the listing names the directory itself, or its parent: %q", names)
		}
		return nil
	})
}

func (b bench) inParts(_ context.Context, dir string) error {
	if err := b.fill(dir, "a", "b", "c", "d", "e"); err != nil {
		return err
	}
	return each(func(types bool) error {
		whole, err := b.list(dir, -1, types)
		if err != nil {
			return err
		}
		for _, n := range []int{1, 2, 5, 64} {
			parts, err := b.list(dir, n, types)
			if err != nil {
				return fmt.Errorf("reading %d at a time: %w", n, err)
			}
			if got, want := namesOf(parts), namesOf(whole); !slices.Equal(got, want) {
				return fmt.Errorf("reading %d at a time gives %q, all at once %q", n, got, want)
			}
		}
		return nil
	})
}

func (b bench) listedIsThere(_ context.Context, dir string) error {
	if err := b.fill(dir, "a", "b"); err != nil {
		return err
	}
	if err := b.FS.Mkdir(b.join(dir, "sub"), 0o755); err != nil {
		return err
	}
	return each(func(types bool) error {
		list, err := b.list(dir, -1, types)
		if err != nil {
			return err
		}
		for _, e := range list {
			if _, err := b.lstat(b.join(dir, e.name)); err != nil {
				return fmt.Errorf("%s is listed, and lstat says: %w", scanner.Quote(e.name), err)
			}
		}
		return nil
	})
}

func (b bench) partial(_ context.Context, dir string) error {
	if err := b.fill(dir, "a", "b", "c"); err != nil {
		return err
	}
	mend := b.Break(dir)
	defer mend()
	return each(func(types bool) error {
		list, err := b.list(dir, -1, types)
		switch {
		case err == nil:
			return fmt.Errorf("a listing that was made to fail gave %q and no error", namesOf(list))
		case len(list) == 0:
			return fmt.Errorf("a listing that was made to fail half way gave no entry, only: %w", err)
		}
		return nil
	})
}

func (b bench) socketMade(_ context.Context, dir string) error {
	if _, err := b.socket(b.join(dir, "s")); err != nil {
		return fmt.Errorf("making a socket: %w", err)
	}
	return nil
}

func (b bench) types(_ context.Context, dir string) error {
	want := map[string]fs.FileMode{"file": 0, "directory": fs.ModeDir}
	if err := errors.Join(b.fill(dir, "file"), b.FS.Mkdir(b.join(dir, "directory"), 0o755)); err != nil {
		return err
	}
	if typ, err := b.socket(b.join(dir, "s")); err == nil {
		want["s"] = typ
	}
	for name, typ := range want {
		info, err := b.lstat(b.join(dir, name))
		if err != nil {
			return err
		}
		if got := info.Mode().Type(); got != typ {
			return fmt.Errorf("lstat says that %s is %s, it is %s", name, word(got), word(typ))
		}
	}
	list, err := b.list(dir, -1, true)
	for _, e := range list {
		if typ, made := want[e.name]; made && e.typ != fs.ModeIrregular && e.typ != typ {
			return fmt.Errorf("the listing says that %s is %s, it is %s", e.name, word(e.typ), word(typ))
		}
	}
	return err
}

// word is a type in words.
func word(typ fs.FileMode) string {
	switch typ {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSocket:
		return "a socket"
	case fs.ModeSymlink:
		return "a link"
	}
	return fmt.Sprintf("of type %v", typ)
}

func (b bench) links(_ context.Context, dir string) error {
	target, link := b.join(dir, "target"), b.join(dir, "link")
	if err := b.FS.Mkdir(target, 0o755); err != nil {
		return err
	}
	if err := b.FS.(afero.Linker).SymlinkIfPossible("target", link); err != nil {
		return fmt.Errorf("making a link: %w (list D5 under what the subject lacks if it has no links)", err)
	}
	info, err := b.lstat(link)
	switch {
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSymlink:
		return fmt.Errorf("lstat says that a link is %s", word(info.Mode().Type()))
	}
	info, err = b.FS.Stat(link)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("stat says that a link to a directory is %s", word(info.Mode().Type()))
	}
	return err
}

// oddNames are some that are mangled easily.
var oddNames = []string{
	"a b", " a", "a ", "A", "a#b", "a?b", "a%2fb", "a\nb", "a\tb", `a\b`, `a"b`, "a:b", "é", "e\u0301", "\xff\xfe", "-a", "~", "$a", strings.Repeat("x", 255),
}

// mangled reports whether it is the operating system that makes another name of it: Windows takes a colon for a stream's and drops blanks at the end.
func (b bench) mangled(name string) bool {
	return runtime.GOOS == "windows" && b.onOS() && (strings.ContainsAny(name, `:\`) || strings.HasSuffix(name, " "))
}

func (b bench) names(_ context.Context, dir string) error {
	var made []string
	for i, name := range oddNames {
		sub := b.join(dir, fmt.Sprint(i)) // one each: some filesystems hold two of them for one
		if err := b.FS.Mkdir(sub, 0o755); err != nil {
			return err
		}
		if b.mangled(name) || b.fill(sub, name) != nil {
			continue // not every filesystem allows every name
		}
		made = append(made, name)
		list, err := b.list(sub, -1, false)
		if err != nil {
			return err
		}
		if got := namesOf(list); !slices.Contains(got, name) {
			return fmt.Errorf("a file %q was made, the listing names %q", name, got)
		}
		if _, err := b.lstat(b.join(sub, name)); err != nil {
			return fmt.Errorf("a file %q was made, and lstat says: %w", name, err)
		}
	}
	if len(made) == 0 {
		return errors.New("none of the names could be made")
	}
	return nil
}
