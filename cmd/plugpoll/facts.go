package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// facts looks at the filesystem for why.
type facts interface {
	// look says what is at a path.
	look(path string) pathFacts
	// find returns where a file of that name is, in or near the directories.
	find(name string, dirs []string) []string
}

// pathFacts is what can be seen at a path from here.
type pathFacts struct {
	err        error
	what       string // "socket", "file", "directory" …
	filesystem string // the kind that its directory is on, empty if unknown
	listener   string // by which path, or name alone, a process of this machine listens at a socket of this name; empty: none is known
}

// lookTime bounds each look, and findTime a search: the filesystem may hang.
const (
	lookTime = 3 * time.Second
	findTime = 5 * time.Second
	// findDepth and findEntries bound a search.
	findDepth   = 4
	findEntries = 50_000
)

// diskFacts are those of the operating system.
type diskFacts struct{ ctx context.Context }

func (d diskFacts) look(path string) pathFacts {
	found := make(chan pathFacts, 1) // a look that hangs is left behind: the process ends soon
	go func() { found <- lookAt(d.ctx, path) }()
	select {
	case f := <-found:
		return f
	case <-time.After(lookTime):
		return pathFacts{err: &fs.PathError{Op: "lstat", Path: path, Err: context.DeadlineExceeded}}
	}
}

func lookAt(ctx context.Context, path string) pathFacts {
	info, err := os.Lstat(path)
	if err != nil {
		return pathFacts{err: err}
	}
	f := pathFacts{what: typeName(info.Mode())}
	if s, err := scanner.New(scanner.Config{Root: filepath.Dir(path), CallTimeout: lookTime / 2}); err == nil {
		if p, err := s.Polling(ctx); err == nil {
			f.filesystem = p.Type
		}
	}
	if info.Mode()&fs.ModeSocket != 0 {
		f.listener = listenerAt(path)
	}
	return f
}

func typeName(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeNamedPipe != 0:
		return "fifo"
	case m&fs.ModeDevice != 0:
		return "device"
	case m.IsRegular():
		return "file"
	}
	return "thing of unknown type"
}

// usual are directories that plugins are often set up to use.
var usual = []string{"/var/lib/kubelet/plugins_registry", "/var/lib/kubelet/plugins", "/var/lib/kubelet/device-plugins"}

func (d diskFacts) find(name string, dirs []string) []string {
	ctx, cancel := context.WithTimeout(d.ctx, findTime)
	defer cancel()
	found := make(chan string, maxFindings)
	go func() {
		defer close(found)
		left := findEntries
		for _, dir := range searched(dirs) {
			findIn(ctx, dir, name, findDepth, &left, found)
		}
	}()
	var paths []string
	for {
		select {
		case path, more := <-found:
			if !more {
				return paths
			}
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		case <-ctx.Done():
			return paths
		}
	}
}

// searched are the directories, those beside them, and the usual ones, each once.
func searched(dirs []string) (all []string) {
	seen := map[string]bool{}
	add := func(dir string) {
		if !seen[dir] {
			seen[dir] = true
			all = append(all, dir)
		}
	}
	for _, dir := range dirs {
		add(dir)
	}
	for _, dir := range dirs {
		if parent := filepath.Dir(dir); filepath.Dir(parent) != parent { // not the root's
			add(parent)
		}
	}
	for _, dir := range usual {
		add(dir)
	}
	return all
}

func findIn(ctx context.Context, dir, name string, depth int, left *int, found chan<- string) {
	entries, _ := os.ReadDir(dir) // what cannot be read has nothing to show
	for _, e := range entries {
		if *left--; *left < 0 || ctx.Err() != nil {
			return
		}
		path := filepath.Join(dir, e.Name())
		switch {
		case called(strings.TrimPrefix(e.Name(), "."), name):
			select {
			case found <- path:
			case <-ctx.Done():
				return
			}
		case e.IsDir() && depth > 0:
			findIn(ctx, path, name, depth-1, left, found)
		}
	}
}
