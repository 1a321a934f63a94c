package state

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/plugpoll/plugpoll/scanner"
)

// checker is a second opinion: a model of what a Core may and must do, written from the contract and fed with the same inputs. After each Step it compares
// the effects with it. It knows nothing of the Core's insides.
type checker struct {
	cfg           Config
	probes, calls int
	now           time.Time
	lastID        EffectID
	types         map[string]bool
	scanned       map[string]*scanner.Snapshot
	looked        map[string]bool // roots that had a scan
	paths         map[string]*pathModel
	flights       map[EffectID]*flightModel
	dropped       map[EffectID]*flightModel // probes given up: a result may still come
	conns         map[EffectID]string       // open, by the path they were dialled at
	generations   map[uint64]string         // path and instance of a generation

	synced, stopping, stopped bool
	running                   map[name]EffectID

	// What must follow in the same Step.
	mustRegister, mustValidate, mustDeregister *must

	soonest wakeup // the first time at which the Core has to be woken
	counts  map[string]int
	errs    []error
}

type wakeup struct {
	path string
	at   time.Time
}

// must is a handler call that has to come next for its name.
type must struct {
	path string
	reg  Registration
}

type flightModel struct {
	id        EffectID
	kind      kind
	path      *pathModel
	instance  int
	cancelled bool
	conn      EffectID
	reg       Registration
}

type pathModel struct {
	path     string
	present  bool
	entry    scanner.Entry
	instance int
	probe    *flightModel
	call     *flightModel
	answer   *answerModel
	tell     EffectID // the connection a refusal waits on
	held     *heldModel

	refused   refusal
	info      *Info
	tries     int // failures in a row
	transient int // those of them that move the backoff
	next      time.Time
	never     bool
	lastReset time.Time
	excused   bool // it was refused once, which does not count
	urgent    bool // somebody asked for it: as good as a first try
	awaited   bool // Synced waits for it
	announce  EventKind
	phase     Phase
}

type answerModel struct {
	conn EffectID
	info Info
}

type heldModel struct {
	reg      Registration
	by       EffectID
	instance int
	conn     EffectID
	ack      Acknowledged
	fails    int
	next     time.Time
	unsure   bool      // replaced is the next try that an event is about to tell
	replaced time.Time // when it was first seen that another one is there
}

func newChecker(cfg Config) *checker {
	k := &checker{
		cfg: cfg, probes: cfg.Probes, calls: cfg.Calls,
		types: map[string]bool{}, scanned: map[string]*scanner.Snapshot{}, looked: map[string]bool{}, paths: map[string]*pathModel{},
		flights: map[EffectID]*flightModel{}, dropped: map[EffectID]*flightModel{}, conns: map[EffectID]string{},
		generations: map[uint64]string{}, running: map[name]EffectID{}, counts: map[string]int{},
	}
	if k.probes == 0 {
		k.probes = 64
	}
	if k.calls == 0 {
		k.calls = 16
	}
	return k
}

func (k *checker) failf(format string, args ...any) {
	k.errs = append(k.errs, fmt.Errorf(format, args...))
}

// step checks one Step: what came in, what came out, and what must hold then.
func (k *checker) step(now time.Time, in Input, out []Effect) error {
	k.now, k.errs, k.soonest = now, nil, wakeup{}
	k.mustRegister, k.mustValidate, k.mustDeregister = nil, nil, nil
	for _, p := range k.paths {
		p.announce = ""
	}
	k.input(in)
	for _, e := range out {
		k.effect(e)
	}
	k.after(out)
	return errors.Join(k.errs...)
}

func (k *checker) input(in Input) {
	switch in := in.(type) {
	case Scanned:
		if !k.stopping {
			k.scan(in)
		}
	case HandlerAdded:
		k.types[in.Type] = true
		for _, p := range k.paths {
			if p.refused == unknownType && (p.info == nil || p.info.Type == in.Type) {
				p.wake(k.now)
			}
		}
	case Asked:
		k.asked(in)
	case Called:
		k.called(in)
	case Notified:
		k.notified(in)
	case Reported:
	case RetryAsked:
		for _, p := range k.paths {
			if in.Path == "" || in.Path == p.path {
				p.wake(k.now)
			}
		}
	case Stopping:
		k.stopping = true
	}
}

