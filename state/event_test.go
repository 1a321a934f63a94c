package state

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// warnings counts the Warn lines since the last call.
func warnings(d *driver) int { return len(d.took(Warn)) }

// aDay has a's tries fail for a day, each with the cause that cause gives, and returns how many tries and how many warnings there were.
func aDay(d *driver, cause func(try int) string) (tries, lines int) {
	d.t.Helper()
	for end := d.now.Add(24 * time.Hour); d.now.Before(end); tries++ {
		for d.check.paths[dir+"/a"].probe == nil {
			d.now = d.core.Deadline()
			d.step(Tick{})
		}
		d.step(Asked{ID: d.check.paths[dir+"/a"].probe.id, Err: errors.New(cause(tries))})
	}
	return tries, warnings(d)
}

// O1: a socket that keeps failing gets a line at first and one an hour.
func TestLinesOfADay(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	tries, lines := aDay(d, func(int) string { return "refused" })
	if tries < 700 || lines < 24 || lines > 25 {
		t.Errorf("%d lines of %d tries", lines, tries)
	}
}

// O1: one per changed cause, at once.
func TestLineOfAChangedCause(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	fail(d, 5)
	if n := warnings(d); n != 1 {
		t.Errorf("%d lines of 5 tries", n)
	}
	d.step(RetryAsked{})
	d.step(Asked{ID: 6, Err: errors.New("another cause")})
	if n := warnings(d); n != 1 {
		t.Errorf("%d lines of another cause", n)
	}
}

// O1: causes that take turns, and causes that are never the same twice, do not make it a line for each try.
func TestNeverALinePerTry(t *testing.T) {
	d := drive(t, Config{})
	d.scan(sock("a", 1, 1))
	tries, lines := aDay(d, func(try int) string { return []string{"refused", "timeout"}[try%2] })
	if lines > 50 {
		t.Errorf("%d lines of %d tries with two causes in turn", lines, tries)
	}
	d = drive(t, Config{})
	d.scan(sock("a", 1, 1))
	tries, lines = aDay(d, func(try int) string { return fmt.Sprint("error ", try) })
	if lines > 8*25 {
		t.Errorf("%d lines of %d tries with a cause of its own each", lines, tries)
	}
}

// O1: after a success the next failure is news.
func TestLineAfterSuccess(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.refused(1)
	d.step(RetryAsked{})
	d.register(2, csi, "x")
	d.took(Debug)
	d.scan(sock("a", 2, 2))
	d.refused(6)
	if n := warnings(d); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// O1: a root that cannot be read gets a line, one per changed cause and one an hour, and one when it recovers.
func TestLinesOfARoot(t *testing.T) {
	d := drive(t, Config{})
	scan := func(err error) { d.step(Scanned{Root: dir, Err: err, Ended: d.now}) }
	for range 5 * 3600 / 10 {
		scan(errTest)
		d.wait(10 * time.Second)
	}
	if n := warnings(d); n != 5 {
		t.Errorf("%d lines in five hours", n)
	}
	scan(errors.New("another cause"))
	if n := warnings(d); n != 1 {
		t.Errorf("%d lines of another cause", n)
	}
	scan(nil)
	scan(nil)
	d.want(d.took(Notice), "root_recovered")
	scan(errTest)
	if n := warnings(d); n != 1 {
		t.Errorf("%d lines after it had recovered", n)
	}
}

// O1: what people see of a plugin's life. Being found is Debug, the first line is "registered".
func TestLevels(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	d.register(1, csi, "x")
	d.scan(sock("a", 2, 2))
	d.answers(5, csi, "x")
	d.ok(6)
	d.ok(7)
	d.ok(8)
	d.told(9)
	d.scan()
	d.ok(10)
	all := append([]Emit{}, d.events...)
	d.want(d.took(Notice), "registered", "deregistered", "registered", "deregistered")
	d.events = all
	d.want(d.took(Debug), "found", "registered", "synced", "acknowledged", "replaced", "deregistered", "registered", "acknowledged", "gone", "deregistered")
}

// The JSON of every kind of Event: docs/api.md.
func TestEventGolden(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a\xff.sock", 1, 1), sock("b.sock", 2, 2))
	d.step(Asked{ID: 2, Err: errTest, Failure: Unsupported})
	d.answers(1, csi, "x")
	d.ok(3)
	d.ok(4)
	d.told(5)
	d.scan(sock("a\xff.sock", 1, 1), sock("b.sock", 2, 2), sock("c.sock", 3, 3), sock("d.sock", 4, 4))
	d.refused(7)
	d.answers(6, "Unknown", "d")
	d.told(8)
	d.step(Reported{4, Report{Health: HealthServing, Message: "3 volumes", Detail: map[string]int{"volumes": 3}}})
	d.scan(sock("b.sock", 5, 5), sock("c.sock", 3, 3))
	d.answers(9, csi, "x")
	d.ok(10)
	d.ok(11)
	d.ok(12)
	d.step(Notified{ID: 13, Err: errTest})
	d.scan(sock("c.sock", 3, 3))
	d.fails(14)
	d.step(Scanned{Root: dir, Snapshot: d.last[dir], Err: errTest})
	d.step(Scanned{Root: dir, Snapshot: d.last[dir]})
	d.scan(scanner.Entry{Path: dir + "/a b\n"})

	view := New(Config{}).View(start)
	var events []Event
	seen := map[EventKind]bool{}
	for _, e := range d.events {
		events = append(events, e.Event)
		seen[e.Event.Kind] = true
	}
	events = append(events,
		Event{Version: APIVersion, Time: start, Kind: EventView, View: &view},
		Event{Version: APIVersion, Time: start, Kind: EventLost, Lost: 17},
	)
	for _, k := range []EventKind{
		EventFound, EventReplaced, EventGone, EventRegistered, EventAcknowledged, EventNotAcknowledged, EventFailing, EventRejected,
		EventIgnored, EventDeregistered, EventReport, EventRootFailing, EventRootRecovered, EventSynced,
	} {
		if !seen[k] {
			t.Errorf("no event %s", k)
		}
	}
	golden(t, "testdata/events.golden.json", events)
}

// A deregistered event says why.
func TestReasons(t *testing.T) {
	reason := func(d *driver, in Input) Reason {
		for _, e := range d.core.Step(d.now, in) {
			if e, ok := e.(Emit); ok && e.Event.Kind == EventDeregistered {
				return e.Event.Reason
			}
		}
		return ""
	}
	for _, c := range []struct {
		want Reason
		run  func(d *driver)
	}{
		{ReasonGone, func(d *driver) { d.scan() }},
		{ReasonReplaced, func(d *driver) { d.scan(sock("a", 2, 2)); d.answers(5, csi, "x") }},
		{ReasonReplaced, func(d *driver) { d.scan(sock("a", 2, 2)); d.step(Asked{ID: 5, Err: errTest, Failure: Unsupported}) }},
		{ReasonSilent, func(d *driver) { d.scan(sock("a", 2, 2)); d.wait(2 * time.Second) }},
		{ReasonStopping, func(d *driver) { d.step(Stopping{}) }},
	} {
		d := drive(t, Config{DeregisterOnStop: true})
		d.step(HandlerAdded{Type: csi})
		d.scan(sock("a", 1, 1))
		d.register(1, csi, "x")
		c.run(d)
		if got := reason(d, Called{ID: d.core.lastID}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
