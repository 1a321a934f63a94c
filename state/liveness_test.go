package state

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// A process, its successor, and another user's.
var (
	first  = Peer{UID: 0, PID: 10, Start: 100}
	second = Peer{UID: 0, PID: 11, Start: 200}
	reused = Peer{UID: 0, PID: 10, Start: 300}
)

// by has Ask id answered by a process. nil: nobody knows which.
func (d *driver) by(id EffectID, peer *Peer, typ, name string) []string {
	d.t.Helper()
	return d.step(Asked{ID: id, Info: info(typ, name), Connected: true, Peer: peer})
}

// witnessed is a driver with one socket, a, registered as x by effect 3 over connection 1 to a process. The next effect is 5.
func witnessed(t *testing.T, cfg Config, e scanner.Entry, peer *Peer) *driver {
	t.Helper()
	d := drive(t, cfg)
	d.step(HandlerAdded{Type: csi})
	d.scan(e)
	d.by(1, peer, csi, "x")
	d.ok(2)
	d.ok(3)
	d.told(4)
	d.took(Debug)
	return d
}

func (d *driver) ended(conn EffectID, goAway bool) []string {
	d.t.Helper()
	return d.step(Disconnected{Conn: conn, GoAway: goAway})
}

func (d *driver) looks(id EffectID, e scanner.Entry) []string {
	d.t.Helper()
	return d.step(Looked{ID: id, Entry: e, Started: d.now})
}

// L1: the end of the connection leads to a look and a dial at once, and the answer decides.
func TestConnectionEnds(t *testing.T) {
	replaced := []string{"7 deregister a CSI/x inode 1"}
	same := []string{"7 tell a over 6: is registered"}
	for _, test := range []struct {
		name         string
		was, is      *Peer
		goAway       bool
		announces    string
		want         []string
		deregistered bool
	}{
		{"the same process", &first, &first, false, "x", same, false},
		{"the same process said goodbye", &first, &first, true, "x", same, false},
		{"another process", &first, &second, false, "x", replaced, true},
		{"another process after a goodbye", &first, &second, true, "x", replaced, true},
		{"a process with the number of the old one", &first, &reused, false, "x", replaced, true},
		{"nobody knows", nil, nil, false, "x", replaced, true},
		{"nobody knows after a goodbye", nil, nil, true, "x", same, false},
		{"it was not known", nil, &first, true, "x", same, false},
		{"it is not known any more", &first, nil, false, "x", replaced, true},
		{"of another pid namespace", &Peer{UID: 7}, &Peer{UID: 7}, true, "x", same, false},
		{"of another pid namespace, dead", &Peer{UID: 7}, &Peer{UID: 7}, false, "x", replaced, true},
		{"the same process under another name", &first, &first, true, "y", replaced, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := witnessed(t, Config{}, sock("a", 1, 1), test.was)
			d.want(d.ended(1, test.goAway), "close 1", "5 look a")
			d.phase(dir+"/a", Registered)
			d.want(d.looks(5, sock("a", 1, 1)), "6 ask a")
			d.want(d.by(6, test.is, csi, test.announces), test.want...)
			if !test.deregistered {
				d.told(7)
				d.want(d.took(Notice))
				d.want(d.scan(), "8 deregister a CSI/x inode 1")
				d.want(d.ok(8), "close 6")
				return
			}
			d.want(d.ok(7), "8 validate a CSI/"+test.announces+" inode 1")
			d.want(d.ok(8), "9 register a CSI/"+test.announces+" inode 1")
			d.want(d.ok(9), "10 tell a over 6: is registered")
			d.want(d.took(Notice), "deregistered", "registered")
		})
	}
}

// L1: an answer that is none is of another instance: the old one has to go.
func TestAnotherIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		in   Asked
		want []string
	}{
		{"not a plugin", Asked{ID: 6, Err: errTest, Failure: Unsupported}, []string{"7 deregister a CSI/x inode 1"}},
		{"a bad answer", Asked{ID: 6, Err: errTest, Failure: Permanent, Connected: true}, []string{"7 deregister a CSI/x inode 1", "8 tell a over 6: it broke"}},
		{"unknown type", Asked{ID: 6, Info: info(dra, "x"), Connected: true, Peer: &first}, []string{"7 deregister a CSI/x inode 1", skip}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := witnessed(t, Config{}, sock("a", 1, 1), &first)
			d.ended(1, true)
			d.looks(5, sock("a", 1, 1))
			d.want(d.step(test.in), test.want...)
		})
	}
}