func (p *pathModel) wake(now time.Time) {
	p.next, p.never, p.urgent = now, false, true
	if p.held != nil && p.held.ack == AckNo {
		p.held.next = now
	}
}

func (k *checker) scan(in Scanned) {
	first := !k.looked[in.Root]
	k.looked[in.Root] = true
	if in.Snapshot == nil || in.Snapshot == k.scanned[in.Root] {
		return
	}
	old := k.scanned[in.Root]
	k.scanned[in.Root] = in.Snapshot
	for e := range old.All() {
		if _, ok := in.Snapshot.At(e.Path); !ok {
			p := k.paths[e.Path]
			p.present = false
			p.instance++
			p.awaited = false
			p.outdate()
		}
	}
	for e := range in.Snapshot.All() {
		p := k.paths[e.Path]
		if p == nil {
			p = &pathModel{path: e.Path}
			k.paths[e.Path] = p
		}
		was, had := old.At(e.Path)
		p.entry = e
		switch {
		case !had:
			p.awaited = first
			p.newInstance()
			p.afresh(k.now)
			p.makeWay(k.now)
		case was.ID != e.ID || was.Maybe != e.Maybe:
			p.newInstance()
			k.replaced(p, was.ID, e.ID)
		}
	}
}

// makeWay is R6: the time runs from the first replacement, or from when the new instance is first asked.
func (p *pathModel) makeWay(now time.Time) {
	if p.held == nil || !p.held.replaced.IsZero() {
		return
	}
	if p.held.replaced = now; p.next.After(now) {
		p.held.replaced = p.next
	}
	p.held.unsure = p.announce == EventReplaced
}

func (p *pathModel) newInstance() {
	p.present, p.info = true, nil
	p.instance++
	p.outdate()
}

// outdate forgets what belongs to the instance before: its connections are nobody's now.
func (p *pathModel) outdate() { p.answer, p.tell = nil, 0 }

func (p *pathModel) afresh(now time.Time) {
	p.tries, p.transient, p.refused, p.next, p.never, p.excused = 0, 0, accepted, now, false, false
}

// replaced is R12: a new inode starts afresh, stamps alone at most once in 5 s.
func (k *checker) replaced(p *pathModel, was, is scanner.Identity) {
	underWay := p.phase == Registering
	newInode := was.Inode != 0 && is.Inode != 0 && (was.Inode != is.Inode || was.Device != is.Device)
	switch {
	case newInode:
		p.afresh(k.now)
	case k.now.Sub(p.lastReset) >= 5*time.Second:
		p.lastReset = k.now
		p.afresh(k.now)
	case underWay:
		p.tries++
		p.transient++
		p.refused, p.never = accepted, false
		p.announce = EventReplaced
	case p.refused != accepted, p.held != nil && p.tries == 0:
		p.next, p.never = p.lastReset.Add(5*time.Second), false
	}
	if underWay {
		p.awaited = false
	}
	p.makeWay(k.now)
}

func (k *checker) asked(in Asked) {
	var conn EffectID
	if in.Connected {
		conn = in.ID
	}
	f := k.flights[in.ID]
	if f == nil {
		if d := k.dropped[in.ID]; d != nil && conn != 0 {
			k.conns[conn] = d.path.path
			delete(k.dropped, in.ID)
		}
		return
	}
	p := f.path
	delete(k.flights, in.ID)
	p.probe = nil
	if conn != 0 {
		k.conns[conn] = p.path
	}
	switch {
	case in.Err == nil && k.types[in.Info.Type]:
		p.info, p.refused = &in.Info, accepted
		p.answer = &answerModel{conn, in.Info}
	case in.Err == nil:
		p.info = &in.Info
		k.refuse(p, unknownType, conn)
	case in.Failure == Unsupported:
		k.refuse(p, unsupported, 0)
	case in.Failure == Permanent:
		k.refuse(p, permanent, conn)
	case in.Failure == Refused && p.tries == 0 && !p.excused:
		p.excused, p.next = true, k.now.Add(50*time.Millisecond)
	default:
		k.fail(p, conn)
	}
}

