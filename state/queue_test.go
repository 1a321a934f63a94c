package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// burst is n sockets called s000 and so on, with inodes from 1.
func burst(n int) (entries []scanner.Entry) {
	for i := range n {
		entries = append(entries, sock(fmt.Sprintf("s%03d", i), uint64(i+1), 1))
	}
	return entries
}

// R11: 64 probes at once, the newest first; each that ends makes room for one.
func TestProbeSlots(t *testing.T) {
	d := drive(t, Config{})
	got := d.scan(burst(100)...)
	if len(got) != 64 || got[0] != "1 ask s099" || got[63] != "64 ask s036" {
		t.Fatalf("%d effects: %v", len(got), got)
	}
	d.phase(dir+"/s000", Pending)
	d.want(d.refused(1), "65 ask s035")
	d.want(d.scan(append(burst(100), sock("z", 999, 1))...))
	d.want(d.refused(2), "66 ask z")
}

// R11: 16 handler calls at once.
func TestCallSlots(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(burst(20)...)
	calls := 0
	for id := range EffectID(20) {
		calls += len(d.answers(id+1, csi, fmt.Sprint(id)))
	}
	if calls != 16 {
		t.Fatalf("%d calls run", calls)
	}
	d.want(d.ok(21), "37 register s019 CSI/0 inode 20") // the place is kept
	d.want(d.ok(37), "38 validate s000 CSI/19 inode 1", "39 tell s019 over 1: is registered")
}

// R11: first tries go before retries, and retries never take the last quarter.
func TestRetriesLeaveAQuarter(t *testing.T) {
	d := drive(t, Config{Probes: 8})
	entries := burst(20)
	d.scan(entries...)
	for id := range EffectID(20) {
		d.refused(id + 1)
	}
	got := d.wait(time.Second) // all are due
	if len(got) != 6 {
		t.Fatalf("%d retries run: %v", len(got), got)
	}
	d.want(d.scan(append(entries, sock("x", 100, 1), sock("y", 101, 1), sock("z", 102, 1))...), "27 ask z", "28 ask y")
	d.want(d.refused(21), "29 ask x") // the first try goes before the retries that wait
	d.want(d.refused(22))             // 7 run
	d.want(d.refused(27))
	d.want(d.refused(28), skip)
	if n := d.check.liveProbes(); n != 6 {
		t.Errorf("%d probes run", n)
	}
}

// R11: what somebody asked for goes as a first try.
func TestRetryAskedIsUrgent(t *testing.T) {
	d := drive(t, Config{Probes: 4})
	d.scan(burst(8)...)
	for id := range EffectID(8) {
		d.refused(id + 1)
	}
	if got := d.wait(time.Second); len(got) != 3 {
		t.Fatalf("%d retries run: %v", len(got), got)
	}
	if got := d.step(RetryAsked{dir + "/s000"}); count(got, "ask s000") != 1 && d.check.paths[dir+"/s000"].probe == nil {
		t.Errorf("it waits: %v", got)
	}
}

// R11: a Validate of a socket that has failed is a retry: it leaves the last quarter to first ones.
func TestRetriedCallsLeaveAQuarter(t *testing.T) {
	d := drive(t, Config{Calls: 4})
	d.step(HandlerAdded{Type: csi})
	d.scan(burst(5)...)
	for id := range EffectID(5) {
		d.refused(id + 1)
	}
	d.wait(time.Second)
	calls := 0
	for id := range EffectID(5) {
		calls += len(d.answers(id+6, csi, fmt.Sprint(id)))
	}
	if calls != 3 {
		t.Fatalf("%d retried calls run", calls)
	}
	d.want(d.scan(append(burst(5), sock("z", 99, 1))...), "14 ask z")
	d.want(d.answers(14, csi, "z"), "15 validate z CSI/z inode 99")
}

// A queued socket that needs nothing any more takes no place.
func TestQueueForgets(t *testing.T) {
	d := drive(t, Config{Probes: 1, Calls: 1})
	d.step(HandlerAdded{Type: csi})
	d.want(d.scan(burst(3)...), "1 ask s002")
	d.want(d.scan(burst(3)[1:]...))
	d.want(d.answers(1, csi, "x"), "2 validate s002 CSI/x inode 3", "3 ask s001")
	d.want(d.answers(3, csi, "y"), skip)
	d.want(d.scan(burst(3)[2:]...), "close 3")
	d.want(d.ok(2), "4 register s002 CSI/x inode 3")
	d.want(d.ok(4), "5 tell s002 over 1: is registered", "synced")
	d.told(5)
	d.want(d.scan(), "6 deregister s002 CSI/x inode 3")
	d.ok(6)
	if l := left(d.core); l != "" {
		t.Errorf("something is left:\n%s", l)
	}
}

// R11, R12: with more sockets to try again than places, each gets its turn.
func TestRetriesTakeTurns(t *testing.T) {
	d := drive(t, Config{Probes: 4})
	var all []scanner.Entry
	for i := range 40 {
		all = append(all, sock(fmt.Sprintf("s%02d", i), uint64(i+1), 1))
	}
	asks := map[string]int{}
	d.scan(all...)
	for range 2000 { // every ask hangs for a second
		for _, p := range d.check.paths {
			if p.probe != nil {
				asks[p.path]++
				d.refused(p.probe.id)
			}
		}
		d.wait(time.Second)
	}
	least, most := 1<<30, 0
	for _, e := range all {
		least, most = min(least, asks[e.Path]), max(most, asks[e.Path])
	}
	if least < most/2 {
		t.Errorf("one socket was asked %d times, another %d times", least, most)
	}
}

// R11: telling a plugin that it failed once more is a retry too.
func TestTellingRetries(t *testing.T) {
	d := drive(t, Config{Probes: 4, Calls: 10})
	d.step(HandlerAdded{Type: csi})
	var all []scanner.Entry
	for i := range 10 {
		all = append(all, sock(fmt.Sprintf("s%02d", i), uint64(i+1), 1))
	}
	d.scan(all...)
	for range 100 { // handlers refuse at once; telling never ends in the second round
		for _, p := range d.check.paths {
			switch {
			case p.probe != nil && p.probe.kind == ask:
				d.answers(p.probe.id, csi, p.path)
			case p.probe != nil && p.tries < 2:
				d.told(p.probe.id)
			case p.call != nil:
				d.fails(p.call.id)
			}
		}
		d.wait(100 * time.Millisecond)
	}
	if got := d.core.probes.used; got != 3 {
		t.Errorf("%d of 4 places are taken by retries, want 3", got)
	}
}