// L1, L2: what does not answer is unreachable at once, is tried by the backoff, and is deregistered when the grace is over.
func TestUnreachable(t *testing.T) {
	d := witnessed(t, Config{LivenessGrace: time.Minute}, sock("a", 1, 1), &first)
	d.ended(1, false)
	d.looks(5, sock("a", 1, 1))
	d.want(d.step(Asked{ID: 6, Err: errTest, Failure: Refused}))
	d.phase(dir+"/a", Unreachable)
	if s := d.socket(dir + "/a"); s.LastError != "it broke" || s.Tries != 1 || s.NextTry.IsZero() || s.Plugin == nil {
		t.Errorf("the view has %+v", s)
	}
	d.want(d.took(Notice), "unreachable")
	for id := EffectID(7); ; id++ {
		lines := d.wait(d.core.Deadline().Sub(d.now))
		if count(lines, "deregister a CSI/x inode 1") > 0 {
			break
		}
		d.want(lines, fmt.Sprintf("%d ask a", id))
		d.refused(id)
		d.phase(dir+"/a", Unreachable)
	}
	if since := d.now.Sub(start); since != time.Minute {
		t.Errorf("it was deregistered after %v", since)
	}
	var last EffectID
	for id := range d.core.flights {
		last = max(last, id)
	}
	d.ok(last)
	d.phase(dir+"/a", Backoff)
	d.want(d.took(Notice), "deregistered")
	lines := d.wait(2 * time.Minute)
	d.want(lines, fmt.Sprintf("%d ask a", last+1))
	d.want(d.by(last+1, &second, csi, "x"), fmt.Sprintf("%d validate a CSI/x inode 1", last+2))
}

// L1: a process that answers again is the one that is registered, and the handler sees nothing.
func TestReachableAgain(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	d.ended(1, false)
	d.looks(5, sock("a", 1, 1))
	d.refused(6)
	d.want(d.wait(time.Second), "7 ask a")
	d.want(d.by(7, &first, csi, "x"), "8 tell a over 7: is registered")
	d.phase(dir+"/a", Registered)
	d.want(d.took(Notice), "unreachable", "reachable")
	d.told(8)
	if s := d.socket(dir + "/a"); s.Tries != 0 || s.LastError != "" {
		t.Errorf("the view has %+v", s)
	}
}

// L2: negative is never.
func TestNoGrace(t *testing.T) {
	d := witnessed(t, Config{LivenessGrace: -1}, sock("a", 1, 1), &first)
	d.ended(1, false)
	d.looks(5, sock("a", 1, 1))
	d.refused(6)
	for id := EffectID(7); id < 100; id++ {
		d.want(d.wait(d.core.Deadline().Sub(d.now)), fmt.Sprintf("%d ask a", id))
		d.refused(id)
	}
	d.phase(dir+"/a", Unreachable)
	if n := len(d.took(Notice)); n != 3 { // one an hour (O1)
		t.Errorf("%d lines in %v", n, d.now.Sub(start))
	}
}

// L1: what a look finds in the place of the old file is another instance, before any scan.
func TestLookFindsAnother(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	d.ended(1, false)
	d.now = d.now.Add(time.Millisecond)
	d.want(d.looks(5, sock("a", 2, 2)), "6 ask a")
	d.want(d.by(6, &second, csi, "x"), "7 deregister a CSI/x inode 1")
	d.want(d.ok(7), "8 validate a CSI/x inode 2")

	// A scan that began before knows less.
	d.want(d.step(Scanned{Root: dir, Snapshot: scanner.NewSnapshot([]scanner.Entry{sock("a", 1, 1)}, nil), Started: d.now.Add(-1)}))
	d.want(d.step(Scanned{Root: dir, Snapshot: scanner.NewSnapshot(nil, nil), Started: d.now.Add(-1)}))
	d.want(d.scan(sock("a", 2, 2)))
	d.want(d.ok(8), "9 register a CSI/x inode 2")
	// And one that began later knows more.
	d.now = d.now.Add(time.Millisecond)
	d.want(d.scan(sock("a", 3, 3)), "close 6", "cancel 9", "10 ask a")
}

