package state

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// lookGap is how long a path is left alone after a look.
const lookGap = 20 * time.Millisecond

// rootModel is what was scanned of a root.
type rootModel struct {
	last   *scanner.Snapshot
	looked bool // there was a scan
	used   time.Time
	behind bool // last says of some path what a later look did not: it is to be compared again
}

// rankModel is N2's rank; higher wins.
type rankModel struct {
	seen  int
	mtime int64
	path  string
}

func (r rankModel) compare(o rankModel) int {
	return cmp.Or(cmp.Compare(r.seen, o.seen), cmp.Compare(r.mtime, o.mtime), strings.Compare(r.path, o.path))
}

// waitModel is what a socket's next Ask waits for when it is not the backoff.
type waitModel struct {
	why      why
	what     what
	from, by time.Time // no sooner and no later than. by zero: nothing is promised
	check    bool      // of an Ask that was Stale: what is registered was to be checked
}

type (
	why  int
	what int
)

const (
	lost  why = iota // a connection has ended (L1)
	stale            // another inode was dialled than the one that was scanned (R15)
	doubt            // the file may be another one (I4)
	pace             // a backoff whose length is not shown
)

const (
	waitLook   what = iota // a look comes first
	waitAsk                // the Ask comes
	waitEither             // one or the other
	looking                // the look is under way
)

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (k *checker) scan(in Scanned) {
	r := k.roots[in.Root]
	if r == nil {
		return
	}
	first := !r.looked
	r.looked = true
	switch {
	case in.Snapshot == nil:
		return
	case in.Snapshot == r.last && !r.behind:
		r.used = latest(r.used, in.Started)
		return
	}
	before := r.last
	r.last, r.behind, r.used = in.Snapshot, false, latest(r.used, in.Started)
	k.discoveries++
	for path, p := range k.paths {
		if _, there := in.Snapshot.At(path); there || p.root != in.Root || !p.present {
			continue
		}
		_, had := before.At(path)
		if in.Started.Before(p.lookUsed) || !had && failedAt(in.Err, path) { // it carries over only what scans have shown (U1)
			r.behind = true
			continue
		}
		p.present, p.awaited = false, false
		p.instance++
		p.outdate()
		k.dropObserved(p)
	}
	for e := range in.Snapshot.All() {
		k.scannedEntry(r, in, e, first)
	}
}

// failedAt reports whether an error of a scan is about path, or about a directory on the way to it, or may be.
func failedAt(err error, path string) bool {
	if err == nil {
		return false
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // it is asked for its parts
		return slices.ContainsFunc(several.Unwrap(), func(err error) bool { return failedAt(err, path) })
	}
	e := &scanner.Error{}
	return !errors.As(err, &e) || path == e.Path || strings.HasPrefix(path, e.Path+"/")
}

func (k *checker) scannedEntry(r *rootModel, in Scanned, e scanner.Entry, first bool) {
	p := k.paths[e.Path]
	if p == nil {
		p = &pathModel{path: e.Path, root: in.Root}
		k.paths[e.Path] = p
	}
	differs := p.entry.ID != e.ID || p.entry.Maybe != e.Maybe
	switch {
	case !p.present:
		p.entry, p.loose = e, false
		p.awaited = first
		k.newInstance(p)
		p.afresh(k.now)
		p.makeWay(k.now)
	case in.Started.Before(p.lookUsed):
		r.behind = r.behind || differs
		return
	case e.Stale != nil: // it was not seen: what it says is what an earlier scan said (U1)
		p.entry.Stale, p.loose = e.Stale, false
		r.behind = r.behind || differs
		return // and so no newer than what a look said
	case differs:
		p.loose = false
		k.changed(p, e)
	default:
		p.entry, p.loose = e, false
	}
	p.used = in.Started
}

// sameFile is I4's: both inodes are known and equal.
func sameFile(a, b scanner.Identity) bool {
	return a.Inode != 0 && b.Inode != 0 && a.Inode == b.Inode && a.Device == b.Device
}

// connection is the one that holds the inode of the instance that is there, if it stands: a listener cannot be another one while it does.
func (p *pathModel) connection() *connModel {
	switch {
	case p.current() && p.held.conn.live():
		return p.held.conn
	case p.answer != nil && p.answer.conn.live():
		return p.answer.conn
	}
	return nil
}

