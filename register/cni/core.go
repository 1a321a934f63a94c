package cni

import (
	"math/rand/v2"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

const (
	settleLimit = 10 * time.Second // CN5: how long endless writing may hold up a set
	slack       = time.Second      // how much longer than its time an asking may take before it counts as one that hangs
	buildLimit  = 10 * time.Second // how long making an instance may take before that counts as a failure
	maxLine     = 1024             // bytes of an error's text
	// The first pause after a failure, and the longest (CN10). A plugin whose STATUS fails at start mostly waits for its own daemon, which takes seconds.
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
)

// core decides what a directory comes to, and when what is tried again. It has no I/O and no clock, and is not safe for concurrent use.
type core struct {
	cfg    Config
	now    time.Time
	random *rand.Rand
	out    []effect

	polls polls
	// set is what was decided upon last; nil: nothing was yet. Of it, conf says why it cannot be used and empty that there is nothing in it.
	set        *set
	conf       *ConfError
	empty      string
	emptySince time.Time

	// wanted is the set whose instance is wanted, building the one that is being built. buildBy is when that one has had its time; zero: it has, or none is
	// being built. buildAt is when a failed one is tried again.
	wanted, building *set
	buildBy          time.Time
	buildID          uint64
	buildAt          time.Time
	buildDelays      state.Delays

	// good is what is in use; nil: nothing was yet. retired says that its files have been gone for long enough (CN8).
	good    *applied
	retired bool
	reloads int

	health   health
	promised uint64

	lines struct{ conf, empty, plugins, status, scan state.Lines }

	state     State
	since     time.Time
	ready     bool
	mentioned bool        // whether anybody was told that it is not ready
	loud      state.Level // of what this step has emitted
	spoke     bool        // whether it has
	synced    bool
	stopping  bool

	version, viewed uint64
	view            *View
}

// applied is a set in use.
type applied struct {
	revision Revision
	networks []network
	at       time.Time
	// generation tells the instances apart.
	generation uint64
}

func newCore(cfg Config) *core {
	return &core{cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0)), state: Loading}
}

// step takes one input at the time now and returns what is to be done, in order. now must not go back.
func (c *core) step(now time.Time, in input) []effect {
	c.now, c.out, c.loud, c.spoke = now, nil, state.Debug, false
	if c.since.IsZero() {
		c.since = now
	}
	if c.stopping {
		return nil
	}
	switch in := in.(type) {
	case *scanned:
		c.scanned(in)
	case built:
		c.built(in)
	case found:
		c.found(in)
	case told:
		c.told(in)
	case checkAsked:
		c.promised = c.check()
	case retryAsked:
		c.retry()
	case stopping:
		c.stop()
		return c.out
	case tick:
	}
	c.due()
	c.settle()
	return c.out
}

// deadline is when step wants a tick. Zero: never.
func (c *core) deadline() time.Time {
	if c.stopping {
		return time.Time{}
	}
	return earliest(c.retireAt(), c.buildAt, c.buildBy, c.health.due(c))
}

// due does what a time has come for.
func (c *core) due() {
	c.retire()
	if !c.buildAt.IsZero() && !c.buildAt.After(c.now) {
		c.buildAt = time.Time{}
		c.startBuild()
	}
	if !c.buildBy.IsZero() && !c.buildBy.After(c.now) {
		c.buildBy = time.Time{}
		c.hungBuild()
	}
	if at := c.health.due(c); !at.IsZero() && !at.After(c.now) {
		c.overdue()
	}
}

// retry makes what has failed due now.
func (c *core) retry() {
	c.health.delays.Reset()
	c.buildDelays.Reset()
	if !c.buildAt.IsZero() {
		c.buildAt = c.now
	}
	c.check()
}

func (c *core) stop() {
	c.stopping = true
	if r := c.health.round; r != nil {
		c.do(cancel{r.id})
	}
}

// settle says what the state is after an input, if it is another one.
func (c *core) settle() {
	now := c.stateNow()
	if now != c.state {
		c.state, c.since = now, c.now
		c.version++
	}
	ready := now == Ready || now == Stale
	if ready != c.ready || !c.synced && now != Loading {
		c.readiness(ready)
	}
	c.ready = ready
	if !c.synced && now != Loading {
		c.synced = true
		c.emit(state.Debug, Event{Kind: EventSynced})
		c.do(synced{})
	}
}

// readiness says that it is ready, or not any more. Whoever was told why it is not need not be told that (O1).
func (c *core) readiness(ready bool) {
	if ready {
		level := state.Debug
		if c.mentioned || !c.synced {
			level = state.Notice
		}
		c.mentioned = false
		c.emit(level, Event{Kind: EventReady, Revision: c.good.revision, Network: c.good.name(), Networks: len(c.good.networks)})
		return
	}
	c.mentioned = c.mentioned || c.loud > state.Debug || !c.spoke
	level := state.Debug
	if !c.spoke {
		level = state.Notice
	}
	text, _ := c.why()
	c.emit(level, Event{Kind: EventNotReady, Error: text, NextRetry: c.nextRetry()})
}

func (c *core) do(e effect) { c.out = append(c.out, e) }

// emit fills in what every event has. The state is the one that the input has led to, also where settle has not taken note of it yet.
func (c *core) emit(level state.Level, e Event) {
	e.Version, e.Time, e.Name = state.APIVersion, c.now, c.cfg.Name
	e.ConfDir, e.ConfDirBase64 = c.cfg.ConfDir, scanner.Base64(c.cfg.ConfDir)
	e.State = c.stateNow()
	c.loud, c.spoke = max(c.loud, level), true
	c.version++
	c.do(emit{level, e})
}

func (a *applied) name() string {
	if a == nil || len(a.networks) == 0 {
		return ""
	}
	return a.networks[0].name
}

// earliest is the first of these times that is one. Zero: none is.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
