package scanner

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// U4: a statfs that is slower than any call may be has its directories read at each poll, and makes none of them stale or stuck. One is asked for each
// device, and there is nothing to heal.
func TestStatfsHangs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere it is not asked")
	}
	w := osWorld(t)
	w.must(w.fs.Mkdir(w.path("d"), 0o755))
	w.must(w.bind("d/a"))
	s := newScanner(t, Config{Root: w.root, CallTimeout: 100 * time.Millisecond})
	var asked atomic.Int32
	release := make(chan struct{})
	s.statfs = func(f *os.File) func() (uint32, bool) {
		question := statfsOf(f)
		asked.Add(1)
		return func() (uint32, bool) {
			<-release
			return question()
		}
	}
	var last *Snapshot
	for began := time.Now(); time.Since(began) < 4*fineSettleTime; {
		last = scanOK(t, s, last)
		e, ok := last.At(w.path("d/a"))
		if !ok || e.Stale != nil || s.memory.dirs[0].settling.settled || s.memory.dirs[1].settling.settled {
			t.Fatalf("%v, stale: %v, remembered %+v", ok, e.Stale, s.memory.dirs)
		}
	}
	p, err := s.Polling(t.Context())
	if err != nil || p.SkipsUnchanged || p.Type != "unknown" {
		t.Errorf("%+v, %v", p, err)
	}
	if stuck := s.Stuck(); len(stuck) != 1 || stuck[0].Op != "statfs" || stuck[0].Path != w.root || asked.Load() != 1 {
		t.Errorf("stuck are %v, asked %d times", stuck, asked.Load())
	}
	close(release)
	s.Wait(t.Context())
	if last = settled(t, s); len(s.Stuck()) != 0 || asked.Load() != 1 {
		t.Errorf("stuck are %v, asked %d times", s.Stuck(), asked.Load())
	}

	// What is known about a device is asked anew after FullEvery; no directory is read because of that.
	for _, v := range s.verdicts.known {
		v.until = time.Now()
	}
	scanOK(t, s, last)
	if asked.Load() != 1 {
		t.Error("it was asked though nothing was read")
	}
	settled(t, s)
	if asked.Load() != 2 {
		t.Errorf("it was asked %d times", asked.Load())
	}
}

// A filesystem whose keys cannot be trusted is asked for once in FullEvery, not at each read.
func TestStatfsUntrusted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere it is not asked")
	}
	w := osWorld(t)
	w.must(w.bind("a"))
	for _, told := range []bool{true, false} {
		s := newScanner(t, Config{Root: w.root})
		asked := 0
		s.statfs = func(*os.File) func() (uint32, bool) {
			asked++
			return func() (uint32, bool) { return 0x65735546, told }
		}
		var last *Snapshot
		for began := time.Now(); time.Since(began) < 2*fineSettleTime; {
			last = scanOK(t, s, last)
		}
		if asked != 1 || s.memory.dirs[0].settling.settled {
			t.Errorf("asked %d times, remembered %+v", asked, s.memory.dirs)
		}
		s.verdicts.known[s.memory.dirs[0].settling.key.Device].until = time.Now()
		if scanOK(t, s, last); asked != 2 {
			t.Errorf("later asked %d times", asked)
		}
	}
}