// changed is what an entry that differs means: I3, I4, I6.
func (k *checker) changed(p *pathModel, e scanner.Entry) {
	was := p.entry.ID
	p.entry = e
	asking := p.probe != nil && p.probe.kind == ask
	switch {
	case sameFile(was, e.ID) && p.connection() != nil:
		p.want(EventAdopted)
		k.counts["adopted by stamps"]++
	case sameFile(was, e.ID) && asking:
		p.probe.stamped = true
		k.counts["changed during an ask"]++
	case was.Inode == 0 && e.ID.Inode == 0 && p.current() && p.held.conn.live():
		k.counts["doubts"]++
		if asking {
			p.probe.again = true
			return
		}
		if !p.held.since.IsZero() {
			p.doubted = true // it is asked by its backoff in any case
			return
		}
		p.wait = k.doubts(p)
	default:
		k.replaced(p, was)
	}
}

// doubts plans the Ask that I4 wants, which R12 lets come once in 5 s.
func (k *checker) doubts(p *pathModel) *waitModel {
	if p.wait != nil && p.wait.why == doubt {
		return p.wait
	}
	p.doubted = true
	at := latest(k.now, p.lastReset.Add(5*time.Second))
	return &waitModel{why: doubt, what: waitAsk, from: latest(k.now, p.reset0.Add(5*time.Second)), by: at}
}

func (k *checker) newInstance(p *pathModel) {
	p.present, p.info, p.spent = true, nil, false
	p.instance++
	p.genOpen = true
	p.spacing1, p.doubted = 0, false
	p.rank = rankModel{k.discoveries, p.entry.ID.ModTime, p.path}
	p.outdate()
}

// outdate forgets what belongs to the instance before: its connections are nobody's now.
func (p *pathModel) outdate() {
	p.answer, p.tell, p.wait, p.early, p.evicted, p.blocked = nil, nil, nil, false, false, nil
	if !p.present {
		p.linger = nil
	}
}

func (p *pathModel) afresh(now time.Time) {
	p.tries, p.transient, p.refused, p.next, p.never, p.excused, p.soft = 0, 0, accepted, now, false, false, false
}

// makeWay is R6: the time runs from the first replacement, or from when the new instance is first asked.
func (p *pathModel) makeWay(now time.Time) {
	if p.held == nil || !p.held.replaced.IsZero() {
		return
	}
	if p.held.replaced = now; p.next.After(now) {
		p.held.replaced = p.next
	}
}

// dropObserved: in observe mode nobody is told that an instance has left (R18).
func (k *checker) dropObserved(p *pathModel) {
	if !k.cfg.Observe || p.held == nil {
		return
	}
	if p.linger, p.lingers = nil, k.now; p.present {
		p.linger = p.held.conn
	}
	p.held = nil
}

// lingering ends what dropObserved allows.
func (p *pathModel) lingering(now time.Time, stopping bool) {
	if p.answer != nil || p.refused != accepted || p.held != nil || !stopping && now.Sub(p.lingers) >= 2*time.Second {
		p.linger = nil
	}
}

// replaced is another instance at the path. R12: a new inode starts afresh, stamps alone at most once in 5 s.
func (k *checker) replaced(p *pathModel, was scanner.Identity) {
	asking := p.probe != nil && p.probe.kind == ask
	underWay := asking && !p.current() || p.answer != nil && !p.answer.open && k.standing(p) == no || p.live(p.call)
	unclear := !underWay && (asking || p.answer != nil) // a check, or perhaps a standby
	is := p.entry.ID
	newInode := was.Inode != 0 && is.Inode != 0 && !sameFile(was, is)
	ended := p.current() && p.held.conn != nil && p.held.conn.ended && p.held.since.IsZero() && p.tries == 0 // the stamps are not alone in saying that it is another one
	if p.wait != nil && !p.current() {
		p.tolerate = p.lastReset.Add(5 * time.Second) // then at the latest
	}
	if p.answer != nil && p.answer.open {
		p.tolerate = p.lastReset.Add(5 * time.Second)
	}
	blocked, early := p.blocked, p.early
	evidence, before := p.wait != nil && p.wait.why == lost, p.reset0
	witness := p.answer != nil && p.answer.conn != nil && p.answer.conn.ended
	k.newInstance(p)
	k.counts["replaced"]++
	unsure := false
	open := !newInode && k.now.Sub(p.lastReset) < 5*time.Second && k.now.Sub(p.reset0) >= 5*time.Second // whether stamps may reset is the Core's choice
	switch {
	case newInode:
		p.lastReset = k.now // whether that counts as a reset by stamps is open
		p.afresh(k.now)
	case ended || witness && k.freshly(p, underWay):
		p.lastReset = k.now
		p.afresh(k.now)
	case k.resets(p, underWay):
		if p.lastReset = k.now; evidence {
			p.reset0 = before
		}
		p.afresh(k.now)
	case underWay || unclear && k.pausesAfresh(p):
		p.tries++
		p.transient++
		p.refused, p.never = accepted, false
		unsure, p.failed = true, true
	case p.excused && p.tries == 0 && p.refused == accepted && p.next.After(k.now):
	case p.refused != accepted, (p.held != nil || p.linger != nil) && p.tries == 0:
		p.next, p.never, p.blocked = p.lastReset.Add(5*time.Second), false, blocked
		p.early = p.early || p.reset0 != p.lastReset
	}
	if open && k.triesOfReplaced(p) == 0 {
		p.soft, p.lastReset = true, k.now
	}
	p.early = p.early || early && p.next.After(k.now) || p.soft
	p.want(EventReplaced)
	if underWay || unclear {
		p.awaited = false
	}
	fresh := p.held != nil && p.held.replaced.IsZero()
	p.makeWay(k.now)
	if fresh && unsure {
		p.held.unsure = true
	}
	k.dropObserved(p)
}

