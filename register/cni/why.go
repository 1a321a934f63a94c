package cni

import (
	"fmt"
	"time"

	gocni "github.com/containerd/go-cni"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// stateNow works the state out: it is nowhere stored, so it cannot contradict the rest.
func (c *core) stateNow() State {
	h := &c.health
	switch {
	case c.good == nil && c.loading():
		return Loading
	case c.good == nil, c.retired, len(h.missing) > 0, h.err != nil:
		return NotReady
	case !h.known:
		return Loading
	case c.conf != nil, c.empty != "":
		return Stale
	}
	return Ready
}

// loading reports whether it is still open what comes of the directory, while nothing is in use.
func (c *core) loading() bool {
	return c.conf == nil && c.empty == "" && c.polls.err == ""
}

// why says why it is not ready, in one line, and the cause. Empty: it is ready.
func (c *core) why() (text string, cause error) {
	h := &c.health
	switch c.stateNow() {
	case Loading:
		return c.waitingFor(), nil
	case Ready, Stale:
		return "", nil
	case NotReady:
	}
	switch {
	case c.good != nil && !c.retired && len(h.missing) > 0:
		return h.missingText, nil
	case c.good != nil && !c.retired:
		return h.text, h.err
	case c.conf != nil:
		return c.unusable(), c.conf
	case c.empty != "":
		return c.empty, gocni.ErrCNINotInitialized
	}
	return c.unknown(), nil
}

// waitingFor says what a state of loading waits for.
func (c *core) waitingFor() string {
	dir := scanner.Quote(c.cfg.ConfDir)
	r := c.health.round
	switch {
	case c.good == nil && c.building == nil:
		return "the first look at " + dir + " has not ended"
	case c.good == nil:
		return "the configuration in " + dir + " is being taken into use"
	case r != nil && !r.asking:
		return "its plugins are being looked for in " + quoted(c.cfg.BinDirs)
	}
	return "its plugins are being asked for their STATUS"
}

// unusable is the text of a configuration that cannot be used.
func (c *core) unusable() string {
	files := "1 file"
	if n := len(c.set.files); n != 1 {
		files = fmt.Sprintf("%d files", n)
	}
	cause := c.conf.Error()
	if c.conf.Path == c.cfg.ConfDir {
		cause = c.conf.Text + "; " + c.conf.Fix
	}
	if c.conf.Kind == KindNoPinned {
		for _, f := range c.set.files {
			if f.Error != nil {
				cause += " (" + f.Error.Error() + ")"
				break
			}
		}
	}
	return scanner.Clean(fmt.Sprintf("the configuration in %s (%s) cannot be used: %s", scanner.Quote(c.cfg.ConfDir), files, cause), maxLine)
}

// unknown is the text of a directory that cannot be listed.
func (c *core) unknown() string {
	return scanner.Clean(fmt.Sprintf("it is not known what is in %s: %s", scanner.Quote(c.cfg.ConfDir), c.polls.err), maxLine)
}

// lastError is the failure that stands, the most important one.
func (c *core) lastError() string {
	text, _ := c.why()
	switch now := c.stateNow(); {
	case now == NotReady:
		return text
	case c.conf != nil:
		return c.unusable()
	case c.empty != "":
		return c.empty
	case c.polls.err != "":
		return c.unknown()
	}
	return ""
}

func (c *core) nextRetry() time.Time {
	if c.health.err != nil && c.health.round == nil && !c.retired {
		return earliest(c.buildAt, c.health.roundAt)
	}
	return c.buildAt
}

// status is what LastStatus returns.
func (c *core) status() error {
	text, cause := c.why()
	if text == "" {
		return nil
	}
	return &NotReadyError{State: c.stateNow(), Text: text, Err: cause}
}

// show returns what there is to see at now. Only what has changed is made anew.
func (c *core) show(now time.Time) View {
	if c.view == nil || c.viewed != c.version {
		c.view, c.viewed = c.draw(), c.version
	}
	v := *c.view
	v.Time, v.LastScan, v.LastGoodScan = now, c.polls.ended, c.polls.good
	if !v.LastGoodScan.IsZero() {
		v.GoodScanAge = now.Sub(v.LastGoodScan).Seconds()
	}
	return v
}

// draw makes the part of a View that changes with an input only.
func (c *core) draw() *View {
	p, h := &c.polls, &c.health
	text, _ := c.why()
	v := &View{
		Version: state.APIVersion, Name: c.cfg.Name,
		ConfDir: c.cfg.ConfDir, ConfDirBase64: scanner.Base64(c.cfg.ConfDir), BinDirs: dirViews(c.cfg.BinDirs),
		State: c.stateNow(), Since: c.since, Ready: text == "",
		Observed: p.last.revision, Pinned: c.cfg.DefaultNetwork != "",
		Networks: []NetworkView{}, Files: []FileView{},
		Error: c.conf, Reloads: c.reloads, LastError: c.lastError(), NextRetry: c.nextRetry(),
		Status:     StatusView{Asked: h.asked, Error: h.text, Tries: h.tries},
		Filesystem: p.filesystem, ScanError: p.err,
	}
	if text != "" {
		v.Reason, v.Message = ReasonNotReady, MessagePrefix+text
	}
	if h.round != nil && h.round.asking {
		v.Status.Running = h.round.began
	}
	if c.set != nil && c.set.files != nil {
		v.Files = c.set.files
	}
	if c.good != nil {
		v.Applied, v.DefaultNetwork, v.LastSuccess = c.good.revision, c.good.name(), c.good.at
		missing := map[string]string{} // by type: of 256 networks there may be thousands
		for i := range h.missing {
			missing[h.missing[i].Type] = h.missing[i].Error()
		}
		for i, n := range c.good.networks {
			v.Networks = append(v.Networks, c.network(i, n, missing))
		}
	}
	for _, i := range p.ignored {
		v.Ignored = append(v.Ignored, state.NewIgnoredView(i))
	}
	return v
}

func (c *core) network(i int, n network, missing map[string]string) NetworkView {
	v := NetworkView{
		Name: n.name, File: n.file, FileBase64: scanner.Base64(n.file), CNIVersion: n.cniVersion,
		Interface: fmt.Sprintf("%s%d", c.cfg.InterfacePrefix, i), Plugins: []PluginView{},
	}
	for i, plugin := range n.plugins {
		path, ipam := c.health.paths[plugin], n.ipam[i]
		v.Plugins = append(v.Plugins, PluginView{
			Type: plugin, Path: path, PathBase64: scanner.Base64(path), Missing: missing[plugin],
			IPAM: scanner.Clean(ipam, maxName), IPAMMissing: c.health.ipam[ipam],
		})
	}
	return v
}
