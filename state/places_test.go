package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

func socks(from, n int) (entries []scanner.Entry) {
	for i := from; i < from+n; i++ {
		entries = append(entries, sock(fmt.Sprintf("s%04d", i), uint64(i+1), 1))
	}
	return entries
}

// R11: a waiting first try ends the longest-running probe older than 20 ms, which becomes a retry.
func TestEviction(t *testing.T) {
	d := drive(t, Config{Probes: 4})
	d.step(HandlerAdded{Type: csi})
	d.scan(socks(0, 4)...)
	d.now = d.now.Add(10 * time.Millisecond)
	d.want(d.scan(append(socks(0, 4), sock("z", 99, 1))...))
	if at := d.core.Deadline(); at.Sub(d.now) != 10*time.Millisecond {
		t.Fatalf("it wants to be woken in %v", at.Sub(d.now))
	}
	d.want(d.wait(10*time.Millisecond), "cancel 1", "5 ask z")
	d.want(d.wait(time.Minute)) // nobody waits for a first try
	d.want(d.step(Asked{ID: 1, Info: info(csi, "late"), Connected: true}), "close 1")
	d.want(d.by(5, nil, csi, "z"), "6 validate z CSI/z inode 99") // a retry leaves a quarter free
	d.want(d.by(2, nil, csi, "2"), "7 validate s0002 CSI/2 inode 3", "8 ask s0003")
	d.refused(8)
	if s := d.socket(dir + "/s0003"); s.Tries != 1 {
		t.Errorf("giving way counted: %d tries", s.Tries)
	}
}

// R11: a healthy plugin beside 1000 that hang is asked within 20 ms.
func TestHealthyBesideHung(t *testing.T) {
	d := drive(t, Config{})
	hung := socks(0, 1000)
	d.scan(hung...)
	d.wait(time.Hour)
	hung = append(hung, sock("z", 5000, 1))
	lines := d.scan(hung...)
	lines = append(lines, d.wait(20*time.Millisecond)...)
	if count(lines, "ask z") != 1 {
		t.Errorf("not asked: %q", lines)
	}
	if n := d.core.probes.used; n > 64 {
		t.Errorf("%d probes", n)
	}
}

// R11: a handler call that takes long gives its place back, and the chain that follows has none either.
func TestParking(t *testing.T) {
	d := drive(t, Config{Calls: 1, MaxParked: 1})
	d.step(HandlerAdded{Type: csi})
	d.scan(socks(0, 3)...)
	for id := EffectID(1); id <= 3; id++ {
		d.by(id, nil, csi, fmt.Sprint(id))
	}
	if s := d.socket(dir + "/s0002"); s.Call == nil || s.Call.Verb != "validate" || s.Call.Parked || !s.Call.Since.Equal(start) {
		t.Fatalf("the view has %+v", s.Call)
	}
	d.want(d.wait(250*time.Millisecond), "5 validate s0000 CSI/3 inode 1", "synced") // the third waits for the others (O3)
	if s := d.socket(dir + "/s0002"); !s.Call.Parked {
		t.Error("it is not parked")
	}
	d.want(d.wait(time.Hour)) // no more than MaxParked
	d.want(d.ok(4), "6 register s0002 CSI/1 inode 3")
	d.want(d.fails(6), "7 tell s0002 over 1: register: it broke", "8 validate s0001 CSI/2 inode 2") // the other one is parked now
	d.want(d.ok(5), "9 register s0000 CSI/3 inode 1")
	d.ok(9)
	d.ok(8)
	d.ok(11)
	if d.core.parked != 0 || d.core.calls.used != 0 {
		t.Errorf("%d parked, %d places taken", d.core.parked, d.core.calls.used)
	}
}

// S2, R11: when stopping, hung calls do not keep Deregister from its place.
func TestParkingOnStop(t *testing.T) {
	d := registered(t, Config{Calls: 1, DeregisterOnStop: true})
	d.scan(sock("a", 1, 1), sock("b", 2, 2))
	d.by(5, nil, csi, "y")
	d.want(d.ok(6), "7 register b CSI/y inode 2")
	d.want(d.step(Stopping{}), "cancel 7")
	d.want(d.wait(time.Second), "8 deregister a CSI/x inode 1")
	d.want(d.ok(8), "close 1")
	d.want(d.ok(7), "9 deregister b CSI/y inode 2")
	d.want(d.ok(9), "close 5", "stopped")
}

// R11: as long as probes end, nobody gives way: on a busy machine all take long, and what is given up has to be done again.
func TestNoEvictionWhileProbesEnd(t *testing.T) {
	d := drive(t, Config{Probes: 4})
	d.unchecked = true
	d.scan(socks(0, 40)...)
	for id := EffectID(1); id < 31; id++ {
		d.want(d.wait(15 * time.Millisecond))
		d.want(d.refused(id)[:1], fmt.Sprintf("%d ask s%04d", id+4, 39-(id+3)))
	}
	d.want(d.wait(20*time.Millisecond), "cancel 31", "35 ask s0005") // then one, then two
	d.want(d.wait(20*time.Millisecond), "cancel 32", "36 ask s0004", "cancel 33", "37 ask s0003")
}

// S4: behind a probe that never ends nothing is kept of those that did.
func TestNothingIsKeptBehindAProbe(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("hung", 1, 1))
	for i := range EffectID(2000) {
		d.scan(sock("hung", 1, 1), sock("a", uint64(i+2), 1))
		d.refused(i + 2)
	}
	if n := len(d.core.probing); n > manyOver {
		t.Errorf("%d are kept", n)
	}
}

// O3: a try that waits for others is not waited for.
func TestSyncedBehindAName(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1), sock("b", 2, 1))
	d.answers(1, csi, "x")
	d.answers(2, csi, "x")
	d.want(d.wait(time.Minute), "synced")
}
