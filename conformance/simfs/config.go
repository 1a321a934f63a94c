package simfs

import (
	"hash/fnv"
	"time"
)

// Config says how the simulated filesystem behaves. The zero value is a Linux-like filesystem with nanosecond stamps,
// inode numbers that are never used twice, and listings in the order of creation.
type Config struct {
	// Now is the clock that stamps files. Nil: time.Now, which is the bubble's clock inside testing/synctest.
	// It is called with the filesystem locked and must not use it.
	Now func() time.Time

	// Granularity is the unit of stamps: each is cut down to a multiple of it, those of Chtimes too. Zero or negative:
	// a nanosecond. Seen on real systems: 4 ms (kernel ticks), 1 s (ext4 with small inodes), 2 s (FAT).
	Granularity time.Duration

	// Shuffle, when not zero, orders each listing by a hash of this seed and the name, as ext4 orders by hash: it looks
	// random, and the same names under the same seed come in the same order. Zero: the order of creation.
	Shuffle uint64

	// ReuseInodes gives the number of the inode freed last to the next one created on the same device, as ext4 does.
	// False: a number is never used twice.
	ReuseInodes bool

	// Stable is what FS.Stable answers. It changes nothing else: with a coarse Granularity a directory may change
	// without its stamps showing it, as on a real filesystem.
	Stable bool

	// Detail is how much FileInfo.Sys tells. Zero: FullDetail.
	Detail Detail

	// Entries is what opened directories offer to list them. Zero: TypedEntries.
	Entries Entries
}

// Detail is how much FileInfo.Sys tells.
type Detail int

const (
	// FullDetail is a Sys with the methods Identity() (device, inode uint64, changeTime time.Time) and Owner() (uid, gid int).
	FullDetail Detail = iota
	// NoChangeTime is FullDetail, but the changeTime of Identity is the zero time.
	NoChangeTime
	// NoDetail is a nil Sys, so that neither inode nor change time is known, as with afero.MemMapFs.
	NoDetail
)

// Entries is what opened directories offer to list them.
type Entries int

const (
	// TypedEntries is opened files that implement fs.ReadDirFile, and each entry knows its type.
	TypedEntries Entries = iota
	// UntypedEntries is TypedEntries, but the type of each entry is fs.ModeIrregular: only Info or Lstat tells it.
	UntypedEntries
	// NoEntries is opened files that do not implement fs.ReadDirFile, so only Readdir and Readdirnames are there.
	NoEntries
)

func (c Config) now() time.Time {
	now := c.Now
	if now == nil {
		now = time.Now
	}
	return c.cut(now())
}

func (c Config) cut(t time.Time) time.Time {
	if c.Granularity <= 0 {
		return t.Round(0)
	}
	return t.Truncate(c.Granularity)
}

// rank is the key by which a listing is sorted.
func (c Config) rank(e entry, name string) uint64 {
	if c.Shuffle == 0 {
		return e.seq
	}
	h := fnv.New64a()
	var seed [8]byte
	for i := range seed {
		seed[i] = byte(c.Shuffle >> (8 * i))
	}
	_, _ = h.Write(seed[:])
	_, _ = h.Write([]byte(name))
	// FNV barely mixes the last bytes, and names mostly differ there.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