// A look that began before a scan that was used is nothing new, and a stale entry is not what is there.
func TestLookIsLate(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	d.ended(1, false)
	began := d.now
	d.now = d.now.Add(time.Millisecond)
	d.scan(sock("a", 1, 1))
	d.want(d.step(Looked{ID: 5, Entry: sock("a", 9, 9), Started: began}), "6 ask a")
	if got := d.socket(dir + "/a").Identity.Inode; got != 1 {
		t.Errorf("inode %d", got)
	}

	d = witnessed(t, Config{}, sock("a", 1, 1), &first)
	d.ended(1, false)
	d.looks(5, sock("a", 2, 2))
	d.now = d.now.Add(time.Second)
	old := sock("a", 1, 1)
	old.Stale = &scanner.Stale{Since: d.now, Err: errTest}
	d.want(d.scan(old))
	if got := d.socket(dir + "/a").Identity.Inode; got != 2 {
		t.Errorf("inode %d", got)
	}
	d.scan(sock("a", 3, 3))
	if got := d.socket(dir + "/a").Identity.Inode; got != 3 {
		t.Errorf("inode %d", got)
	}
}

// L1: only a scan confirms that it is gone; it is asked for, and the dial waits a moment for it.
func TestLookFindsNothing(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	d.ended(1, false)
	d.want(d.step(Looked{ID: 5, Err: fs.ErrNotExist, Started: d.now}), "rescan "+dir)
	d.phase(dir+"/a", Registered)
	d.want(d.wait(20 * time.Millisecond))
	d.want(d.scan(), "6 deregister a CSI/x inode 1")

	d = witnessed(t, Config{}, sock("a", 1, 1), &first)
	d.ended(1, false)
	d.step(Looked{ID: 5, Err: fs.ErrNotExist, Started: d.now})
	d.want(d.wait(time.Second), "6 ask a")
	d.want(d.step(Asked{ID: 6, Err: errTest, Failure: Refused}))
	d.phase(dir+"/a", Unreachable)
}

// L2: a server that keeps closing the connection is asked again at once, then ever more rarely, and stays registered.
func TestGoesAwayAgainAndAgain(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	var pauses []time.Duration
	conn, id := EffectID(1), EffectID(5)
	for range 10 {
		ended := d.now
		lines := d.ended(conn, true)
		if count(lines, "look a") == 0 {
			lines = d.wait(time.Hour)
		}
		d.want(lines[len(lines)-1:], fmt.Sprintf("%d look a", id))
		d.now = d.core.flights[id].began
		pauses = append(pauses, d.now.Sub(ended))
		d.phase(dir+"/a", Registered)
		d.want(d.looks(id, sock("a", 1, 1)), fmt.Sprintf("%d ask a", id+1))
		d.want(d.by(id+1, &first, csi, "x"), fmt.Sprintf("%d tell a over %d: is registered", id+2, id+1))
		d.told(id + 2)
		conn, id = id+1, id+3
	}
	want := []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60, 60}
	for i := range want {
		if pauses[i] != want[i]*time.Second {
			t.Fatalf("pauses of %v", pauses)
		}
	}
	d.want(d.took(Notice))
	d.wait(time.Minute)
	d.want(d.ended(conn, true), fmt.Sprintf("close %d", conn), fmt.Sprintf("%d look a", id)) // it had its rest
}

// I4: chmod of what is registered changes nothing but the view.
func TestMetadata(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	for stamp := int64(2); stamp < 50; stamp++ {
		d.now = d.now.Add(time.Millisecond)
		d.want(d.scan(sock("a", 1, stamp)))
	}
	d.phase(dir+"/a", Registered)
	if got := d.socket(dir + "/a").Identity.ChangeTime; got != 49 {
		t.Errorf("the view has the change time %d", got)
	}
	d.want(d.took(Notice))
	d.want(d.scan(sock("a", 2, 50)), "5 ask a") // another inode is another instance
	d.want(d.scan(), "cancel 5", "6 deregister a CSI/x inode 1")
}

// I4: without inodes a stamp may mean another socket, so the plugin is asked over another connection, and the process decides.
func TestMetadataWithoutInodes(t *testing.T) {
	for _, test := range []struct {
		name    string
		was, is *Peer
		want    []string
	}{
		{"the same process", &first, &first, []string{"close 1", "6 tell a over 5: is registered"}},
		{"another process", &first, &second, []string{"6 deregister a CSI/x inode 0"}},
		{"nobody knows", nil, nil, []string{"6 deregister a CSI/x inode 0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := witnessed(t, Config{}, sock("a", 0, 1), test.was)
			d.want(d.scan(sock("a", 0, 2)), "5 ask a")
			d.phase(dir+"/a", Registered)
			d.want(d.by(5, test.is, csi, "x"), test.want...)
		})
	}

	// A change during the check is checked too.
	d := witnessed(t, Config{}, sock("a", 0, 1), &first)
	d.want(d.scan(sock("a", 0, 2)), "5 ask a")
	d.want(d.scan(sock("a", 0, 3)))
	d.want(d.by(5, &first, csi, "x"), "close 1", "6 tell a over 5: is registered")
	d.told(6)
	d.want(d.wait(stampReset), "7 ask a")
	d.want(d.by(7, &first, csi, "x"), "close 5", "8 tell a over 7: is registered")
}