func (k *checker) refuse(p *pathModel, why refusal, tell EffectID) {
	p.refused, p.tell = why, tell
	p.tries++
	p.awaited = false
	p.next, p.never = k.now.Add(10*time.Minute), why == unknownType
	p.announce = EventRejected
	if why == unsupported {
		p.announce = EventIgnored
	}
}

func (k *checker) fail(p *pathModel, tell EffectID) {
	p.refused, p.tell = accepted, tell
	p.tries++
	p.transient++
	p.awaited = false
	p.never = false
	p.announce = EventFailing // which says when the next one is
}

func (k *checker) called(in Called) {
	f := k.flights[in.ID]
	if f == nil {
		return
	}
	delete(k.flights, in.ID)
	p, key := f.path, f.reg.key()
	p.call = nil
	delete(k.running, key)
	current := p.present && f.instance == p.instance
	switch f.kind {
	case deregister:
		p.held = nil
		p.announce = EventDeregistered
		if !k.stopping && p.present && p.answer != nil && p.registration().key() == key {
			k.mustValidate = &must{p.path, p.registration()} // R6
		}
	case validate:
		switch {
		case !current || k.stopping:
		case in.Err == nil:
			k.mustRegister = &must{p.path, f.reg} // R1
		default:
			k.refusedByHandler(p, in)
		}
	case register:
		switch {
		case in.Err == nil:
			p.held = &heldModel{reg: f.reg, by: f.id, instance: f.instance}
			k.counts["registered"]++
			if current {
				p.held.conn, p.answer = p.answer.conn, nil
				p.tries, p.transient, p.refused = 0, 0, accepted
				p.awaited = false
				p.announce = EventRegistered
			} else {
				k.counts["late successes"]++
				if !k.stopping {
					k.mustDeregister = &must{p.path, f.reg} // R7
				}
			}
		case current && !k.stopping:
			k.refusedByHandler(p, in)
		}
	}
}

func (k *checker) refusedByHandler(p *pathModel, in Called) {
	conn := p.answer.conn
	p.answer = nil
	if in.Failure == Permanent {
		k.refuse(p, permanent, conn)
		return
	}
	k.fail(p, conn)
}

func (k *checker) notified(in Notified) {
	f := k.flights[in.ID]
	if f == nil {
		return
	}
	p := f.path
	delete(k.flights, in.ID)
	p.probe = nil
	if f.kind == tell {
		p.tell = 0
		return
	}
	switch {
	case in.Err == nil:
		p.held.ack = AckYes
	case in.Failure == Unsupported:
		p.held.ack = AckUnsupported
	default:
		p.held.ack = AckNo
		p.held.fails++
		p.announce = EventNotAcknowledged
	}
}

func (p *pathModel) registration() Registration {
	i := p.answer.info
	return Registration{Entry: p.entry, Type: i.Type, Name: i.Name, Endpoint: i.Endpoint, Versions: i.Versions}
}

func (p *pathModel) current() bool {
	return p.held != nil && p.present && p.held.instance == p.instance
}

// superseded is R6: the new instance has answered, in whatever way, or had its two seconds.
func (k *checker) superseded(p *pathModel) bool {
	return p.held != nil && p.present && !p.current() &&
		(p.answer != nil || p.refused != accepted || k.now.Sub(p.held.replaced) >= 2*time.Second)
}

// live reports whether f is a call that may still register the instance that is there.
func (p *pathModel) live(f *flightModel) bool {
	return f != nil && f.kind != deregister && p.present && f.instance == p.instance
}

