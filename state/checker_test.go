package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/plugpoll/plugpoll/scanner"
)

// checker is a second opinion: a model of what a Core may and must do, written from the contract and fed with the same inputs. After each Step it compares
// the effects with it. It knows nothing of the Core's insides. Where the contract leaves a choice the model looks at what the Core chose (chose, closes) and
// goes on from there; everywhere else it decides first and then compares.
//
// Its parts: instances and what is seen of them (checker_instance_test.go), connections and whether they last (checker_liveness_test.go), names and ranks
// (checker_names_test.go), places (checker_places_test.go), and what a View shows (checker_view_test.go).
type checker struct {
	cfg                      Config
	probes, calls, maxParked int
	grace                    time.Duration // negative: for ever
	now                      time.Time
	out                      []Effect // of the Step that is checked
	lastID                   EffectID
	types                    map[string]bool // with a handler
	exclusive                map[string]bool
	roots                    map[string]*rootModel
	paths                    map[string]*pathModel
	flights                  map[EffectID]*flightModel
	dropped                  map[EffectID]*flightModel // probes given up: a result may still come
	conns                    map[EffectID]*connModel   // open, or ended and not closed yet
	generations              map[uint64]string         // the path of a generation
	discoveries              int                       // scans and looks that showed something: the first part of a rank

	synced, stopping, stopped bool
	running                   map[name]EffectID
	holders                   map[name]*pathModel // who has a name, once that cannot change in this Step any more

	// What must follow in the same Step.
	mustRegister, mustValidate, mustDeregister *must
	ended                                      *flightModel // the handler call that this Step's input ends
	evicting                                   int          // places freed for first tries that have not been taken yet
	blurred                                    bool         // which calls are parked is the Core's choice: ask the View

	freed, answered time.Time // when a probe last ended, in whatever way, and by a result
	soonest         wakeup    // the first time at which the Core has to be woken
	counts          map[string]int
	errs            []error
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
	gen       uint64
	started   time.Time
	cancelled bool
	conn      *connModel // of a notify
	reg       Registration
	parked    bool
	ending    bool
	chained   bool     // it goes on in the place of the one before
	reasons   []Reason // of a deregister: any of these

	asked   scanner.Identity // what an Ask dialled
	check   bool             // an Ask that is to say whether the instance that is registered is still there (L1)
	doubt   bool             // because its file may be another one (I4)
	stamped bool             // the stamps changed meanwhile (I6)
	again   bool             // and so it may be another one again
	moot    bool             // its connection has ended: it may be given up or waited for
	first   string           // whether it was a first try: yes, no, maybe
}

// kindLook is the kind of a Look here, whatever the Core calls it.
const kindLook kind = 100

type pathModel struct {
	path, root string
	present    bool
	entry      scanner.Entry
	used       time.Time // when the newest scan or look that was used for it started
	lookUsed   time.Time // and the newest look
	loose      bool      // whether it is stale is open: a look saw it after a scan did not
	instance   int
	gen        uint64
	genOpen    bool // the next effect tells the generation
	rank       rankModel
	spent      bool // its handler has said no to this instance

	probe, call, look *flightModel
	wait              *waitModel
	lastLook, lookEnd time.Time
	spacing, spacing1 int // of checks after lost connections: of the path's, and of this instance's
	lastCheck         time.Time
	lastCheckOf       int // instance

	answer *answerModel
	tell   *connModel // a refusal waits on it
	held   *heldModel

	refused   refusal
	info      *Info
	tries     int // failures in a row
	transient int // those of them that move the backoff
	next      time.Time
	never     bool
	early     bool      // it may be asked before next
	heldBack  time.Time // until when its ask waited for a scan, because a look found nothing: the View may show that as its next try
	lastReset time.Time
	reset0    time.Time // lastReset, if what moved it did not count
	failed    bool      // the replacement that an event is about to tell counted as a failure
	soft      bool      // whether it is excused is open
	excused   bool      // it was refused once, which does not count
	urgent    bool      // somebody asked for it: as good as a first try
	evicted   bool      // its last probe was ended to make room, which makes the next one a retry
	awaited   bool      // Synced waits for it
	goesOn    bool      // or does not: its try has failed, and goes on at once

	wants   [][]EventKind // of each one has to come in this Step
	mays    []EventKind
	mention string // what the error of its next event has to contain
	phase   Phase

	said     bool // that it stands by
	tolerate time.Time
	doubted  bool       // a doubt is planned
	linger   *connModel // in observe mode the connection of an instance that was replaced may stand until the new one has answered
	lingers  time.Time
	blocked  *name  // it was refused because this name is another one's
	blocker  string // whose
}

