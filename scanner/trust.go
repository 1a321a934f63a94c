package scanner

import (
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/afero"
)

// This file decides whether the keys of a directory can be trusted. That takes statfs(2), which on some filesystems asks a server and is slower than all
// that a scan needs to know. So it is a call of its own, in a goroutine of its own: as long as there is no answer nothing is skipped on that device, and
// that is all.

// statfsPatience is how long a scan waits for the answer, which is microseconds where it matters. After that it goes on without.
const statfsPatience = 10 * time.Millisecond

// verdicts are what is known about filesystems, by device. Each is asked for anew when FullEvery is over: the number of a filesystem that was unmounted goes
// to the next one mounted, and until then that one is taken for the other. There is one question at most for each device, and maxStuck in all.
type verdicts struct {
	mu    sync.Mutex
	known map[uint64]*verdict
}

type verdict struct {
	call     Call
	late     bool          // who asked has gone on without
	until    time.Time     // when it is asked anew; zero: there is no answer yet
	answered chan struct{} // closed with the answer
	// The answer.
	magic uint32
	told  bool
}

// trusted reports whether there is an answer, and it is a filesystem that keeps its keys.
func (v *verdict) trusted() bool {
	select {
	case <-v.answered:
		return v.told && localFilesystem(v.magic)
	default:
		return false
	}
}

// trusts reports whether the filesystem f is on keeps its keys, and f is the directory that had this one: something may have been mounted
// over it in between.
func (w *scan) trusts(c *caller, f afero.File, path string, k key) bool {
	if declared, ok := w.cfg.FS.(interface{ Stable() bool }); ok {
		return declared.Stable()
	}
	file := osFile(f)
	if file == nil {
		return false
	}
	v := w.verdicts.of(k.Device, time.Now())
	if v != nil && !v.trusted() {
		w.noteRoot(path, v)
		return false
	}
	c.enter("list", path)
	info, err := file.Stat()
	c.leave()
	if err != nil {
		return false
	}
	if st := stampOf(info); st.Device != k.Device || st.Inode != k.Inode {
		return false
	}
	if v == nil {
		v = w.askFilesystem(file, k.Device, path, statfsPatience, nil)
	}
	w.noteRoot(path, v)
	return v != nil && v.trusted()
}

// toldBit lies above the numbers of filesystems.
const toldBit = 1 << 32

// noteRoot keeps what is known about the root's filesystem, for Filesystem.
func (w *scan) noteRoot(path string, v *verdict) {
	if path != w.root || v == nil {
		return
	}
	select {
	case <-v.answered:
		if v.told {
			w.rootType.Store(toldBit | uint64(v.magic))
		}
	default:
	}
}

// Filesystem is Polling.Type as far as scans have shown it: "unknown" before the first one, and where the system does not tell. It makes no call.
func (s *Scanner) Filesystem() string {
	if known := s.rootType.Load(); known&toldBit != 0 {
		return filesystemOf(uint32(known)).name
	}
	switch s.cfg.FS.(type) {
	case *afero.OsFs, afero.OsFs:
		return "unknown"
	}
	return s.cfg.FS.Name()
}

// askFilesystem asks which filesystem f is on, and waits for the answer, but not longer than patience or until stop. It returns nil if it cannot be asked.
func (s *Scanner) askFilesystem(f *os.File, device uint64, path string, patience time.Duration, stop <-chan struct{}) *verdict {
	v := s.verdicts.begin(device, path, func() func() (uint32, bool) { return s.statfs(f) })
	if v == nil {
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-v.answered:
		return v
	case <-timer.C:
	case <-stop:
	}
	s.verdicts.mu.Lock()
	v.late = true
	s.verdicts.mu.Unlock()
	return v
}

// of returns what is known about a device at now, or is being asked; nil if it is to be asked.
func (l *verdicts) of(device uint64, now time.Time) *verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.known[device]; v != nil && (v.until.IsZero() || now.Before(v.until)) {
		return v
	}
	return nil
}

// begin asks about a device, unless somebody else has just done that. ask prepares the question.
func (l *verdicts) begin(device uint64, path string, ask func() func() (uint32, bool)) *verdict {
	now := time.Now()
	if v := l.of(device, now); v != nil {
		return v
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(_ uint64, v *verdict) bool { return !v.until.IsZero() && !now.Before(v.until) })
	open := 0
	for _, v := range l.known {
		if v.until.IsZero() {
			open++
		}
	}
	if v := l.known[device]; v != nil || open >= maxStuck {
		return v
	}
	question := ask()
	if question == nil {
		return nil
	}
	if l.known == nil {
		l.known = map[uint64]*verdict{}
	}
	v := &verdict{call: Call{"statfs", path, now}, answered: make(chan struct{})}
	l.known[device] = v
	go func() {
		magic, told := question()
		l.mu.Lock()
		defer l.mu.Unlock()
		v.magic, v.told, v.until = magic, told, time.Now().Add(FullEvery)
		close(v.answered)
	}()
	return v
}

// late are the questions that nobody waits for any more.
func (l *verdicts) late() []*verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(func(yield func(*verdict) bool) {
		for _, v := range l.known {
			if v.late && v.until.IsZero() && !yield(v) {
				return
			}
		}
	})
}