func (k *checker) effect(e Effect) {
	if k.stopped {
		if _, emit := e.(Emit); !emit {
			if _, c := e.(Close); !c {
				k.failf("%T after Stopped", e)
			}
		}
	}
	switch e := e.(type) {
	case Ask:
		k.ask(e)
	case Notify:
		k.notify(e)
	case Validate:
		k.validate(e)
	case Register:
		k.register(e)
	case Deregister:
		k.deregister(e)
	case Cancel:
		k.cancel(e)
	case Close:
		if _, open := k.conns[e.Conn]; !open {
			k.failf("close %d: it is not open", e.Conn)
		}
		delete(k.conns, e.Conn)
	case Emit:
		k.emit(e)
	case Synced:
		if k.synced {
			k.failf("Synced twice")
		}
		k.synced = true
	case Stopped:
		if k.stopped {
			k.failf("Stopped twice")
		}
		k.stopped = true
		for _, p := range k.paths {
			p.tell = 0
			if p.answer != nil {
				p.answer.conn = 0
			}
			if p.held != nil {
				p.held.conn = 0
			}
		}
	}
}

// begin notes an effect that has a result. instance is the one it is for.
func (k *checker) begin(op Op, what kind, instance int) *flightModel {
	if op.ID <= k.lastID {
		k.failf("effect %d after %d: numbers are to rise", op.ID, k.lastID)
	}
	k.lastID = op.ID
	p := k.paths[op.Path]
	if p == nil {
		k.failf("effect %d for %q, which was never seen", op.ID, op.Path)
		p = &pathModel{path: op.Path}
		k.paths[op.Path] = p
	}
	if of := fmt.Sprintf("%s#%d", op.Path, instance); k.generations[op.Generation] == "" {
		k.generations[op.Generation] = of
	} else if k.generations[op.Generation] != of {
		k.failf("effect %d: generation %d is of %s and of %s", op.ID, op.Generation, k.generations[op.Generation], of)
	}
	f := &flightModel{id: op.ID, kind: what, path: p, instance: instance}
	k.flights[op.ID] = f
	k.counts[[]string{ask: "asks", tell: "tells", acknowledge: "acknowledges", validate: "validates", register: "registers", deregister: "deregisters"}[what]]++
	return f
}

func (k *checker) instanceOf(path string) int {
	if p := k.paths[path]; p != nil {
		return p.instance
	}
	return 0
}

func (k *checker) probe(op Op, what kind, conn EffectID) *pathModel {
	f := k.begin(op, what, k.instanceOf(op.Path))
	p := f.path
	f.conn = conn
	switch {
	case k.stopping:
		k.failf("probe %d after Stopping", op.ID)
	case !p.present:
		k.failf("probe %d of %q, which is gone", op.ID, op.Path)
	case p.probe != nil:
		k.failf("probe %d of %q beside %d (R7)", op.ID, op.Path, p.probe.id)
	}
	if conn != 0 && k.conns[conn] != op.Path {
		k.failf("probe %d of %q uses connection %d, which is not open or not its own", op.ID, op.Path, conn)
	}
	p.probe = f
	retry := !p.urgent && (what == ask && p.tries > 0 || what == tell && p.tries > 1 || what == acknowledge && p.held != nil && p.held.fails > 0)
	p.urgent = false
	if n := k.liveProbes(); n > k.probes || retry && n > k.probes-k.probes/4 {
		k.failf("%d probes in %d slots, the last a retry: %v (R11)", n, k.probes, retry)
	}
	return p
}

func (k *checker) ask(e Ask) {
	p := k.probe(e.Op, ask, 0)
	if p.tries > 0 {
		k.counts["retries"]++
	}
	switch {
	case !cmp.Equal(e.Entry, p.entry, cmp.Comparer(sameStale)):
		k.failf("ask %d of %q with an entry that is not the newest", e.ID, e.Path)
	case p.tell != 0:
		k.failf("ask %d of %q before the refusal was told (R3)", e.ID, e.Path)
	case p.current(), p.answer != nil, p.live(p.call):
		k.failf("ask %d of %q, which has answered", e.ID, e.Path)
	case p.never, k.now.Before(p.next):
		k.failf("ask %d of %q at %v, before its next try at %v, never=%v (R12)", e.ID, e.Path, k.now, p.next, p.never)
	}
}

func sameStale(a, b *scanner.Stale) bool { return a == b }