// I6: a stamp that changes during the first try is judged when the try ends.
func TestTouchedDuringTheTry(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan()
	d.want(d.scan(sock("a", 1, 1)), "1 ask a")
	d.want(d.scan(sock("a", 1, 2)))
	d.want(d.by(1, &first, csi, "x"), "2 validate a CSI/x inode 1")
	d.want(d.scan(sock("a", 1, 3)))
	d.want(d.ok(2), "3 register a CSI/x inode 1")
	d.want(d.scan(sock("a", 1, 4)))
	d.want(d.ok(3), "4 tell a over 1: is registered")
	d.want(d.took(Notice), "registered")
}

// I6, R12: a try that fails while stamps change is made anew, once in five seconds.
func TestTouchedDuringAFailingTry(t *testing.T) {
	d := drive(t, Config{})
	d.scan()
	d.scan(sock("a", 1, 1))
	d.want(d.scan(sock("a", 1, 2)))
	d.want(d.refused(1), "2 ask a")
	d.want(d.scan(sock("a", 1, 3)))
	d.want(d.refused(2))
	d.phase(dir+"/a", Backoff)
}

// R15: a dial that found another file is judged by a look.
func TestStaleDial(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan()
	d.scan(sock("a", 1, 1))
	stale := func(id EffectID) []string {
		return d.step(Asked{ID: id, Err: errTest, Failure: Stale})
	}
	d.want(stale(1), "2 look a")
	d.want(d.looks(2, sock("a", 2, 2)), "3 ask a")
	d.want(stale(3))
	d.want(d.wait(lookPause), "4 look a") // not as fast as it can
	d.want(d.looks(4, sock("a", 2, 2)))   // it was wrong
	d.phase(dir+"/a", Backoff)
	d.want(d.wait(time.Second), "5 ask a")
	d.want(stale(5), "6 look a")
	d.want(d.step(Looked{ID: 6, Err: errTest}))
	d.want(d.took(Notice), "failing")
	d.want(d.scan())
}

// L1: a connection that ends while the handler is at work is dealt with right after.
func TestConnectionEndsDuringRegister(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan()
	d.scan(sock("a", 1, 1))
	d.by(1, &first, csi, "x")
	d.want(d.ended(1, false), "close 1")
	d.want(d.ok(2), "3 register a CSI/x inode 1")
	d.want(d.ok(3), "4 look a")
	d.phase(dir+"/a", Registered)
	d.want(d.looks(4, sock("a", 1, 1)), "5 ask a")
	d.want(d.by(5, &first, csi, "x"), "6 tell a over 5: is registered")

	// Nothing can be told over it.
	d = drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan()
	d.scan(sock("a", 1, 1))
	d.by(1, &first, csi, "x")
	d.ended(1, false)
	d.want(d.fails(2))
	d.phase(dir+"/a", Backoff)
}

// R3: a plugin that hangs up on being refused is told.
func TestConnectionEndsDuringTell(t *testing.T) {
	d := drive(t, Config{})
	d.scan()
	d.scan(sock("a", 1, 1))
	d.want(d.answers(1, "Other", "x"), "2 tell a over 1: no handler for plugin type Other: no type is known yet")
	d.want(d.ended(1, false), "close 1", "cancel 2")
	d.phase(dir+"/a", Rejected)
	d.want(d.told(2))
	d.want(d.wait(time.Hour))
	d.scan()
	if l := left(d.core); l != "" {
		t.Errorf("something is left:\n%s", l)
	}
}