// resets is R12: stamps alone reset the backoff once in 5 s.
func (k *checker) resets(p *pathModel, underWay bool) bool {
	if k.now.Sub(p.lastReset) >= 5*time.Second {
		p.reset0 = k.now
		return true
	}
	if k.now.Sub(p.reset0) >= 5*time.Second && k.freshly(p, underWay) { // whether the last one counted is open
		return true
	}
	return false
}

// freshly reports whether the Core starts afresh with an instance that is replaced: it has not failed, and it is asked now or waits for a place.
func (k *checker) freshly(p *pathModel, underWay bool) bool {
	return k.triesOfReplaced(p) == 0 && (underWay || p.tries > 0 || slices.ContainsFunc(k.out, func(e Effect) bool {
		ask, ok := e.(Ask)
		return ok && ask.Path == p.path
	}))
}

// pausesAfresh reports whether the Core counts what was under way as a failure.
func (k *checker) pausesAfresh(p *pathModel) bool { return k.triesOfReplaced(p) > p.tries }

// triesOfReplaced is what the Core says of the tries of an instance that is replaced. -1: nothing.
func (k *checker) triesOfReplaced(p *pathModel) int {
	for _, e := range k.out {
		if emit, ok := e.(Emit); ok && emit.Event.Path == p.path && emit.Event.Kind == EventReplaced {
			return emit.Event.Tries
		}
	}
	return -1
}

// judgedByStamps is I6: an Ask has failed, and meanwhile the stamps have changed. R12 says whether that is a fresh start or a failure.
func (k *checker) judgedByStamps(p *pathModel, in Asked, conn *connModel) {
	p.genOpen = true
	before := p.reset0
	if k.resets(p, true) {
		if p.current() && p.held.conn != nil && p.held.conn.ended {
			p.reset0 = before // the end of the connection says so too
		}
		k.counts["fresh starts after an ask"]++
		p.lastReset = k.now
		k.newInstance(p)
		p.afresh(k.now)
		p.makeWay(k.now)
		p.goesOn = true
		p.mays = append(p.mays, EventReplaced)
		k.dropObserved(p)
		return
	}
	if k.chose(p.path, EventReplaced) { // a failure, and whose is another question
		k.newInstance(p)
		p.tries++
		p.transient++
		p.refused, p.never, p.awaited, p.failed = accepted, false, false, true
		p.want(EventReplaced)
		p.makeWay(k.now)
		if p.held != nil && p.held.replaced.Equal(k.now) {
			p.held.unsure = true
		}
		k.dropObserved(p)
		return
	}
	k.tried(p, in, conn)
	if p.tell != nil && k.closes(p.tell) {
		p.tell = nil
	}
}

// lookAt is a Look.
func (k *checker) lookAt(e Look) {
	f := k.begin(e.Op, kindLook, k.instanceOf(e.Path), 0)
	p, w := f.path, f.path.wait
	if p.answer != nil && p.answer.open {
		p.answer = nil
	}
	switch {
	case k.stopping:
		k.failf("look %d after Stopping", e.ID)
	case !p.present:
		k.failf("look %d at %q, which is gone", e.ID, e.Path)
	case p.look != nil:
		k.failf("look %d at %q beside %d", e.ID, e.Path, p.look.id)
	case k.now.Before(p.lastLook.Add(lookGap)):
		k.failf("look %d at %q, which was looked at at %v", e.ID, e.Path, p.lastLook)
	case w == nil, w.why == doubt: // one that was planned, and has lost its reason: harmless
		k.counts["looks without a reason"]++
	case w.what != waitLook && w.what != waitEither:
		k.failf("look %d at %q for no reason", e.ID, e.Path)
	case k.now.Before(w.from):
		k.failf("look %d at %q before %v (L1)", e.ID, e.Path, w.from)
	}
	p.look, p.lastLook = f, k.now
	if w != nil && w.why != doubt {
		w.what, w.by = looking, time.Time{}
		if w.why == lost {
			p.lastCheck, p.lastCheckOf = k.now, p.instance
		}
	}
}