func (k *checker) notify(e Notify) {
	if !e.Registered {
		p := k.probe(e.Op, tell, e.Conn)
		if p.tell == 0 || p.tell != e.Conn {
			k.failf("tell %d of %q over %d: what is to be told waits on %d", e.ID, e.Path, e.Conn, p.tell)
		}
		if e.Message == "" || len(e.Message) > 1024 || !utf8.ValidString(e.Message) {
			k.failf("tell %d of %q: bad text %q (R3)", e.ID, e.Path, e.Message)
		}
		return
	}
	p := k.probe(e.Op, acknowledge, e.Conn)
	h := p.held
	switch {
	case !p.current():
		k.failf("acknowledge %d of %q, which is not registered (R1)", e.ID, e.Path)
	case h.ack == AckYes, h.ack == AckUnsupported:
		k.failf("acknowledge %d of %q, which is %q already (R4)", e.ID, e.Path, h.ack)
	case h.ack == AckNo && e.Conn != 0:
		k.failf("acknowledge %d of %q again over the old connection", e.ID, e.Path)
	case h.ack == "" && e.Conn != h.conn:
		k.failf("acknowledge %d of %q over %d, it was registered over %d", e.ID, e.Path, e.Conn, h.conn)
	case k.now.Before(h.next):
		k.failf("acknowledge %d of %q before %v (R4)", e.ID, e.Path, h.next)
	}
}

// call checks what holds for every handler call.
func (k *checker) call(op Op, what kind, instance int, reg Registration) *pathModel {
	f := k.begin(op, what, instance)
	f.reg = reg
	p, key := f.path, reg.key()
	if p.call != nil {
		k.failf("call %d of %q beside %d (R7)", op.ID, op.Path, p.call.id)
	}
	if other := k.running[key]; other != 0 {
		k.failf("call %d for %v beside %d (R7)", op.ID, key, other)
	}
	for _, m := range []**must{&k.mustDeregister, &k.mustValidate, &k.mustRegister} {
		if *m == nil || (*m).reg.key() != key {
			continue
		}
		want := map[**must]kind{&k.mustDeregister: deregister, &k.mustValidate: validate, &k.mustRegister: register}[m]
		if what != want || (*m).path != op.Path || !cmp.Equal((*m).reg, reg, cmp.Comparer(sameStale)) {
			k.failf("call %d of %q for %v comes between (R6, R7)", op.ID, op.Path, key)
		}
		*m = nil
	}
	p.call = f
	k.running[key] = op.ID
	if n := k.liveCalls(); n > k.calls {
		k.failf("%d calls in %d slots (R11)", n, k.calls)
	}
	return p
}

func (k *checker) validate(e Validate) {
	chained := k.mustValidate != nil && k.mustValidate.path == e.Path
	p := k.call(e.Op, validate, k.instanceOf(e.Path), e.Registration)
	switch {
	case k.stopping:
		k.failf("validate %d after Stopping (S1)", e.ID)
	case !p.present, p.answer == nil:
		k.failf("validate %d of %q, which has no live answer", e.ID, e.Path)
	case p.held != nil:
		k.failf("validate %d of %q, which has something registered (R6)", e.ID, e.Path)
	case p.answer.conn != 0 && k.conns[p.answer.conn] != p.path:
		k.failf("validate %d of %q: its connection is not open", e.ID, e.Path)
	case !cmp.Equal(e.Registration, p.registration(), cmp.Comparer(sameStale)):
		k.failf("validate %d of %q with what it did not say", e.ID, e.Path)
	case p.tries > 0 && !chained && k.liveCalls() > k.calls-k.calls/4:
		k.failf("validate %d of %q, a retry, takes one of the last slots (R11)", e.ID, e.Path)
	}
}

func (k *checker) register(e Register) {
	validated := k.mustRegister != nil && k.mustRegister.path == e.Path
	p := k.call(e.Op, register, k.instanceOf(e.Path), e.Registration)
	switch {
	case k.stopping:
		k.failf("register %d after Stopping (S1)", e.ID)
	case !validated:
		k.failf("register %d of %q without a Validate just before (R1)", e.ID, e.Path)
	case !p.present, p.answer == nil, p.held != nil:
		k.failf("register %d of %q, which has no live answer or is registered", e.ID, e.Path)
	}
}

