package cni

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/plugpoll/plugpoll/scanner"
)

// Revision tells one content of a directory from another (CN2): a digest over the names and the bytes, or the problems, of the files that count.
// Empty: nothing was read yet. An empty directory has a revision as well.
type Revision string

// revisionBytes is how much of the digest is kept. Two revisions are compared to see whether something changed, and who writes the files may look for two that are alike.
const revisionBytes = 16

// revise takes files in the order of their relative names.
func revise(files []*conf) Revision {
	h := sha256.New()
	write := func(s string) {
		// With its length in front: no two lists of texts are written alike.
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, f := range files {
		write(f.rel)
		write(string(f.problem))
		if f.problem == "" {
			write(f.content)
		}
	}
	return Revision(hex.EncodeToString(h.Sum(nil)[:revisionBytes]))
}

// fileOf is what the scanner read: an entry without it is one that it could not.
func fileOf(e scanner.Entry) scanner.File {
	if e.File == nil {
		return scanner.File{Problem: scanner.ProblemUnreadable, Detail: "it was not read"}
	}
	return *e.File
}