// lookedAt is the result of one.
func (k *checker) lookedAt(in Looked) {
	f := k.flights[in.ID]
	if f == nil {
		return
	}
	p := f.path
	delete(k.flights, in.ID)
	p.lookEnd = k.now
	if p.look == f {
		p.look = nil
	}
	if k.stopping || !p.present || f.instance != p.instance {
		return
	}
	w := p.wait
	if w == nil || w.why == doubt { // it has answered meanwhile
		w = &waitModel{}
	}
	differs := in.Err == nil && (in.Entry.ID != p.entry.ID || in.Entry.Maybe != p.entry.Maybe)
	older := in.Started.Before(p.used)
	if r := k.roots[p.root]; !older && in.Started.Before(r.used) { // an unchanged scan was newer; whether it counts is open
		older = differs && !k.chose(p.path, EventReplaced, EventAdopted)
	} else if older && p.entry.Stale != nil { // a scan after that one could not see it: whether the look counts is open
		older = !differs || !k.chose(p.path, EventReplaced, EventAdopted)
	}
	if older {
		k.counts["looks that were older"]++
		w.what, w.from, w.by = waitEither, k.now, latest(k.now, p.lookEnd.Add(lookGap))
		if w.why == stale && k.chose(p.path, EventFailing, EventUnreachable) {
			k.staleFails(p, w)
		}
		return
	}
	if p.used = in.Started; in.Err == nil {
		p.lookUsed = in.Started
	}
	switch {
	case differs:
		k.counts["looks that found another"]++
		k.discoveries++
		k.roots[p.root].behind = true
		p.loose = true
		k.changed(p, in.Entry)
		if p.wait == w {
			p.wait = nil
		}
	case in.Err == nil && w.why == stale:
		p.loose = true
		k.staleFails(p, w)
	case p.current() && !p.held.since.IsZero() && w.why == lost && !errors.Is(in.Err, fs.ErrNotExist): // it goes on with its backoff
		p.wait, p.early, p.loose = nil, true, true
	case in.Err == nil:
		p.loose = true
		w.what, w.from, w.by = waitAsk, k.now, k.now
	case errors.Is(in.Err, fs.ErrNotExist):
		k.counts["looks that found nothing"]++
		k.lookedAtNothing(p, w)
	case w.why == stale && k.chose(p.path, EventFailing, EventUnreachable):
		k.staleFails(p, w)
	default:
		w.what, w.from, w.by = waitAsk, k.now, k.now
	}
}

func (k *checker) lookedAtNothing(p *pathModel, w *waitModel) {
	rescans := false
	for _, e := range k.out {
		if r, ok := e.(Rescan); ok && r.Root == p.root {
			rescans = true
		}
	}
	p.heldBack = k.now.Add(100 * time.Millisecond)
	switch {
	case w.why == stale && k.chose(p.path, EventFailing, EventUnreachable):
		k.staleFails(p, w)
		return
	case w.why == stale:
		w.what, w.from, w.by = waitEither, k.now, k.now.Add(100*time.Millisecond)
	case p.current() && !p.held.since.IsZero(): // it goes on with its backoff
		p.wait, p.early = nil, true
	default:
		w.what, w.from = waitAsk, k.now.Add(100*time.Millisecond)
		w.by = w.from
	}
	if !rescans {
		k.failf("%q was not there, and %q is not scanned for that", p.path, p.root)
	}
}

// staleFails: the Ask that was Stale was about what is there, so it has failed.
func (k *checker) staleFails(p *pathModel, w *waitModel) {
	p.wait = nil
	k.counts["stale asks that failed"]++
	if w.check && p.current() && !p.leaving() {
		k.unreachable(p)
		return
	}
	k.fail(p, nil)
}

func (k *checker) rescan(e Rescan) {
	if k.roots[e.Root] == nil {
		k.failf("rescan of %q, which is no root", e.Root)
	}
	k.counts["rescans"]++
}