func (k *checker) deregister(e Deregister) {
	p := k.paths[e.Path]
	if p == nil || p.held == nil {
		k.failf("deregister %d of %q, which is not registered (R5)", e.ID, e.Path)
		return
	}
	late := k.mustDeregister != nil && k.mustDeregister.path == e.Path
	if p.present && p.held.instance != p.instance && !k.stopping && !late {
		k.counts["replacements"]++
	}
	switch {
	case k.stopping && !k.cfg.DeregisterOnStop:
		k.failf("deregister %d after Stopping (S2)", e.ID)
	case !k.stopping && p.present && !k.superseded(p) && !late:
		k.failf("deregister %d of %q too early", e.ID, e.Path)
	case !cmp.Equal(e.Registration, p.held.reg, cmp.Comparer(sameStale)):
		k.failf("deregister %d of %q with what was not registered (R5)", e.ID, e.Path)
	}
	k.call(e.Op, deregister, p.held.instance, e.Registration)
}

func (k *checker) cancel(e Cancel) {
	f := k.flights[e.ID]
	if f == nil {
		k.failf("cancel %d, which is not in flight", e.ID)
		return
	}
	p := f.path
	outdated := !p.present || f.instance != p.instance
	switch {
	case f.cancelled:
		k.failf("cancel %d twice", e.ID)
	case f.kind == deregister && (!k.stopping || k.cfg.DeregisterOnStop):
		k.failf("cancel of the deregister %d", e.ID)
	case !k.stopping && !outdated:
		k.failf("cancel %d of %q for no reason", e.ID, p.path)
	}
	f.cancelled = true
	k.counts["cancels"]++
	if f.kind == ask || f.kind == tell || f.kind == acknowledge {
		p.probe = nil
		delete(k.flights, e.ID)
		k.dropped[e.ID] = f
	}
}

func (k *checker) emit(e Emit) {
	ev := e.Event
	if ev.Version != "v1" || !ev.Time.Equal(k.now) {
		k.failf("event %s with version %q and time %v", ev.Kind, ev.Version, ev.Time)
	}
	if len(ev.Error) > 1024 || !utf8.ValidString(ev.Error) {
		k.failf("event %s with a bad error text %q", ev.Kind, ev.Error)
	}
	p := k.paths[ev.Path]
	if p == nil || p.announce != ev.Kind {
		return
	}
	p.announce = ""
	switch ev.Kind {
	case EventFailing, EventReplaced:
		if p.held != nil && p.held.unsure {
			p.held.replaced, p.held.unsure = ev.NextTry, false
		}
		p.next = ev.NextTry
		k.paced(p.path, p.transient, ev.NextTry)
	case EventNotAcknowledged:
		p.held.next = ev.NextTry
		k.paced(p.path, p.held.fails, ev.NextTry)
	case EventRejected, EventIgnored:
		if !p.never && !ev.NextTry.Equal(p.next) || p.never && !ev.NextTry.IsZero() {
			k.failf("%q is %s and tried again at %v (R13)", p.path, ev.Kind, ev.NextTry)
		}
	}
}

// paced is R12: 0.5 s, doubled, with 20 % jitter, and never more than 2 min.
func (k *checker) paced(path string, fails int, next time.Time) {
	base := 120.0
	if fails <= 8 {
		base = min(base, 0.5*float64(int(1)<<(fails-1)))
	}
	if wait := next.Sub(k.now).Seconds(); wait < 0.8*base-1e-6 || wait > min(120, 1.2*base)+1e-6 {
		k.failf("%q waits %.3f s after failure %d (R12)", path, wait, fails)
	}
}

func (k *checker) liveProbes() (n int) {
	for _, p := range k.paths {
		if p.probe != nil {
			n++
		}
	}
	return n
}

func (k *checker) liveCalls() (n int) {
	for _, p := range k.paths {
		if p.call != nil {
			n++
		}
	}
	return n
}

