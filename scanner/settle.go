package scanner

import (
	"io/fs"
	"time"
)

// When an unchanged directory may be skipped. This file is pure: keys and times are data.
//
// A key is what stat tells about a directory. It moves with every change of the directory's names, but only as finely as the filesystem's
// clock ticks: two changes within one tick leave one key. So an equal key alone means nothing (I2). What does mean something:
//
//   - T is our monotonic time right after the stat that first showed the key. The key was stamped no later than T.
//   - A read that started at or after T + settleTime settles the directory. A change before that read is in its listing. A change after it is
//     stamped later than T by more than a tick, so it moves the key.
//   - A settled directory whose key is equal has therefore the names it had when it was read, and need not be read.
//
// No time of ours is compared with a time of the filesystem. What can deceive the rule is a wall clock that is set back onto the very stamp
// of the key just before a change, and a mount over a name in the directory, which moves no stamp; FullEvery bounds that, and whatever else nobody
// thought of.

const (
	// fineSettleTime holds where stamps have parts of a second: the coarsest tick seen there is 10 ms, 4 ms on most kernels.
	fineSettleTime = 50 * time.Millisecond
	// coarseSettleTime holds where they have none: 1 s on ext4 with small inodes, 2 s on FAT.
	coarseSettleTime = 2100 * time.Millisecond
	// FullEvery is how long a directory goes without being read at most, whatever its key says. The reads of a large tree are spread over it, so that
	// no single scan has to do them all.
	FullEvery = 10 * time.Second
)

// key is what stat tells about a directory. Two are compared with ==.
type key struct {
	Stamp
	size  int64
	links uint64
}

func keyOf(info fs.FileInfo) key {
	return key{Stamp: stampOf(info), size: info.Size(), links: osLinks(info.Sys())}
}

// tells reports whether the key moves with every change: without an inode another directory may be in this one's place, and without a change
// time anybody may set the stamps back.
func (k key) tells() bool { return k.Inode != 0 && k.ChangeTime != 0 }

func (k key) settleTime() time.Duration {
	if k.ChangeTime%int64(time.Second) != 0 {
		return fineSettleTime
	}
	return coarseSettleTime
}

// settling is how far a directory is on its way to be skipped. The zero value: never looked at.
type settling struct {
	key     key
	first   time.Time // right after the stat that first showed the key
	settled bool
}

// seen takes the key that a stat showed which ended before now.
func (s *settling) seen(k key, now time.Time) {
	if s.first.IsZero() || k != s.key {
		*s = settling{key: k, first: now}
	}
}

// read takes a read of the directory that started at began, after the stat of the last seen. whole says that its listing was complete, that it
// leaves nothing in doubt, and that the filesystem's keys can be trusted. after is the key's settleTime; tests show what happens with less.
func (s *settling) read(began time.Time, whole bool, after time.Duration) {
	s.settled = whole && s.key.tells() && !began.Before(s.first.Add(after))
}

// fullReadAt spreads the full reads of the directories of a tree; i is the number of one in it, and 0 the root. A directory that is read for no other reason
// than that it is due is due again after FullEvery, so that they stay spread.
func fullReadAt(read time.Time, i int) time.Time {
	const steps = 1000
	// Multiples of the golden ratio, without their whole part, are spread evenly, however many there are.
	spread := i * 618 % steps
	return read.Add(FullEvery - FullEvery*time.Duration(spread)/steps)
}
