package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// contest is a driver whose CSI handler takes one instance of a name at a time.
func contest(t *testing.T) *driver {
	t.Helper()
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi, Exclusive: true})
	d.scan()
	return d
}

// idOf is the number a line of an effect begins with.
func idOf(line string) (id EffectID) {
	_, _ = fmt.Sscanf(line, "%d", &id)
	return id
}

// play answers everything that is asked for until nothing is, and returns the handler calls. Plugins whose socket is in refused fail Validate.
func (d *driver) play(lines []string, refused ...string) (calls []string) {
	d.t.Helper()
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		var id EffectID
		var what string
		if n, _ := fmt.Sscanf(line, "%d %s", &id, &what); n != 2 {
			continue
		}
		switch what {
		case "ask":
			lines = append(lines, d.by(id, &first, csi, "x")...)
		case "tell":
			lines = append(lines, d.told(id)...)
		case "validate", "register", "deregister":
			_, call, _ := strings.Cut(line, " ")
			calls = append(calls, strings.Join(strings.Fields(call)[:2], " "))
			if what == "validate" && slices.Contains(refused, strings.Fields(call)[1]) {
				lines = append(lines, d.fails(id)...)
				continue
			}
			lines = append(lines, d.ok(id)...)
		}
	}
	return calls
}

// N2: the active instance is the same for every order of answers, and the others stand by.
func TestEveryOrder(t *testing.T) {
	entries := []scanner.Entry{sock("a", 1, 5), sock("b", 2, 7), sock("c", 3, 7), sock("d", 4, 6)}
	for order := range permutations([]EffectID{1, 2, 3, 4}) {
		d := contest(t)
		d.scan(entries...)
		var lines []string
		for _, id := range order {
			lines = append(lines, d.by(id, &first, csi, "x")...)
		}
		d.play(lines)
		for _, path := range []string{"a", "b", "d"} {
			s := d.socket(dir + "/" + path)
			if s.Phase != Standby || s.Holder != dir+"/c" || s.Acknowledged != AckYes {
				t.Fatalf("%v: %s is %s for %q, acknowledged %q", order, path, s.Phase, s.Holder, s.Acknowledged)
			}
		}
		d.phase(dir+"/c", Registered)
		// The last to be found is the first to take over, and so on.
		for i, next := range []string{"b", "d", "a"} {
			entries := slices.DeleteFunc(slices.Clone(entries), func(e scanner.Entry) bool {
				return slices.Contains([]string{"c", "b", "d"}[:i+1], base(e.Path))
			})
			calls := d.play(d.scan(entries...))
			if want := []string{"deregister " + []string{"c", "b", "d"}[i], "validate " + next, "register " + next}; !slices.Equal(calls, want) {
				t.Fatalf("%v: the calls were %q, want %q", order, calls, want)
			}
		}
		d.play(d.scan())
		if l := left(d.core); l != "" || len(d.core.members) > 0 || len(d.core.links) > 0 {
			t.Fatalf("something is left:\n%s %v %v", l, d.core.members, d.core.links)
		}
	}
}

// permutations yields every order of s.
func permutations(s []EffectID) func(func([]EffectID) bool) {
	var each func(done, rest []EffectID, yield func([]EffectID) bool) bool
	each = func(done, rest []EffectID, yield func([]EffectID) bool) bool {
		if len(rest) == 0 {
			return yield(slices.Clone(done))
		}
		for i, x := range rest {
			if !each(append(slices.Clone(done), x), slices.Delete(slices.Clone(rest), i, i+1), yield) {
				return false
			}
		}
		return true
	}
	return func(yield func([]EffectID) bool) { each(nil, s, yield) }
}

// N2: what is found later takes over, back to back; the one before stands by and comes back when it leaves.
func TestTakeover(t *testing.T) {
	d := contest(t)
	d.play(d.scan(sock("b", 1, 9)))
	d.phase(dir+"/b", Registered)
	d.want(d.scan(sock("a", 2, 1), sock("b", 1, 9)), "5 ask a")
	d.want(d.by(5, &first, csi, "x"), "6 deregister b CSI/x inode 1")
	d.want(d.ok(6), "7 validate a CSI/x inode 2")
	if s := d.socket(dir + "/b"); s.Phase != Standby || s.Holder != dir+"/a" {
		t.Errorf("b is %s for %s", s.Phase, s.Holder)
	}
	d.want(d.ok(7), "8 register a CSI/x inode 2")
	d.want(d.ok(8), "9 tell a over 5: is registered")
	d.told(9)
	d.want(d.took(Notice), "registered", "deregistered", "standby", "registered")
	d.want(d.scan(sock("b", 1, 9)), "10 deregister a CSI/x inode 2")
	d.want(d.ok(10), "close 5", "11 validate b CSI/x inode 1")
	d.want(d.ok(11), "12 register b CSI/x inode 1")
	d.want(d.ok(12), "13 tell b over 1: is registered")
}

// N2: chmod does not make a socket a newer one.
func TestRankStays(t *testing.T) {
	d := contest(t)
	a, b := sock("a", 1, 1), sock("b", 2, 1)
	d.play(d.scan(a))
	d.play(d.scan(a, b))
	d.phase(dir+"/b", Registered)
	a.ID.ChangeTime, a.ID.ModTime = 99, 99
	if calls := d.play(d.scan(a, b)); calls != nil {
		t.Errorf("calls: %q", calls)
	}
	d.phase(dir+"/a", Standby)
}

