package cni

import (
	"fmt"
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// The kinds of ConfError that no single file is to blame for.
const (
	KindTooFew  Kind = "too few networks"
	KindNoBuild Kind = "refused by go-cni"
)

// decide makes the set that the polls have settled on the one that counts.
func (c *core) decide(seen picture) {
	c.polls.decided, c.set = seen, c.polls.seen
	c.wanted, c.buildAt = nil, time.Time{}
	c.buildDelays.Reset()
	switch {
	case c.set.err != nil:
		c.reject(c.set.err)
	case len(c.set.networks) == 0:
		c.emptied(seen.absent)
	case len(c.set.networks) < c.cfg.MinNetworks:
		c.reject(&ConfError{
			Path: c.cfg.ConfDir, PathBase64: scanner.Base64(c.cfg.ConfDir), Kind: KindTooFew,
			Text: fmt.Sprintf("%d of its files make a network, and %d must", len(c.set.networks), c.cfg.MinNetworks),
			Fix:  "add files, or ask for fewer networks",
		})
	default:
		empty := c.empty != ""
		c.emptySince, c.empty = time.Time{}, ""
		c.adopt(empty)
	}
}

// reject notes why what is there cannot be used. The last good set stays in use (CN7).
func (c *core) reject(err *ConfError) {
	c.emptySince, c.empty, c.conf = time.Time{}, "", err
	c.emit(c.lines.conf.Level(c.now, err.Error()), Event{Kind: EventRejected, Revision: c.set.revision, Error: scanner.Clean(err.Error(), maxLine), Conf: err, NextRetry: c.buildAt})
}

// emptied notes that there is nothing. What is in use stays so for the grace, and as the instance that removes pods for ever (CN8).
func (c *core) emptied(absent string) {
	c.conf, c.empty = nil, absent
	if absent == "" {
		c.empty = c.nothingIn()
	}
	if c.emptySince.IsZero() {
		c.emptySince = c.now
	}
	c.retire()
	level := c.lines.empty.Level(c.now, c.empty)
	switch {
	case c.good == nil && c.polls.err != "":
		level = state.Debug // it was said that the directory cannot be read
	case c.good == nil:
		// A node that waits for its network to be installed is no reason to wake anybody.
		level = min(level, state.Notice)
	}
	c.emit(level, Event{Kind: EventEmpty, Error: c.empty, Network: c.good.name()})
}

// nothingIn says of a directory without configuration what is in it.
func (c *core) nothingIn() string {
	others := 0
	for _, i := range c.polls.ignored {
		if i.Dir == c.cfg.ConfDir {
			others += i.Count
		}
	}
	text := "there is no network configuration in " + scanner.Quote(c.cfg.ConfDir)
	switch others {
	case 0:
		return text
	case 1:
		return text + ": the name of the one thing in it does not end in .conf, .conflist or .json, or begins with a dot"
	}
	return text + fmt.Sprintf(": the names of the %d things in it do not end in .conf, .conflist or .json, or begin with a dot", others)
}

// adopt takes the set into use. Networks that are the ones in use need no new instance. empty says that there was nothing before.
func (c *core) adopt(empty bool) {
	if c.good == nil || !slices.EqualFunc(c.good.networks, c.set.networks, sameNetwork) {
		c.wanted = c.set
		c.startBuild()
		return
	}
	wrong := c.conf != nil || empty
	c.good.revision, c.good.networks = c.set.revision, c.set.networks
	c.accepted()
	switch {
	case c.retired:
		c.retired, c.health.known = false, false
		c.check()
	case !wrong:
		c.emit(state.Debug, Event{Kind: EventUnaffected, Revision: c.set.revision, Network: c.good.name(), Networks: len(c.good.networks)})
		return
	}
	c.emit(c.repairedLevel(), Event{Kind: EventRepaired, Revision: c.set.revision, Network: c.good.name(), Networks: len(c.good.networks)})
}

// accepted notes that what is there can be used.
func (c *core) accepted() {
	c.conf = nil
	c.version++
}

func (c *core) repairedLevel() state.Level {
	return max(c.lines.conf.Recovered(), c.lines.empty.Recovered())
}

func sameNetwork(a, b network) bool {
	return a.name == b.name && a.file == b.file && string(a.list.Bytes) == string(b.list.Bytes)
}

// startBuild has an instance made of what is wanted. While one is being made the next one waits: what makes it is partly an embedder's code, and may hang (CN6).
func (c *core) startBuild() {
	switch {
	case c.wanted == nil:
		return
	case c.building != nil:
		c.hungBuild()
		return
	}
	c.buildID++
	c.building, c.buildBy = c.wanted, c.now.Add(buildLimit)
	c.do(build{c.buildID, c.building.networks})
}

// hungBuild notes that what is wanted waits for an instance that has had its time, if that is so. What comes of it in the end counts.
func (c *core) hungBuild() {
	if c.wanted == nil || c.building == nil || !c.buildBy.IsZero() {
		return
	}
	c.noInstance(fmt.Sprintf("making the instance has not ended within %v", buildLimit))
}

func (c *core) noInstance(text string) {
	c.reject(&ConfError{
		Path: c.cfg.ConfDir, PathBase64: scanner.Base64(c.cfg.ConfDir), Kind: KindNoBuild,
		Text: text, Fix: "see what the options given to go-cni want",
	})
}

func (c *core) built(in built) {
	if in.id != c.buildID || c.building == nil {
		return
	}
	set := c.building
	c.building, c.buildBy = nil, time.Time{}
	c.version++
	switch {
	case c.wanted != set: // the files have changed since
		c.startBuild()
	case in.err != nil:
		c.buildAt = c.now.Add(c.buildDelays.Next(c.random, firstDelay, maxDelay))
		c.noInstance(scanner.Clean(in.err.Error(), maxLine))
	default:
		c.wanted = nil
		c.use(set, in)
	}
}

// use makes an instance the one in use (CN6).
func (c *core) use(s *set, in built) {
	former := c.good.name()
	c.do(use{in.instance})
	c.reloads++
	c.good = &applied{revision: s.revision, networks: s.networks, at: c.now, generation: in.id}
	c.accepted()
	c.repairedLevel()
	if c.retired {
		// Nothing that was known of its plugins is known any more.
		c.retired, c.health.known = false, false
	}
	c.emit(state.Notice, Event{Kind: EventApplied, Revision: s.revision, Network: c.good.name(), Networks: len(s.networks)})
	if former != "" && former != c.good.name() {
		c.emit(state.Warn, Event{Kind: EventDefaultChanged, Revision: s.revision, Network: c.good.name(), Former: former, Networks: len(s.networks)})
	}
	c.check()
}

// retire notes that the grace is over, if it is.
func (c *core) retire() {
	if at := c.retireAt(); !at.IsZero() && !at.After(c.now) {
		c.retired = true
		c.version++
	}
}

// retireAt is when what is in use is no reason any more to be ready. Zero: never.
func (c *core) retireAt() time.Time {
	if c.good == nil || c.retired || c.emptySince.IsZero() || c.cfg.Grace < 0 {
		return time.Time{}
	}
	return c.emptySince.Add(c.cfg.Grace)
}
