package register

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// This file is about Config.AllowedUIDs (X1).

var errPeerUnknown = errors.New("the system does not tell which user listens there, and AllowedUIDs is set")

// allowedOwner checks the owner of a socket.
func allowedOwner(uid int, uids []int) error {
	if len(uids) == 0 || slices.Contains(uids, uid) {
		return nil
	}
	return Permanent(fmt.Errorf("the socket belongs to uid %d, which is not allowed: have an allowed user make it, or allow uid %d", uid, uid))
}

// allowedPeer checks who listens. Nothing was sent to them yet.
func allowedPeer(peer *state.Peer, uids []int) error {
	switch {
	case len(uids) == 0 || peer != nil && slices.Contains(uids, peer.UID):
		return nil
	case peer == nil:
		return Permanent(errPeerUnknown)
	}
	return Permanent(fmt.Errorf("uid %d listens there, which is not allowed: run the plugin as an allowed user, or allow uid %d", peer.UID, peer.UID))
}

// allowedLink checks the owner of path itself, if that is a link: who may put a link there must not have another's socket asked and registered.
func allowedLink(path string, uids []int) error {
	if len(uids) == 0 {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return errors.Unwrap(err) // the path is named already
	}
	if uid, ok := ownerOf(info); ok && info.Mode()&fs.ModeSymlink != 0 && !slices.Contains(uids, uid) {
		return Permanent(fmt.Errorf("it is a link that belongs to uid %d, which is not allowed: have an allowed user make it, or allow uid %d", uid, uid))
	}
	return nil
}

// checkOwner checks the owner of what is at path now.
func checkOwner(path string, uids []int) error {
	if len(uids) == 0 {
		return nil
	}
	if err := allowedLink(path, uids); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return errors.Unwrap(err) // the path is named already
	}
	uid, ok := ownerOf(info)
	if !ok {
		return Permanent(errors.New("the system does not tell which user the socket belongs to, and AllowedUIDs is set"))
	}
	return allowedOwner(uid, uids)
}

// ownersOnly has a Dialer asked only for sockets of these owners, as far as they are in the operating system's filesystem.
func ownersOnly(dial Dialer, uids []int, roots []scanner.Config) Dialer {
	return func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
		if onOS(roots, e.Path) {
			if err := checkOwner(e.Path, uids); err != nil {
				return nil, err
			}
		}
		return dial(ctx, e)
	}
}

// onOS reports whether a path that was found in one of the roots may be one of the operating system's.
func onOS(roots []scanner.Config, path string) bool {
	elsewhere := false
	for _, r := range roots {
		switch inside := scanner.Nested(filepath.Clean(r.Root), filepath.Clean(path), runtime.GOOS); {
		case inside && isOS(r.FS):
			return true
		case inside:
			elsewhere = true
		}
	}
	return !elsewhere
}