// R18: observing asks, validates and watches, and tells nobody anything.
func TestObserve(t *testing.T) {
	d := drive(t, Config{Observe: true})
	d.step(HandlerAdded{Type: csi, Exclusive: true})
	d.scan()
	d.scan(sock("a", 1, 1), sock("b", 2, 1), sock("c", 3, 1))
	d.by(1, &first, csi, "x")
	d.want(d.by(2, &second, csi, "x"))
	d.want(d.by(3, &second, dra, "x"), "close 3")
	d.phase(dir+"/a", Rejected)
	d.want(d.ok(4), "5 validate b CSI/x inode 2")
	d.want(d.ok(5))
	d.phase(dir+"/c", Observed)
	d.phase(dir+"/b", Observed)
	d.want(d.wait(time.Hour))
	d.want(d.took(Notice), "rejected", "observed", "observed")
	d.want(d.ended(1, false), "close 1", "6 look c")
	d.want(d.looks(6, sock("c", 3, 1)), "7 ask c")
	d.refused(7)
	d.phase(dir+"/c", Unreachable)
	for range 20 {
		for _, line := range d.wait(time.Minute) {
			var id EffectID
			if _, err := fmt.Sscanf(line, "%d ask c", &id); err == nil {
				d.refused(id)
			}
		}
	}
	d.phase(dir+"/c", Unreachable)
	d.want(d.scan(), "close 2", skip)
	if l := left(d.core); l != "" {
		t.Errorf("something is left:\n%s", l)
	}
}

// R12: a plugin that restarts again and again is asked at once each time, though its inode is used again: the end of its connection is no touch.
func TestRestartsAgainAndAgain(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	conn, id := EffectID(1), EffectID(5)
	for stamp := int64(2); stamp < 20; stamp++ {
		d.now = d.now.Add(100 * time.Millisecond)
		d.want(d.ended(conn, false), fmt.Sprintf("close %d", conn), fmt.Sprintf("%d look a", id))
		d.want(d.looks(id, sock("a", 1, stamp)), fmt.Sprintf("%d ask a", id+1))
		d.want(d.by(id+1, &Peer{PID: int(stamp), Start: 1}, csi, "x"), fmt.Sprintf("%d deregister a CSI/x inode 1", id+2))
		d.ok(id + 2)
		d.ok(id + 3)
		d.ok(id + 4)
		d.told(id + 5)
		conn, id = id+1, id+6
	}
}

// L2: where the process is unknown, a plugin that drops its connections may be another one each time, but is not registered at full speed.
func TestDropsConnections(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), nil)
	conn, asks := EffectID(1), 0
	serve := func(lines []string) {
		for len(lines) > 0 {
			var id EffectID
			var what string
			_, _ = fmt.Sscanf(lines[0], "%d %s", &id, &what)
			lines = lines[1:]
			switch what {
			case "look":
				lines = append(lines, d.looks(id, sock("a", 1, 1))...)
			case "ask":
				conn = id
				asks++
				lines = append(lines, d.by(id, nil, csi, "x")...)
			case "tell":
				lines = append(lines, d.told(id)...)
			case "validate", "register", "deregister":
				lines = append(lines, d.ok(id)...)
			}
		}
	}
	for d.now.Sub(start) < time.Hour {
		serve(d.ended(conn, false))
		d.now = d.now.Add(time.Millisecond)
		if at := d.core.Deadline(); at.After(d.now) {
			d.now = at
		}
		serve(d.step(Tick{}))
	}
	if asks < 55 || asks > 75 {
		t.Errorf("%d dials in an hour", asks)
	}
}

// L1, L2, O3: where no scan can confirm that a socket is gone, a dial that finds nothing counts like any other that fails.
func TestLookFindsNothingForEver(t *testing.T) {
	stale := func(d *driver, id EffectID) []string {
		return d.step(Asked{ID: id, Err: errTest, Failure: Stale})
	}
	nothing := func(d *driver, id EffectID) []string {
		return d.step(Looked{ID: id, Err: fs.ErrNotExist, Started: d.now})
	}
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	d.ended(1, false)
	d.want(nothing(d, 5), "rescan "+dir)
	d.want(d.wait(goneGrace), "6 ask a")
	d.want(stale(d, 6), "7 look a")
	d.want(nothing(d, 7), "rescan "+dir)
	d.phase(dir+"/a", Unreachable)
	for id := EffectID(8); ; id += 2 {
		lines := d.wait(d.core.Deadline().Sub(d.now))
		if count(lines, "deregister a CSI/x inode 1") > 0 {
			break
		}
		d.want(lines, fmt.Sprintf("%d ask a", id))
		d.want(stale(d, id), fmt.Sprintf("%d look a", id+1))
		d.want(nothing(d, id+1), "rescan "+dir)
		if id > 30 {
			t.Fatal("it is asked too often")
		}
	}
	if d.now.Sub(start) > defaultGrace+time.Second {
		t.Errorf("deregistered after %v", d.now.Sub(start))
	}

	d = drive(t, Config{})
	d.scan(sock("a", 1, 1))
	d.want(stale(d, 1), "2 look a")
	d.want(nothing(d, 2), "rescan "+dir)
	d.want(d.wait(goneGrace), "3 ask a")
	d.want(stale(d, 3), "4 look a")
	d.want(nothing(d, 4), "rescan "+dir, "synced")
	d.phase(dir+"/a", Backoff)
}

