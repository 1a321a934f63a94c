package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

const (
	// anewAfter is more than a tick of the clocks that fine stamps come from (up to 10 ms), and no plugin starts again in less.
	anewAfter = 50 * time.Millisecond
	anewTries = 5
)

// anewLater are pauses for stamps of one and of two seconds: they only tell how coarse those are.
var anewLater = []time.Duration{1100 * time.Millisecond, 2100 * time.Millisecond}

// identities are the rules about what tells one instance from another.
func (b bench) identities() []dirRule {
	return []dirRule{{
		Rule{
			ID: "FS3", Sentence: "What is left alone looks the same each time: device, inode, type and both stamps.",
			Fix: "Give numbers and times that are kept with the file, not made up for each call; leave out what is not known.",
		}, b.unchanged,
	}, {
		Rule{
			ID: "I1", Sentence: "A socket that is made anew at its path 50 ms later can be told from the one before, by inode or stamps.",
			Fix: "Give the inode (scanner.Identifier in FileInfo.Sys) or a modification time that the new file does not share with the old one; ext2 and ext4 need inodes of 256 bytes. " +
				"Where neither can be, a plugin that starts again within the time said is noticed by the end of its connection (I3): leave this rule out (Lacks, --skip).",
		}, b.remade,
	}, {
		Rule{
			ID: "FS4", Sentence: "Where plugpoll skips unchanged directories, making, renaming and removing an entry move a stamp of its directory.",
			Fix: "Have the directory's modification time follow its entries, or do not declare the filesystem stable (method Stable).",
		}, b.stampsMove,
	}}
}

// changes are the rules about what comes and goes.
func (b bench) changes() []dirRule {
	return []dirRule{{
		Rule{
			ID: "FS5", Sentence: "What was removed is not listed, and Lstat and Open of it say fs.ErrNotExist.",
			Fix: "Return an error that errors.Is takes for fs.ErrNotExist, and only if it is known that nothing is there.",
		}, b.removed,
	}, {
		Rule{
			ID: "D7", Sentence: "A directory that was removed and made again shows what is in the new one.",
			Fix: "Look the path up at each Open; do not remember directories by their name.",
		}, b.directoryAnew,
	}, {
		Rule{
			ID: "FS6", Sentence: "Several goroutines may list and look while entries come and go.",
			Fix: "Guard what calls share; an entry that nobody touches is found by each of them.",
		}, b.together,
	}}
}

func (b bench) unchanged(ctx context.Context, dir string) error {
	if err := b.fill(dir, "file"); err != nil {
		return err
	}
	names := []string{".", "file"}
	if _, err := b.socket(b.join(dir, "s")); err == nil {
		names = append(names, "s")
	}
	for _, name := range names {
		first, err := b.stamp(b.join(dir, name))
		if err != nil {
			return err
		}
		for range 5 {
			if err := pause(ctx, 3*time.Millisecond); err != nil {
				return err
			}
			again, err := b.stamp(b.join(dir, name))
			if err != nil {
				return err
			}
			if again != first {
				return fmt.Errorf("nothing has touched %s, and it looks like %s after %s", name, spell(again), spell(first))
			}
		}
	}
	return nil
}

// spell is a stamp for people.
func spell(s scanner.Stamp) string {
	return fmt.Sprintf("device %d inode %d mtime %d ctime %d type %v", s.Device, s.Inode, s.ModTime, s.ChangeTime, s.Type)
}

func (b bench) remade(ctx context.Context, dir string) error {
	name := b.join(dir, "s")
	if _, err := b.socket(name); err != nil {
		return lacking("no socket can be made: " + scanner.Clean(err.Error(), maxSeen))
	}
	same := 0
	for range anewTries {
		looksAsBefore, err := b.remake(ctx, name, anewAfter)
		if err != nil {
			return err
		}
		if looksAsBefore {
			same++
		}
	}
	if same == 0 {
		return nil
	}
	seen := fmt.Sprintf("%d of %d sockets that were made anew after %v look like the one before", same, anewTries, anewAfter)
	for _, d := range anewLater {
		looksAsBefore, err := b.remake(ctx, name, d)
		if err != nil {
			return err
		}
		if !looksAsBefore {
			return fmt.Errorf("%s; one that was made anew after %v does not", seen, d)
		}
	}
	last, err := b.stamp(name)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s, and so does one that was made anew after %v: %s", seen, anewLater[len(anewLater)-1], spell(last))
}