type answerModel struct {
	conn *connModel
	info Info
	peer *Peer
	at   time.Time
	ack  Acknowledged // of a standby
	open bool         // it may have been dropped: the next effect tells
}

// heldModel is what is registered or, in observe mode, observed.
type heldModel struct {
	reg      Registration
	by       EffectID
	instance int
	gen      uint64
	rank     rankModel
	conn     *connModel
	info     Info
	peer     *Peer
	ack      Acknowledged
	told     bool // it was told as a standby: whether it is told again is open
	fails    int
	next     time.Time
	since    time.Time // unreachable since then
	unsure   bool      // replaced is the next try that an event is about to tell
	replaced time.Time // when it was first seen that another one is there
}

func newChecker(cfg Config) *checker {
	k := &checker{
		cfg: cfg, probes: cfg.Probes, calls: cfg.Calls, maxParked: cfg.MaxParked, grace: cfg.LivenessGrace,
		types: map[string]bool{}, exclusive: map[string]bool{}, roots: map[string]*rootModel{}, paths: map[string]*pathModel{},
		flights: map[EffectID]*flightModel{}, dropped: map[EffectID]*flightModel{}, conns: map[EffectID]*connModel{},
		generations: map[uint64]string{}, running: map[name]EffectID{}, counts: map[string]int{},
	}
	for of, standard := range map[*int]int{&k.probes: 64, &k.calls: 16, &k.maxParked: 1024} {
		if *of == 0 {
			*of = standard
		}
	}
	if k.grace == 0 {
		k.grace = 30 * time.Second
	}
	for _, r := range cfg.Roots {
		k.roots[r.Path] = &rootModel{}
	}
	return k
}

func (k *checker) failf(format string, args ...any) {
	k.errs = append(k.errs, fmt.Errorf(format, args...))
}