// L1: what keeps us from asking says nothing of the plugin.
func TestCheckCannotBeMade(t *testing.T) {
	d := witnessed(t, Config{}, sock("a", 1, 1), &first)
	d.unchecked = true // the checker does not know Local
	d.ended(1, true)
	d.looks(5, sock("a", 1, 1))
	for id := EffectID(6); d.now.Sub(start) < time.Hour; id++ {
		d.step(Asked{ID: id, Err: errTest, Failure: Local})
		d.phase(dir+"/a", Registered)
		if s := d.socket(dir + "/a"); s.LastError != "it broke" || s.NextTry.IsZero() {
			t.Fatalf("the view has %+v", s)
		}
		d.want(d.wait(d.core.Deadline().Sub(d.now)), fmt.Sprintf("%d ask a", id+1))
	}
	d.want(d.by(d.core.lastID, &first, csi, "x"), skip)
	d.phase(dir+"/a", Registered)
	if s := d.socket(dir + "/a"); s.LastError != "" || s.Tries != 0 {
		t.Errorf("the view has %+v", s)
	}
	if n := len(d.took(Warn)); n > 2 {
		t.Errorf("%d warnings in an hour", n)
	}
}

// R4: a plugin that does not know Notify is not bothered again by a new connection.
func TestUnsupportedStays(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan()
	d.scan(sock("a", 1, 1))
	d.by(1, &first, csi, "x")
	d.ok(2)
	d.ok(3)
	d.step(Notified{ID: 4, Err: errTest, Failure: Unsupported})
	d.ended(1, true)
	d.looks(5, sock("a", 1, 1))
	d.want(d.by(6, &first, csi, "x"))
	if got := d.socket(dir + "/a").Acknowledged; got != AckUnsupported {
		t.Errorf("acknowledged: %q", got)
	}
}

// TestFailedScanAfterLook: a scan that could not see a path says nothing of it (U1), though a look has shown it after the last scan that could did not.
func TestFailedScanAfterLook(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: dra})
	a := sock("a.sock", 1, 1)
	d.scan(a)
	d.register(1, dra, "a")
	d.want(d.step(Disconnected{Conn: 1, GoAway: true}), "close 1", "5 look a.sock")
	before := d.now
	d.now = d.now.Add(time.Millisecond)
	d.want(d.step(Looked{ID: 5, Entry: a, Started: d.now}), "6 ask a.sock")
	d.want(d.answers(6, dra, "a"), "7 tell a.sock over 6: is registered")
	d.told(7)

	empty := scanner.NewSnapshot(nil, nil)
	d.want(d.step(Scanned{Root: dir, Snapshot: empty, Started: before, Ended: d.now}))
	d.now = d.now.Add(time.Second)
	d.want(d.step(Scanned{Root: dir, Snapshot: empty, Err: errTest, Started: d.now, Ended: d.now}))
	d.now = d.now.Add(time.Second)
	part := scanner.NewSnapshot([]scanner.Entry{sock("b.sock", 2, 1)}, nil)
	d.want(d.step(Scanned{Root: dir, Snapshot: part, Err: errTest, Started: d.now, Ended: d.now}), "8 ask b.sock")
	for _, where := range []string{dir, a.Path} {
		d.now = d.now.Add(time.Second)
		failed := errors.Join(&scanner.Error{Op: "list", Path: dir + "/sub", Err: errTest}, &scanner.Error{Op: "lstat", Path: where, Err: errTest})
		d.want(d.step(Scanned{Root: dir, Snapshot: part, Err: failed, Started: d.now, Ended: d.now}))
	}
	d.phase(a.Path, Registered)
	d.now = d.now.Add(time.Second)
	elsewhere := &scanner.Error{Op: "list", Path: dir + "/a", Err: errTest}
	d.want(d.step(Scanned{Root: dir, Snapshot: part, Err: elsewhere, Started: d.now, Ended: d.now}), "9 deregister a.sock DRA/a inode 1")
}
