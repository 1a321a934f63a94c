package scanner

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/afero"
)

// rootState is what a Snapshot knows about its root beside the entries (U5).
type rootState struct {
	device uint64 // of the root that was last believed in; zero: not known
	doubt  doubt
}

// doubt is why the root may not be the one that was known, and since when. The zero value: no doubt.
type doubt struct {
	picture absence
	device  uint64 // that of the filesystem in its place
	since   time.Time
}

type absence int

const (
	rootMissing absence = iota + 1
	rootNotDirectory
	rootOtherDevice
)

// judgeRoot decides what a look at the root means for the entries known below it (U5). err is what speaks against it, nil if nothing does; gone
// says that the root that was known is believed to be gone, though err may tell of it.
//
// An error that does not tell what is there, as EIO, is no picture: it ends a doubt, and so the grace starts anew.
func judgeRoot(last rootState, device uint64, err error, known bool, grace time.Duration, now time.Time) (next rootState, because error, gone bool) {
	next = rootState{device: last.device}
	d := doubt{since: now}
	switch {
	case errors.Is(err, errNotDirectory):
		d.picture = rootNotDirectory
	case leadsNowhere(err):
		d.picture = rootMissing
	case err != nil:
		return next, err, false
	case !known || last.device == 0 || device == 0 || device == last.device:
		next.device = device
		return next, nil, false
	default:
		d.picture, d.device, err = rootOtherDevice, device, errOtherFilesystem
	}
	if !known {
		return next, err, false
	}
	if d.picture == last.doubt.picture && d.device == last.doubt.device {
		d.since = last.doubt.since
	}
	if grace < 0 || now.Sub(d.since) < grace {
		next.doubt = d
		return next, err, false
	}
	next.device = d.device
	if d.picture == rootOtherDevice {
		err = nil
	}
	return next, err, true
}

// believe ends a doubt about the filesystem in the root's place after it was read. If everything that was known is there, as after a mount that
// came back under another device number, nothing is in doubt any more.
func (w *scan) believe(root directory) {
	if root.trouble == nil {
		return
	}
	if !slices.ContainsFunc(w.entries, func(e Entry) bool { return e.Stale != nil }) {
		w.rootNow = rootState{device: root.settling.key.Device}
		return
	}
	w.faults.errs = slices.Insert(w.faults.errs, 0, root.trouble)
}

// findRoot makes the root if that is wanted, and says whether it can be read. Only a start makes a root: once it has been seen, one that is
// missing was removed by somebody, and is waited for (D8).
func (s *Scanner) findRoot(c *caller) (fs.FileInfo, error) {
	info, err := c.stat(s.root)
	if errors.Is(err, fs.ErrNotExist) && s.cfg.MissingRoot == CreateRoot && !s.rootSeen {
		if err := s.makeRoot(c); err != nil {
			return nil, &Error{Op: "create", Path: s.cfg.Root, Err: err}
		}
		s.cfg.Logger.Info("the directory did not exist and was made", "path", Quote(s.cfg.Root))
		info, err = c.stat(s.root)
	}
	if err != nil {
		return nil, &Error{Op: "stat", Path: s.cfg.Root, Err: err}
	}
	if !listable(s.goos, info.Mode()) {
		return nil, &Error{Op: "list", Path: s.cfg.Root, Err: errNotDirectory}
	}
	s.rootSeen = true
	return info, nil
}

func (s *Scanner) makeRoot(c *caller) (err error) {
	c.enter("create", s.root)
	switch s.cfg.FS.(type) {
	case *afero.OsFs, afero.OsFs:
		err = mkdirAll(s.root)
	default:
		err = s.cfg.FS.MkdirAll(s.root, 0o755)
	}
	c.leave()
	return err
}
