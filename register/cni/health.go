package cni

import (
	"fmt"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// health is what is known of the plugins of the networks in use. The verdict on those before stands until theirs has come, so that a file that is merely
// rewritten never makes anything not ready.
type health struct {
	// known says that there was a verdict since the networks were last taken into use from nothing.
	known bool
	// missing are the plugins that have no binary, err what STATUS says. Both empty: all is well, as far as it is known.
	missing     []Missing
	missingText string
	paths       map[string]string // of the binaries, by type, as they were found last
	ipam        map[string]string // why an IPAM plugin has none, by type
	err         error
	text        string // of err
	tries       int
	asked       time.Time // when the last answer came
	delays      state.Delays

	// round is the looking and asking that runs; there is one at a time. again says that another one is wanted after it.
	round   *round
	again   bool
	rounds  uint64
	roundAt time.Time // when the next one begins by itself; zero: with a poll, or not at all
}

// round looks for the binaries, and then asks for the STATUS if none is missing.
type round struct {
	id         uint64
	generation uint64
	began      time.Time // its part that runs
	asking     bool
	late       bool // it has had its time
}

// check begins a round, or has one follow the one that runs, and returns its number. 0: nothing is in use.
func (c *core) check() uint64 {
	h := &c.health
	switch {
	case c.good == nil:
		return 0
	case h.round != nil:
		h.again = true
		if h.round.asking && h.round.generation != c.good.generation {
			c.do(cancel{h.round.id})
		}
		return h.rounds + 1
	}
	h.rounds++
	h.again, h.roundAt = false, time.Time{}
	h.round = &round{id: h.rounds, generation: c.good.generation, began: c.now}
	c.version++
	c.do(findPlugins{h.rounds, c.good.networks})
	return h.rounds
}

// lands returns the round with this number if it runs, is in the part asking, and is about what is in use. If it is about what was in use before, it is over.
func (c *core) lands(id uint64, asking bool) *round {
	r := c.health.round
	if r == nil || r.id != id || r.asking != asking {
		return nil
	}
	if r.generation != c.good.generation {
		c.health.again = true
		c.endRound()
		return nil
	}
	return r
}

func (c *core) endRound() {
	h := &c.health
	c.do(answered{h.round.id})
	h.round = nil
	c.version++
	if h.again {
		c.check()
	}
}

func (c *core) found(in found) {
	r := c.lands(in.round, false)
	if r == nil {
		return
	}
	h := &c.health
	was := h.missingText
	h.missing, h.missingText, h.paths, h.ipam = in.missing, missingText(in.missing), in.paths, in.ipam
	switch {
	case len(in.missing) > 0:
		h.known = true
		h.err, h.text, h.tries = nil, "", 0 // it could not be asked
		level := c.lines.plugins.Level(c.now, h.missingText)
		if was != h.missingText || level > state.Debug {
			c.emit(level, Event{Kind: EventPluginsMissing, Error: h.missingText, Network: c.good.name()})
		}
		c.endRound()
		return
	case was != "":
		h.known = false // until it has answered
		c.emit(c.lines.plugins.Recovered(), Event{Kind: EventPluginsFound, Network: c.good.name()})
	}
	*r = round{id: r.id, generation: r.generation, began: c.now, asking: true}
	c.version++
	c.do(askPlugins{r.id, c.good.networks})
}

func (c *core) told(in told) {
	r := c.lands(in.round, true)
	if r == nil {
		return
	}
	h := &c.health
	h.asked = c.now
	c.verdict(in.err)
	switch {
	case in.err != nil:
		h.roundAt = c.now.Add(h.delays.Next(c.random, firstDelay, maxDelay))
	case c.cfg.StatusInterval > 0:
		h.roundAt = c.now.Add(c.cfg.StatusInterval)
	}
	if in.err != nil {
		c.statusFailing()
	}
	c.endRound()
}

// verdict takes over what STATUS says.
func (c *core) verdict(err error) {
	h := &c.health
	h.known = true
	if err != nil {
		h.err, h.text = err, scanner.Clean(err.Error(), maxLine)
		h.tries++
		return
	}
	failed := h.err != nil
	h.err, h.text, h.tries = nil, "", 0
	h.delays.Reset()
	level := c.lines.status.Recovered()
	if failed {
		c.emit(level, Event{Kind: EventStatusOK, Network: c.good.name()})
	}
}

func (c *core) statusFailing() {
	h := &c.health
	level := c.lines.status.Level(c.now, h.text)
	if level > state.Debug || h.tries == 1 {
		c.emit(level, Event{Kind: EventStatusFailing, Error: h.text, Network: c.good.name(), NextRetry: h.roundAt})
	}
}

// due is when something is to be done about the plugins. Zero: never.
func (h *health) due(c *core) time.Time {
	switch {
	case h.round == nil && c.retired:
		return time.Time{} // nobody is to be told of plugins that go with their configuration
	case h.round == nil:
		return h.roundAt
	case h.round.late:
		return time.Time{}
	case h.round.asking:
		return h.round.began.Add(c.patience() + slack)
	}
	return h.round.began.Add(c.patience())
}

// patience is how long looking for plugins may take, and asking them.
func (c *core) patience() time.Duration {
	if c.cfg.StatusTimeout < 0 {
		return DefaultStatusTimeout
	}
	return c.cfg.StatusTimeout
}

// overdue begins a round, or notes that the one that runs has had its time. It is waited for all the same, because there is one at a time; what it brings counts.
func (c *core) overdue() {
	h := &c.health
	if h.round == nil {
		c.check()
		return
	}
	h.round.late = true
	what := "looking for the plugins in " + quoted(c.cfg.BinDirs)
	if h.round.asking {
		what = "STATUS of the plugins"
	}
	if h.round.generation != c.good.generation {
		what += " of the configuration before"
	}
	c.verdict(fmt.Errorf("%s has not ended within %v", what, c.patience()))
	c.statusFailing()
}

func missingText(missing []Missing) string {
	texts := make([]string, len(missing))
	for i := range missing {
		texts[i] = missing[i].Error()
	}
	return scanner.Clean(strings.Join(texts, "; "), maxLine)
}