// remake makes a socket anew after a pause, and reports whether it looks like the one before.
func (b bench) remake(ctx context.Context, name string, after time.Duration) (looksAsBefore bool, err error) {
	before, err := b.stamp(name)
	if err != nil {
		return false, err
	}
	if err := errors.Join(pause(ctx, after), b.FS.Remove(name)); err != nil {
		return false, err
	}
	if _, err := b.socket(name); err != nil {
		return false, fmt.Errorf("making a socket anew: %w", err)
	}
	now, err := b.stamp(name)
	return now == before, err
}

func (b bench) stampsMove(ctx context.Context, dir string) error {
	s, err := scanner.New(scanner.Config{FS: b.FS, Root: dir})
	if err != nil {
		return err
	}
	p, err := s.Polling(ctx)
	if err != nil || !p.SkipsUnchanged {
		return err
	}
	a, c := b.join(dir, "a"), b.join(dir, "c")
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"made", func() error { return b.file(a) }},
		{"renamed", func() error { return b.FS.Rename(a, c) }},
		{"removed", func() error { return b.FS.Remove(c) }},
	} {
		before, err := b.stamp(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(pause(ctx, p.Settle), change.do()); err != nil {
			return err
		}
		after, err := b.stamp(dir)
		if err != nil {
			return err
		}
		if after == before {
			return fmt.Errorf("an entry was %s, and its directory still looks like %s", change.what, spell(after))
		}
	}
	return nil
}

func (b bench) removed(_ context.Context, dir string) error {
	if err := b.fill(dir, "stays", "goes"); err != nil {
		return err
	}
	name := b.join(dir, "goes")
	if err := b.FS.Remove(name); err != nil {
		return err
	}
	list, err := b.list(dir, -1, true)
	if err != nil {
		return err
	}
	if names := namesOf(list); slices.Contains(names, "goes") {
		return fmt.Errorf("a file was removed, and the listing names it: %q", names)
	}
	_, err = b.lstat(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a file was removed, and lstat gives the error %w", given(err))
	}
	f, err := b.FS.Open(name)
	if err == nil {
		err = f.Close()
		return errors.Join(errors.New("a file was removed, and can be opened"), err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a file was removed, and open gives the error %w", err)
	}
	return nil
}

var errNone = errors.New("none")

// given is an error as a part of a sentence.
func given(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

func (b bench) directoryAnew(_ context.Context, dir string) error {
	sub := b.join(dir, "sub")
	for i, name := range []string{"first", "second"} {
		if err := errors.Join(b.FS.RemoveAll(sub), b.FS.Mkdir(sub, 0o755), b.fill(sub, name)); err != nil {
			return err
		}
		list, err := b.list(sub, -1, false)
		if err != nil {
			return err
		}
		if names := namesOf(list); !slices.Contains(names, name) || i > 0 && slices.Contains(names, "first") {
			return fmt.Errorf("a directory was made anew with %q in it, and lists %q", name, names)
		}
	}
	return nil
}

func (b bench) together(_ context.Context, dir string) error {
	if err := b.fill(dir, "stays"); err != nil {
		return err
	}
	const workers, rounds = 4, 20
	errs := make([]error, workers)
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			own := "w" + strconv.Itoa(w)
			for range rounds {
				if errs[w] = b.round(dir, own); errs[w] != nil {
					return
				}
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// round is what one goroutine does beside others.
func (b bench) round(dir, own string) error {
	if err := b.fill(dir, own); err != nil {
		return err
	}
	list, err := b.list(dir, -1, true)
	if err != nil {
		return err
	}
	for _, want := range []string{"stays", own} {
		if names := namesOf(list); !slices.Contains(names, want) {
			return fmt.Errorf("beside other goroutines a listing lacks %s: %q", want, names)
		}
		if _, err := b.lstat(b.join(dir, want)); err != nil {
			return fmt.Errorf("beside other goroutines: %w", err)
		}
	}
	return b.FS.Remove(b.join(dir, own))
}

// pause waits for d, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