// after checks what must hold between two Steps.
func (k *checker) after(out []Effect) {
	if k.mustRegister != nil || k.mustValidate != nil || k.mustDeregister != nil {
		k.failf("what has to follow at once did not (R6, R7)")
	}
	owned := map[EffectID]bool{}
	awaited, held := 0, 0
	for path, p := range k.paths {
		if p.announce != "" {
			k.failf("%q: no event %s", path, p.announce)
		}
		for _, f := range []*flightModel{p.probe, p.call} {
			if f != nil && f.kind != deregister && !f.cancelled && (k.stopping || !p.present || f.instance != p.instance) {
				k.failf("%q: %d is of no use any more and was not cancelled (R7)", path, f.id)
			}
		}
		if f := p.call; k.stopping && f != nil && !f.cancelled && (f.kind != deregister || !k.cfg.DeregisterOnStop) {
			k.failf("%q: call %d was not cancelled by Stopping (S1)", path, f.id)
		}
		if p.answer != nil {
			owned[p.answer.conn] = true
		}
		owned[p.tell] = true
		if p.held != nil {
			owned[p.held.conn] = true
			held++
		}
		if p.awaited {
			awaited++
		}
		k.phased(p)
	}
	for conn, path := range k.conns {
		if !owned[conn] {
			k.failf("connection %d of %q is nobody's and open", conn, path)
		}
	}
	for conn := range owned {
		if conn != 0 && k.conns[conn] == "" {
			k.failf("connection %d is needed and closed", conn)
		}
	}
	if want := len(k.looked) == len(k.cfg.Roots) && awaited == 0; want && !k.synced || k.synced && !want && slices.Contains(out, Effect(Synced{})) {
		k.failf("synced is %v and should be %v (O3)", k.synced, want)
	}
	if want := k.stopping && k.liveCalls() == 0 && (held == 0 || !k.cfg.DeregisterOnStop); want != k.stopped {
		k.failf("stopped is %v and should be %v (S1)", k.stopped, want)
	}
	k.busy()
	for path, p := range k.paths {
		if !p.visible() {
			delete(k.paths, path)
		}
	}
}

// core compares what a Core shows with the model.
func (k *checker) core(c *Core) error {
	if err := bounded(c); err != nil {
		return err
	}
	k.errs = nil
	deadline := c.Deadline()
	if w := k.soonest; !w.at.IsZero() && (deadline.IsZero() || deadline.After(w.at)) {
		k.failf("%q is to be looked at by %v, and the deadline is %v", w.path, w.at, deadline)
	}
	if !deadline.IsZero() && !deadline.After(k.now) {
		k.failf("the deadline %v has passed", deadline)
	}
	if deadline.Sub(k.now) > 10*time.Minute {
		k.failf("the deadline %v is further away than anything can be", deadline)
	}
	return errors.Join(k.errs...)
}

// view compares a View with the model (O2).
func (k *checker) view(v View) error {
	k.errs = nil
	if v.Synced != k.synced || len(v.Sockets) != len(k.paths) || len(v.Types) != len(k.types) {
		k.failf("view: synced %v, %d sockets, %d types; want %v, %d, %d", v.Synced, len(v.Sockets), len(v.Types), k.synced, len(k.paths), len(k.types))
	}
	for _, s := range v.Sockets {
		p := k.paths[s.Path]
		if p == nil {
			k.failf("view: %q should not be there", s.Path)
			continue
		}
		if s.Phase != p.phase {
			k.failf("view: %q is %s, want %s", s.Path, s.Phase, p.phase)
		}
		var next time.Time
		tries, ack := p.tries, Acknowledged("")
		switch {
		case p.phase == Backoff, p.phase == NotPlugin, p.phase == Rejected:
			if !p.never {
				next = p.next
			}
		case p.phase == Registered && p.held.ack == AckNo:
			tries, next = p.held.fails, p.held.next
		}
		if p.held != nil {
			ack = p.held.ack
		}
		if s.Tries != tries || !s.NextTry.Equal(next) || s.Acknowledged != ack {
			k.failf("view: %q: tries %d, next %v, acknowledged %q; want %d, %v, %q", s.Path, s.Tries, s.NextTry, s.Acknowledged, tries, next, ack)
		}
		if s.Since.After(v.Time) || s.Found.After(v.Time) || (s.Stale == nil) != (p.entry.Stale == nil) && p.present {
			k.failf("view: %q: since %v, found %v, stale %v", s.Path, s.Since, s.Found, s.Stale)
		}
	}
	return errors.Join(k.errs...)
}

