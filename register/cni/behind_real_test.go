//go:build linux

package cni

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// memory is what a FUSE filesystem lets the kernel remember.
type memory struct {
	// answers is for how long the kernel believes what it was told of names and attributes.
	answers time.Duration
	// content has it keep what was read of a file as long as it believes that the file's attributes are the same.
	content bool
	// sees is how long a change may take, from when it is made behind the mount to when it is in use. 0: it may never be, which is a limit of the filesystem's.
	sees time.Duration
}

// memories are those of filesystems that people use: the second is libfuse's default, the third its auto_cache. The last takes itself for the only way to its files.
var memories = map[string]memory{
	"nothing":            {sees: 5 * time.Second},
	"attributes for 1 s": {answers: time.Second, sees: 5 * time.Second},
	"content as well":    {answers: time.Second, content: true, sees: 5 * time.Second},
	"all for ever":       {answers: 24 * time.Hour, content: true},
}

// behinds are changes behind a mount: nothing of the kernel's own knows that something has changed.
var behinds = map[string]func(t *testing.T, file string){
	"rewritten, same size": func(t *testing.T, file string) { behind(t, file, list("b")) },
	"rewritten, longer":    func(t *testing.T, file string) { behind(t, file, list("b", "bridge", "portmap", "ptp")) },
	"rewritten, shorter":   func(t *testing.T, file string) { behind(t, file, strings.ReplaceAll(list("b"), "\n", "")) },
	"renamed over": func(t *testing.T, file string) {
		behind(t, filepath.Dir(file)+"/.new", list("b"))
		if err := os.Rename(filepath.Dir(file)+"/.new", file); err != nil {
			t.Error(err)
		}
	},
	"made": func(t *testing.T, file string) { behind(t, filepath.Dir(file)+"/00-b.conflist", list("b")) },
	"removed, and the next one comes first": func(t *testing.T, file string) {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	},
	"directory swapped": func(t *testing.T, file string) {
		dir := filepath.Dir(file)
		behind(t, dir+".new/10-a.conflist", list("b"))
		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Error(err)
		}
		if err := os.Rename(dir+".new", dir); err != nil {
			t.Error(err)
		}
	},
}

func behind(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Error(err)
	}
}

// CN4: what changes behind a FUSE mount is in use a poll after the kernel has asked the filesystem again, be it for the content of a file, for a name or for attributes. Until
// then, and if it never asks, what was in use stays so. No size and no time is gone by, so that none which is out of date does any harm.
func TestBehindFUSE(t *testing.T) {
	t.Parallel()
	base := mountable(t)
	if _, err := os.Stat("/dev/fuse"); err != nil {
		lacking(t, err.Error())
	}
	type subject struct {
		*real
		memory
		file    string // behind the mount
		change  func(t *testing.T, file string)
		changed time.Time
	}
	subjects := map[string]*subject{}
	for what, m := range memories {
		n := len(subjects)
		dir, back := filepath.Join(base, fmt.Sprintf("dir%d", n)), filepath.Join(base, fmt.Sprintf("back%d", n))
		for _, path := range []string{dir, back} {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		loopback(t, back, dir, m)
		for how, change := range behinds {
			s := &subject{memory: m, change: change, file: fmt.Sprintf("%s/%d/net.d/10-a.conflist", back, len(subjects))}
			behind(t, s.file, list("a"))
			behind(t, filepath.Dir(s.file)+"/20-b.conflist", list("b"))
			s.real = startAt(t, fmt.Sprintf("%s/%d/net.d", dir, len(subjects)))
			subjects[what+"/"+how] = s
		}
	}
	for _, s := range subjects {
		s.waitsFor(Ready, "a")
	}
	for _, s := range subjects {
		s.changed = time.Now()
		s.change(t, s.file)
	}
	for name, s := range subjects {
		t.Run(name, func(t *testing.T) {
			s.T = t
			if s.sees == 0 {
				<-time.After(time.Until(s.changed.Add(2 * time.Second)))
				// It may be stale: what is remembered for ever may be half a file.
				if v := s.s.View(); !v.Ready || strings.Contains(s.log.String(), "not ready") {
					t.Errorf("it is %s: %s", v.State, v.Message)
				}
				return
			}
			s.waits("network b", func(v View) bool { return v.State == Ready && v.DefaultNetwork == "b" })
			if took := s.s.View().LastSuccess.Sub(s.changed); took > s.sees {
				t.Errorf("it was in use after %v, want %v", took, s.sees)
			}
		})
	}
}

// startAt starts a Syncer on a directory that is there.
func startAt(t *testing.T, dir string) *real {
	t.Helper()
	r := &real{T: t, conf: dir, at: t.TempDir(), log: &output{}}
	for _, plugin := range []string{"bridge", "portmap", "ptp"} {
		r.install(plugin)
	}
	r.begin(Config{})
	return r
}

// loopback shows back at dir through FUSE, by a process of its own.
func loopback(t *testing.T, back, dir string, m memory) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLoopbackServer$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "PLUGPOLL_LOOPBACK_DIR="+dir, "PLUGPOLL_LOOPBACK_BACK="+back, "PLUGPOLL_LOOPBACK_ANSWERS="+m.answers.String())
	if m.content {
		cmd.Env = append(cmd.Env, "PLUGPOLL_LOOPBACK_CONTENT=1")
	}
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close(); _ = cmd.Wait() })
	timer := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	answer := make([]byte, 200)
	if n, err := output.Read(answer); err != nil || string(answer[:n]) != "mounted\n" {
		lacking(t, "no FUSE: "+string(answer[:n]))
	}
}

// TestLoopbackServer is no test but the server of loopback. It ends with its standard input, so with the process that started it.
func TestLoopbackServer(t *testing.T) {
	dir := os.Getenv("PLUGPOLL_LOOPBACK_DIR")
	if dir == "" {
		return
	}
	if err := serveLoopback(dir); err != nil {
		_, _ = os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("mounted\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func serveLoopback(dir string) error {
	root, err := fs.NewLoopbackRoot(os.Getenv("PLUGPOLL_LOOPBACK_BACK"))
	if err != nil {
		return err
	}
	answers, err := time.ParseDuration(os.Getenv("PLUGPOLL_LOOPBACK_ANSWERS"))
	if err != nil {
		return err
	}
	node := &rememberedNode{root.(*fs.LoopbackNode), 0}
	if os.Getenv("PLUGPOLL_LOOPBACK_CONTENT") != "" {
		node.keep = fuse.FOPEN_KEEP_CACHE
	}
	_, err = fs.Mount(dir, node, &fs.Options{
		EntryTimeout: &answers, AttrTimeout: &answers, NegativeTimeout: &answers,
		MountOptions: fuse.MountOptions{
			DirectMountStrict: true, FsName: "plugpoll", Name: "plugpoll",
			// A listing that tells attributes as well would have the kernel learn them at each poll.
			DisableReadDirPlus: true,
		},
	})
	return err
}

// rememberedNode is a file or a directory that the kernel reads through its cache. It hides what go-fuse's own has: a descriptor that the kernel may read from by itself.
type rememberedNode struct {
	*fs.LoopbackNode
	keep uint32 // keeps what was read from one open to the next
}

func (n *rememberedNode) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &rememberedNode{ops.(*fs.LoopbackNode), n.keep}
}

func (n *rememberedNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, more, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &reading{f.(openFile)}, more | n.keep, 0
}

type openFile interface {
	fs.FileReader
	fs.FileReleaser
	fs.FileGetattrer
}

type reading struct{ openFile }