// step checks one Step: what came in, what came out, and what must hold then.
func (k *checker) step(now time.Time, in Input, out []Effect) error {
	k.now, k.out, k.errs, k.soonest, k.evicting, k.blurred = now, out, nil, wakeup{}, 0, false
	k.mustRegister, k.mustValidate, k.mustDeregister, k.ended, k.holders = nil, nil, nil, nil, nil
	for _, p := range k.paths {
		p.wants, p.mays, p.mention, p.failed = nil, nil, "", false
	}
	if in, ok := in.(Called); ok { // whether a call is parked in the Step that ends it is open
		if f := k.flights[in.ID]; f != nil && !f.parked && k.now.Sub(f.started) >= parkedFrom {
			f.ending, k.blurred = true, true
		}
	}
	k.park()
	k.input(in)
	k.park()
	for _, p := range k.paths {
		p.lingering(k.now, k.stopping)
	}
	k.judge()
	k.unblock()
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
	case Looked:
		k.lookedAt(in)
	case HandlerAdded:
		k.types[in.Type], k.exclusive[in.Type] = true, in.Exclusive
		for _, p := range k.paths {
			if p.refused == unknownType && (p.info == nil || p.info.Type == in.Type) {
				p.wake(k.now)
			}
		}
	case Disconnected:
		k.disconnected(in)
	case Asked:
		k.asked(in)
	case Called:
		k.called(in)
	case Notified:
		k.notified(in)
	case RetryAsked:
		for _, p := range k.paths {
			if in.Path == "" || in.Path == p.path {
				p.wake(k.now)
				p.spent = false
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
	if p.wait != nil && p.wait.why != stale {
		p.wait.from = now
	}
}

// want has one of these events come in this Step.
func (p *pathModel) want(kinds ...EventKind) { p.wants = append(p.wants, kinds) }

// chose reports whether the Core emits an event of a path in this Step: for what the contract leaves to it.
func (k *checker) chose(path string, kinds ...EventKind) bool {
	return slices.ContainsFunc(k.out, func(e Effect) bool {
		emit, ok := e.(Emit)
		return ok && emit.Event.Path == path && slices.Contains(kinds, emit.Event.Kind)
	})
}

// closes reports whether the Core closes a connection in this Step.
func (k *checker) closes(c *connModel) bool {
	return c == nil || slices.Contains(k.out, Effect(Close{c.id}))
}

// calling reports whether a handler call for a name starts in this Step.
func (k *checker) calling(key name) bool {
	return slices.ContainsFunc(k.out, func(e Effect) bool {
		switch e := e.(type) {
		case Validate:
			return e.Registration.key() == key
		case Deregister:
			return e.Registration.key() == key
		}
		return false
	})
}

func (k *checker) asked(in Asked) {
	conn := k.connected(in)
	f := k.flights[in.ID]
	if f == nil {
		return
	}
	p := f.path
	delete(k.flights, in.ID)
	p.probe, p.evicted, k.freed, k.answered = nil, false, k.now, k.now
	if f.asked == p.entry.ID { // it did not change in the end
		f.stamped = false
	}
	switch {
	case in.Failure == Stale && in.Err != nil:
		p.wait = &waitModel{why: stale, what: waitLook, from: latest(k.now, p.lastLook.Add(lookGap)), check: f.check && p.current()}
		p.wait.by = latest(p.wait.from, p.lookEnd.Add(lookGap))
	case f.check && p.current() && (!p.leaving() || k.chose(p.path, EventAdopted, EventReachable, EventReplaced)):
		k.checked(p, f, in, conn)
	case in.Err != nil && f.stamped:
		k.judgedByStamps(p, in, conn)
	default:
		k.tried(p, in, conn)
	}
}

// tried takes the result of an Ask for what it is.
func (k *checker) tried(p *pathModel, in Asked, conn *connModel) {
	switch {
	case in.Err == nil && k.types[in.Info.Type]:
		p.info, p.refused = &in.Info, accepted
		p.answer = &answerModel{conn: conn, info: in.Info, peer: in.Peer, at: k.now}
		p.blocked, p.next = nil, k.now
	case in.Err == nil:
		p.info = &in.Info
		k.refuse(p, unknownType, conn)
	case in.Failure == Unsupported:
		k.refuse(p, unsupported, nil)
	case in.Failure == Permanent:
		k.refuse(p, permanent, conn)
	case in.Failure == Refused && p.tries == 0 && !p.leaving() && (!p.excused && !p.soft || p.soft && !k.chose(p.path, EventFailing)):
		p.excused, p.next = true, k.now.Add(50*time.Millisecond)
	default:
		k.fail(p, conn)
	}
}

// telling is the connection that a refusal is told over, if it can be.
func (k *checker) telling(conn *connModel) *connModel {
	if conn == nil || conn.ended || k.cfg.Observe {
		return nil
	}
	return conn
}

func (k *checker) refuse(p *pathModel, why refusal, tell *connModel) {
	p.refused, p.tell = why, k.telling(tell)
	p.tries++
	p.awaited = false
	p.next, p.never = k.now.Add(10*time.Minute), why == unknownType
	if why == unsupported {
		p.want(EventIgnored)
	} else {
		p.want(EventRejected)
	}
}

func (k *checker) fail(p *pathModel, tell *connModel) {
	p.refused, p.tell = accepted, k.telling(tell)
	p.tries++
	p.transient++
	p.awaited, p.never = false, false
	if p.leaving() {
		if k.closes(p.tell) { // it was a check, of which nobody is told
			p.tell = nil
		}
		p.want(EventFailing, EventUnreachable)
		return
	}
	p.want(EventFailing) // which says when the next one is
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
	k.ended = f
	current := p.present && f.instance == p.instance
	switch f.kind {
	case deregister:
		p.want(EventDeregistered)
		k.departed(p, f)
	case validate:
		switch {
		case !current || k.stopping:
		case in.Err == nil && k.cfg.Observe:
			k.observed(p, f)
		case in.Err == nil:
			k.mustRegister = &must{p.path, f.reg} // R1
		default:
			k.refusedByHandler(p, in)
		}
	case register:
		switch {
		case in.Err == nil:
			k.counts["registered"]++
			k.holds(p, f, current)
			if !current {
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

// holds is a Register that succeeded.
func (k *checker) holds(p *pathModel, f *flightModel, current bool) {
	p.held = &heldModel{reg: f.reg, by: f.id, instance: f.instance, rank: p.rank, gen: f.gen}
	if !current {
		p.mays = append(p.mays, EventRegistered)
		return
	}
	p.succeeds(EventRegistered)
	k.watchAtOnce(p)
}

func (k *checker) observed(p *pathModel, f *flightModel) {
	p.held = &heldModel{reg: f.reg, instance: f.instance, rank: p.rank, gen: f.gen}
	p.succeeds(EventObserved)
	k.counts["observed"]++
	k.watchAtOnce(p)
}

// succeeds has what is held take over the answer.
func (p *pathModel) succeeds(event EventKind) {
	a := p.answer
	p.held.conn, p.held.info, p.held.peer, p.held.told = a.conn, a.info, a.peer, a.ack != ""
	if a.ack == AckUnsupported {
		p.held.ack, p.held.told = a.ack, false
	}
	p.answer, p.spent = nil, false
	p.tries, p.transient, p.refused = 0, 0, accepted
	p.awaited = false
	p.want(event)
}

// departed is a Deregister that has ended.
func (k *checker) departed(p *pathModel, f *flightModel) {
	h, key := p.held, f.reg.key()
	p.held = nil
	if h == nil {
		return
	}
	if p.present && f.instance == p.instance && p.answer == nil && h.conn.live() && h.since.IsZero() {
		p.answer = &answerModel{conn: h.conn, info: h.info, peer: h.peer, ack: h.ack, open: k.stopping || p.wait != nil || p.probe != nil && p.probe.kind == ask}
		k.counts["demotions"]++
	}
	// It was reached again while its grace was over and its handler was told: what becomes of the connection is open.
	regained := !slices.Contains(f.reasons, ReasonOutranked) && p.answer != nil && p.answer.conn == h.conn
	if regained {
		p.answer.open = true
	}
	if p.wait != nil && p.wait.why == doubt {
		p.wait = nil
	}
	if p.entry.ID.Inode == 0 { // it may have been in doubt, and is asked when that would have been settled
		p.tolerate = latest(p.tolerate, k.now.Add(5*time.Second))
	}
	switch {
	case k.stopping:
	case k.excludes(key):
		if c, sure := k.best(key); c != nil && sure {
			k.mustValidate = &must{c.path, c.registration()} // N2
		}
	case p.present && p.answer != nil && p.registration().key() == key && (!regained || k.calling(key)):
		k.mustValidate = &must{p.path, p.registration()} // R6
	}
}

func (k *checker) refusedByHandler(p *pathModel, in Called) {
	conn := p.answer.conn
	p.answer, p.spent = nil, true
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
	p.probe, p.evicted, k.freed, k.answered = nil, false, k.now, k.now
	ack := AckNo
	switch {
	case in.Err == nil:
		ack = AckYes
	case in.Failure == Unsupported:
		ack = AckUnsupported
	}
	switch {
	case f.kind == tell:
		if p.tell == f.conn {
			p.tell = nil
		}
	case p.answer != nil && p.answer.conn == f.conn:
		p.answer.ack = ack
		p.mays = append(p.mays, EventNotAcknowledged)
	case p.current() && p.held.conn == f.conn:
		p.held.ack, p.held.told = ack, false
		if ack == AckNo && f.conn.ended {
			p.mays = append(p.mays, EventNotAcknowledged)
			p.held.fails++
		} else if ack == AckNo {
			p.held.fails++
			p.want(EventNotAcknowledged)
		}
	}
}

func (p *pathModel) registration() Registration {
	i := p.answer.info
	return Registration{Entry: p.entry, Type: i.Type, Name: i.Name, Endpoint: i.Endpoint, Versions: i.Versions}
}

func (p *pathModel) current() bool {
	return p.held != nil && p.present && p.held.instance == p.instance
}

// leaving reports whether the instance that is there is being deregistered.
func (p *pathModel) leaving() bool {
	return p.call != nil && p.call.kind == deregister && p.current()
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
	case Look:
		k.lookAt(e)
	case Rescan:
		k.rescan(e)
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
		if k.conns[e.Conn] == nil {
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
			p.hangUp()
		}
	default:
		k.failf("%T is new to the checker", e)
	}
}

// hangUp forgets whose connections are.
func (p *pathModel) hangUp() {
	p.tell = nil
	if p.answer != nil {
		p.answer.conn = nil
	}
	if p.held != nil {
		p.held.conn = nil
	}
}

// begin notes an effect that has a result, for the instance that is there or, if it is not the same, the one of the generation that is given.
func (k *checker) begin(op Op, what kind, instance int, generation uint64) *flightModel {
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
	if of, known := k.generations[op.Generation]; known && of != op.Path {
		k.failf("effect %d: generation %d is of %q and of %q", op.ID, op.Generation, of, op.Path)
	}
	k.generations[op.Generation] = op.Path
	switch {
	case p.instance == instance && p.gen != 0 && op.Generation < p.gen:
		k.failf("effect %d of %q: generation %d after %d", op.ID, op.Path, op.Generation, p.gen)
	case p.instance == instance && !p.genOpen && op.Generation != p.gen:
		k.failf("effect %d of %q: generation %d, though it is the instance of %d", op.ID, op.Path, op.Generation, p.gen)
	case p.instance == instance:
		p.gen, p.genOpen = op.Generation, false
	case generation != 0 && op.Generation != generation:
		k.failf("effect %d of %q: generation %d, though it is for the instance of %d", op.ID, op.Path, op.Generation, generation)
	}
	f := &flightModel{id: op.ID, kind: what, path: p, instance: instance, gen: op.Generation, started: k.now}
	k.flights[op.ID] = f
	k.counts[map[kind]string{
		ask: "asks", tell: "tells", acknowledge: "acknowledges", validate: "validates", register: "registers", deregister: "deregisters", kindLook: "looks",
	}[what]]++
	return f
}

func (k *checker) instanceOf(path string) int {
	if p := k.paths[path]; p != nil {
		return p.instance
	}
	return 0
}

func (k *checker) ask(e Ask) {
	p := k.probe(e.Op, ask, nil)
	if p.answer != nil && p.answer.open {
		p.answer = nil
	}
	if p.tries > 0 {
		k.counts["retries"]++
	}
	w := p.wait
	switch {
	case e.Entry.Path != p.entry.Path || e.Entry.ID != p.entry.ID || e.Entry.Maybe != p.entry.Maybe || !p.loose && e.Entry.Stale != p.entry.Stale:
		k.failf("ask %d of %q with an entry that is not the newest", e.ID, e.Path)
	case e.Tries != p.tries:
		k.failf("ask %d of %q says %d tries, and it is %d", e.ID, e.Path, e.Tries, p.tries)
	case p.tell != nil:
		k.failf("ask %d of %q before the refusal was told (R3)", e.ID, e.Path)
	case p.answer != nil, p.live(p.call):
		k.failf("ask %d of %q, which has answered", e.ID, e.Path)
	case w != nil && (w.what == waitLook || k.now.Before(w.from)):
		k.failf("ask %d of %q, which is to be looked at first, or asked no sooner than %v (L1)", e.ID, e.Path, w.from)
	case p.look != nil && !p.look.cancelled && p.look.instance == p.instance:
		k.failf("ask %d of %q, which is being looked at (L1)", e.ID, e.Path)
	case w == nil && p.current() && p.held.since.IsZero() && !p.leaving():
		k.failf("ask %d of %q, which is registered and connected", e.ID, e.Path)
	case w == nil && !p.early && (p.never || k.now.Before(p.next)):
		k.failf("ask %d of %q at %v, before its next try at %v, never=%v (R12)", e.ID, e.Path, k.now, p.next, p.never)
	}
	p.probe.check, p.probe.asked = p.current(), e.Entry.ID
	p.probe.doubt, p.doubted = w != nil && w.why == doubt || p.doubted, false
	if p.probe.check && p.entry.ID.Inode == 0 { // a doubt that is asked counts, and this may be one
		p.lastReset = k.now
	}
	if p.probe.check {
		k.counts["checks"]++
		p.lastCheck, p.lastCheckOf = k.now, p.instance
	}
	p.wait, p.early = nil, false
}

func (k *checker) notify(e Notify) {
	conn := k.conns[e.Conn]
	if k.cfg.Observe {
		k.failf("notify %d in observe mode (R18)", e.ID)
	}
	if conn == nil || conn.ended {
		k.failf("notify %d of %q over %d, which is not open", e.ID, e.Path, e.Conn)
	}
	if !e.Registered {
		p := k.probe(e.Op, tell, conn)
		if p.tell == nil || p.tell != conn {
			k.failf("tell %d of %q over %d, where nothing is to be told", e.ID, e.Path, e.Conn)
		}
		if e.Message == "" || len(e.Message) > 1024 || !utf8.ValidString(e.Message) {
			k.failf("tell %d of %q: bad text %q (R3)", e.ID, e.Path, e.Message)
		}
		return
	}
	p := k.probe(e.Op, acknowledge, conn)
	h := p.held
	if a := p.answer; a != nil && a.conn == conn {
		switch {
		case k.standing(p) == no && !p.said:
			k.failf("acknowledge %d of %q, which is neither registered nor standing by (R1, N2)", e.ID, e.Path)
		case a.ack == AckYes, a.ack == AckUnsupported:
			k.failf("acknowledge %d of the standby %q, which was told over this connection (N2)", e.ID, e.Path)
		}
		return
	}
	switch {
	case !p.current():
		k.failf("acknowledge %d of %q, which is not registered (R1)", e.ID, e.Path)
	case h.ack == AckYes && !h.told, h.ack == AckUnsupported && !h.told:
		k.failf("acknowledge %d of %q, which is %q already (R4)", e.ID, e.Path, h.ack)
	case conn != h.conn:
		k.failf("acknowledge %d of %q over %d, which is not its connection", e.ID, e.Path, e.Conn)
	case k.now.Before(h.next):
		k.failf("acknowledge %d of %q before %v (R4)", e.ID, e.Path, h.next)
	}
}

func (k *checker) cancel(e Cancel) {
	f := k.flights[e.ID]
	if f == nil {
		k.failf("cancel %d, which is not in flight", e.ID)
		return
	}
	p := f.path
	outdated := !p.present || f.instance != p.instance
	probe := f.kind == ask || f.kind == tell || f.kind == acknowledge
	switch {
	case f.cancelled:
		k.failf("cancel %d twice", e.ID)
	case f.kind == deregister && (!k.stopping || k.cfg.DeregisterOnStop):
		k.failf("cancel of the deregister %d", e.ID)
	case k.stopping || outdated || f.moot || f.kind == kindLook && p.wait == nil:
	case probe:
		k.evict(f)
	default:
		k.failf("cancel %d of %q for no reason", e.ID, p.path)
	}
	f.cancelled = true
	k.counts["cancels"]++
	switch {
	case probe:
		if k.evicting == 0 {
			k.freed = k.now
		}
		p.probe = nil
		delete(k.flights, e.ID)
		k.dropped[e.ID] = f
	case f.kind == kindLook:
		p.look, p.lookEnd = nil, k.now
		delete(k.flights, e.ID)
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
	if p == nil {
		return
	}
	wanted := slices.IndexFunc(p.wants, func(kinds []EventKind) bool { return slices.Contains(kinds, ev.Kind) })
	switch {
	case wanted >= 0:
		p.wants = slices.Delete(p.wants, wanted, wanted+1)
	case slices.Contains(p.mays, ev.Kind):
	case slices.Contains([]EventKind{
		EventRegistered, EventObserved, EventDeregistered, EventUnreachable, EventReachable, EventFailing, EventRejected, EventIgnored, EventNotAcknowledged,
	}, ev.Kind):
		k.failf("%q: the event %s is about nothing", p.path, ev.Kind)
		return
	case ev.Kind == EventStandby:
		p.awaited = false
		if p.said = true; !p.spent { // a success, as far as the plugin can know
			p.tries, p.transient = 0, 0
		}
		return
	default:
		return
	}
	k.tells(p, e)
}

// tells takes from an event what only the Core knows, and checks it.
func (k *checker) tells(p *pathModel, e Emit) {
	ev := e.Event
	switch ev.Kind {
	case EventReplaced:
		switch {
		case ev.NextTry.IsZero():
		case !ev.NextTry.After(k.now) || p.next.Equal(ev.NextTry):
			p.next = ev.NextTry
		case p.failed:
			k.nextTry(p, ev.NextTry)
		default: // R12's 5 s
			if p.next = ev.NextTry; ev.NextTry.Sub(k.now) > 5*time.Second {
				k.failf("%q is replaced and asked no sooner than %v (R12)", p.path, ev.NextTry)
			}
		}
	case EventFailing, EventUnreachable:
		if ev.NextTry.IsZero() && p.leaving() { // it is not shown, and comes all the same
			p.wait = &waitModel{why: pace, what: waitAsk, from: k.now, by: k.now.Add(2 * time.Minute)}
			break
		}
		k.nextTry(p, ev.NextTry)
	case EventNotAcknowledged:
		if !p.current() || p.leaving() { // a standby, or soon one or nothing
			break
		}
		p.held.next = ev.NextTry
		k.paced(p.path, p.held.fails, ev.NextTry)
	case EventRejected, EventIgnored:
		if !p.never && !ev.NextTry.Equal(p.next) || p.never && !ev.NextTry.IsZero() {
			k.failf("%q is %s and tried again at %v (R13)", p.path, ev.Kind, ev.NextTry)
		}
		if !strings.Contains(ev.Error, p.mention) {
			k.failf("%q is %s because of %q, which does not name %q (N2)", p.path, ev.Kind, ev.Error, p.mention)
		}
	case EventDeregistered:
		if d := k.ended; d != nil && d.kind == deregister && !slices.Contains(d.reasons, ev.Reason) {
			k.failf("%q was deregistered because it is %q, and the reason is %v", p.path, ev.Reason, d.reasons)
		}
	}
}

// nextTry takes from an event when a socket that has failed is tried again.
func (k *checker) nextTry(p *pathModel, at time.Time) {
	if p.held != nil && p.held.unsure {
		p.held.replaced, p.held.unsure = at, false
	}
	p.next = at
	k.paced(p.path, p.transient, at)
}

// paced is R12: 0.5 s, doubled, with 20 % jitter, and never more than 2 min.
func (k *checker) paced(path string, fails int, next time.Time) {
	base := 120.0
	if fails <= 8 {
		base = min(base, 0.5*float64(int(1)<<max(0, fails-1)))
	}
	if wait := next.Sub(k.now).Seconds(); wait < 0.8*base-1e-6 || wait > min(120, 1.2*base)+1e-6 {
		k.failf("%q waits %.3f s after failure %d (R12)", path, wait, fails)
	}
}

// after checks what must hold between two Steps.
func (k *checker) after(out []Effect) {
	if k.mustRegister != nil || k.mustValidate != nil || k.mustDeregister != nil {
		k.failf("what has to follow at once did not (R6, R7, N2)")
	}
	k.holders = map[name]*pathModel{} // nothing changes from here on
	for _, p := range k.paths {
		if p.held != nil {
			k.holders[p.held.reg.key()] = p
		}
	}
	awaited, goOn, held := 0, 0, 0
	for path, p := range k.paths {
		if p.answer != nil && (p.call == nil && k.now.Sub(p.answer.at) >= parkedFrom || p.call != nil && k.now.Sub(p.call.started) >= parkedFrom) {
			p.awaited = false // it waits for others
		}
		if p.answer != nil && p.call != nil && p.call.started.Equal(k.now) && k.now.Sub(p.answer.at) >= parkedFrom && p.awaited {
			p.goesOn = true // until this moment it did, and both are right
		}
		for _, kinds := range p.wants {
			k.failf("%q: no event %s", path, kinds)
		}
		for _, f := range []*flightModel{p.probe, p.call} {
			if f != nil && f.kind != deregister && !f.cancelled && (k.stopping || !p.present || f.instance != p.instance) {
				k.failf("%q: %d is of no use any more and was not cancelled (R7)", path, f.id)
			}
		}
		if f := p.call; k.stopping && f != nil && !f.cancelled && (f.kind != deregister || !k.cfg.DeregisterOnStop) {
			k.failf("%q: call %d was not cancelled by Stopping (S1)", path, f.id)
		}
		if p.held != nil && !k.cfg.Observe {
			held++
		}
		if p.awaited {
			awaited++
		}
		if p.awaited && p.goesOn {
			goOn++
		}
		k.phased(p)
	}
	k.owned()
	k.oneHolder()
	looked := 0
	for _, r := range k.roots {
		if r.looked {
			looked++
		}
	}
	if want := looked == len(k.cfg.Roots) && awaited == 0; goOn > 0 && goOn == awaited && looked == len(k.cfg.Roots) { // both are right
	} else if want && !k.synced || k.synced && !want && slices.Contains(out, Effect(Synced{})) {
		k.failf("synced is %v and should be %v (O3)", k.synced, want)
	}
	running := 0
	for _, p := range k.paths {
		if p.call != nil {
			running++
		}
	}
	if want := k.stopping && running == 0 && (held == 0 || !k.cfg.DeregisterOnStop); want != k.stopped {
		k.failf("stopped is %v and should be %v (S1)", k.stopped, want)
	}
	k.busy()
	maps.DeleteFunc(k.paths, func(_ string, p *pathModel) bool { return !p.visible() })
}

func (p *pathModel) visible() bool { return p.present || p.held != nil || p.call != nil }

func sameRegistration(a, b Registration) bool {
	return a.Entry == b.Entry && a.Type == b.Type && a.Name == b.Name && a.Endpoint == b.Endpoint && slices.Equal(a.Versions, b.Versions)
}