func (p *pathModel) visible() bool { return p.present || p.held != nil || p.call != nil }

// busy is R11: a slot that may be used is used. And what is to be done later has its Deadline.
func (k *checker) busy() {
	if k.stopping {
		return
	}
	probes, calls := k.liveProbes(), k.liveCalls()
	for path, p := range k.paths {
		if want, first, at := k.wantsProbe(p); want && (probes < k.probes && first || probes < k.probes-k.probes/4) {
			k.failf("%q waits for a probe, with %d of %d slots used", path, probes, k.probes)
		} else if !at.IsZero() {
			k.expect(path, at)
		}
		var key name
		switch {
		case p.call != nil:
			continue
		case p.held != nil && (!p.present || k.superseded(p)):
			key = p.held.reg.key()
		case p.held != nil && !p.current():
			k.expect(path, p.held.replaced.Add(2*time.Second))
			continue
		case p.answer != nil && p.held == nil:
			key = p.registration().key()
		default:
			continue
		}
		if k.running[key] == 0 && calls < k.calls-k.calls/4 {
			k.failf("%q waits for a handler call, with %d of %d slots used", path, calls, k.calls)
		}
	}
}

// expect notes a time at which the Core has to be woken; core compares it.
func (k *checker) expect(path string, at time.Time) {
	if k.soonest.at.IsZero() || at.Before(k.soonest.at) {
		k.soonest = wakeup{path, at}
	}
}

// wantsProbe reports whether a path could do with a probe now and whether that counts as a first try; else when it will, if ever.
func (k *checker) wantsProbe(p *pathModel) (want, first bool, at time.Time) {
	switch {
	case !p.present || p.probe != nil:
		return false, false, time.Time{}
	case p.tell != 0:
		return true, p.tries < 2, time.Time{}
	case p.current():
		if h := p.held; h.ack == "" || h.ack == AckNo {
			if k.now.Before(h.next) {
				return false, false, h.next
			}
			return true, h.fails == 0, time.Time{}
		}
		return false, false, time.Time{}
	case p.answer != nil, p.live(p.call), p.never:
		return false, false, time.Time{}
	case k.now.Before(p.next):
		return false, false, p.next
	}
	return true, p.tries == 0, time.Time{}
}

func (k *checker) phased(p *pathModel) {
	was, is := p.phase, k.phaseOf(p)
	if !p.visible() {
		is = ""
	}
	if p.phase = is; was != is {
		k.counts[fmt.Sprintf("phase %s→%s", was, is)]++
	}
}

func (k *checker) phaseOf(p *pathModel) Phase {
	leaving := p.call != nil && p.call.kind == deregister && p.call.instance == p.instance
	switch {
	case !p.present || leaving:
		return Deregistering
	case p.current():
		return Registered
	case p.probe != nil && p.probe.kind == ask, p.answer != nil, p.live(p.call):
		return Registering
	case p.refused == unsupported:
		return NotPlugin
	case p.refused != accepted:
		return Rejected
	case p.tries > 0:
		return Backoff
	}
	return Pending
}

// bounded is R12: what is gone is gone from everywhere, so that no queue can outgrow the sockets there are.
func bounded(c *Core) error {
	waiting := 0
	for _, line := range c.waiting {
		waiting += len(line)
	}
	for _, n := range []struct {
		what string
		n    int
	}{
		{"alarms", len(c.alarms)},
		{"tickets for probes", len(c.probes.first) + len(c.probes.retries)},
		{"tickets for calls", len(c.calls.first) + len(c.calls.retries)},
		{"sockets waiting for a name", waiting},
	} {
		if n.n > len(c.sockets) {
			return fmt.Errorf("%d %s for %d sockets", n.n, n.what, len(c.sockets))
		}
	}
	return nil
}