// N2: another user's plugin does not take a name from one that answers.
func TestNameTaken(t *testing.T) {
	d := contest(t)
	a, b := sock("a", 1, 1), sock("b", 2, 1)
	user := &Peer{UID: 1000, PID: 5, Start: 5}
	d.play(d.scan(a))
	d.want(d.scan(a, b), "5 ask b")
	d.want(d.by(5, user, csi, "x"), `6 tell b over 5: the name x is held by the plugin of another user at /plug…`)
	if err := d.socket(dir + "/b").LastError; !strings.HasSuffix(err, " /plugins/a") {
		t.Errorf("the error is %q", err)
	}
	d.told(6)
	d.phase(dir+"/b", Rejected)
	d.phase(dir+"/a", Registered)
	// It gets its turn when the name is free, or when nobody answers there.
	d.want(d.scan(b), "7 deregister a CSI/x inode 1", "8 ask b")
	d.want(d.by(8, user, csi, "x"))
	d.want(d.ok(7), "close 1", "9 validate b CSI/x inode 2")
	d.ok(9)
	d.ok(10)
	d.told(11)
	d.phase(dir+"/b", Registered)

	d.want(d.scan(a, b), "12 ask a") // root may
	d.want(d.by(12, &Peer{}, csi, "x"), "13 deregister b CSI/x inode 2")
	d.play(d.ok(13))
	d.phase(dir+"/a", Registered)

	c := sock("c", 3, 3)
	id := idOf(d.scan(a, b, c)[0])
	d.by(id, user, csi, "x")
	d.told(id + 1)
	d.phase(dir+"/c", Rejected)
	d.ended(12, false)
	d.looks(id+2, a)
	d.want(d.refused(id+3), fmt.Sprintf("%d ask c", id+4))
	d.want(d.by(id+4, user, csi, "x"), fmt.Sprintf("%d deregister a CSI/x inode 1", id+5))
}

// N2: an instance that the handler turned down leaves the name to the others, and does not disturb them again by itself.
func TestSpent(t *testing.T) {
	d := contest(t)
	a, b := sock("a", 1, 1), sock("b", 2, 1)
	d.play(d.scan(a))
	calls := d.play(d.scan(a, b), "b")
	if want := []string{"deregister a", "validate b", "validate a", "register a"}; !slices.Equal(calls, want) {
		t.Fatalf("calls: %q", calls)
	}
	d.phase(dir+"/a", Registered)
	d.phase(dir+"/b", Backoff)
	if calls := d.play(d.wait(time.Second), "b"); calls != nil {
		t.Errorf("calls: %q", calls)
	}
	if s := d.socket(dir + "/b"); s.Phase != Standby || s.LastError != "validate: it broke" || s.Acknowledged != "" {
		t.Errorf("the view has %+v", s)
	}
	// Asked for, it has another chance.
	if calls := d.play(d.step(RetryAsked{dir + "/b"})); !slices.Equal(calls, []string{"deregister a", "validate b", "register b"}) {
		t.Errorf("calls: %q", calls)
	}
}

// N2, L1: a standby is watched like any other.
func TestStandbyEnds(t *testing.T) {
	d := contest(t)
	a, b := sock("a", 1, 1), sock("b", 2, 1)
	d.play(d.scan(a, b))
	d.phase(dir+"/a", Standby)
	conn := d.core.sockets[dir+"/a"].answer.conn
	id := d.core.lastID + 1
	d.want(d.ended(conn, false), fmt.Sprintf("close %d", conn), fmt.Sprintf("%d look a", id))
	d.want(d.looks(id, a), fmt.Sprintf("%d ask a", id+1))
	d.want(d.step(Asked{ID: id + 1, Err: errTest}))
	d.phase(dir+"/a", Backoff)
	d.want(d.scan(a), fmt.Sprintf("%d deregister b CSI/x inode 2", id+2))
	d.ok(id + 2)
	d.phase(dir+"/a", Backoff)
	d.play(d.wait(time.Second))
	d.phase(dir+"/a", Registered)
}

// N1: a handler that is not exclusive has them all.
func TestNotExclusive(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.play(d.scan(sock("a", 1, 1), sock("b", 2, 1)))
	d.phase(dir+"/a", Registered)
	d.phase(dir+"/b", Registered)
}

// N2, R6: another instance at the holder's own path goes before a standby, unless it does not answer.
func TestHolderReplaced(t *testing.T) {
	d := contest(t)
	a, b := sock("a", 1, 1), sock("b", 2, 1)
	d.play(d.scan(a, b))
	b2 := sock("b", 3, 2)
	if calls := d.play(d.scan(a, b2)); !slices.Equal(calls, []string{"deregister b", "validate b", "register b"}) {
		t.Errorf("calls: %q", calls)
	}
	id := idOf(d.scan(a, sock("b", 4, 3))[0])
	if calls := d.play(d.wait(replaceGrace)); !slices.Equal(calls, []string{"deregister b", "validate a", "register a"}) {
		t.Errorf("calls: %q", calls)
	}
	if calls := d.play(d.by(id, &first, csi, "x")); !slices.Equal(calls, []string{"deregister a", "validate b", "register b"}) {
		t.Errorf("calls: %q", calls)
	}
}

// N2: an instance that first has to give up another name takes over when it has.
func TestTakeoverAfterAnotherName(t *testing.T) {
	d := contest(t)
	d.step(HandlerAdded{Type: dra})
	a, b := sock("a", 1, 1), sock("b", 2, 1)
	d.play(d.scan(a))
	d.phase(dir+"/a", Registered)
	d.want(d.scan(a, b), "5 ask b")
	d.want(d.by(5, &first, dra, "y"), "6 validate b DRA/y inode 2")
	d.play(d.ok(6))
	d.want(d.scan(a, sock("b", 3, 1)), "9 ask b")
	d.want(d.by(9, &first, csi, "x"), "10 deregister b DRA/y inode 2")
	d.want(d.ok(10), "close 5", "11 deregister a CSI/x inode 1")
	d.want(d.ok(11), "12 validate b CSI/x inode 3")
}
