package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/plugpoll/plugpoll/state"
)

// cause is why something is as it is. The texts are part of the JSON interface and the headings of docs/troubleshooting.md.
type cause string

// The causes.
const (
	isRegistered cause = "registered"
	isObserved   cause = "observed"
	isStandby    cause = "standby"
	isWaiting    cause = "waiting"

	deadSocket    cause = "dead-socket"
	otherSide     cause = "other-side-of-a-mount"
	isHung        cause = "hung"
	pluginStopped cause = "plugin-stopped"
	isUnreachable cause = "unreachable"
	notPlugin     cause = "not-a-plugin"
	hangsUp       cause = "hangs-up"
	answerError   cause = "plugin-error"
	badAnswer     cause = "bad-answer"
	wrongType     cause = "wrong-type"
	badName       cause = "bad-name"
	badVersion    cause = "version-not-supported"
	nameTaken     cause = "name-taken"
	byHandler     cause = "rejected-by-handler"
	handlerHangs  cause = "handler-hangs"
	handlerDown   cause = "handler-down"
	notTold       cause = "not-acknowledged"
	noDescriptors cause = "daemon-out-of-descriptors"
	pathTooLong   cause = "path-too-long"
	noPermission  cause = "permission"
	notAllowed    cause = "user-not-allowed"
	isStale       cause = "stale"
	isLeaving     cause = "leaving"
	otherFailure  cause = "failing"

	noSuchSocket   cause = "no-such-socket"
	wrongDirectory cause = "wrong-directory"
	dotName        cause = "dot-name"
	notSocket      cause = "not-a-socket"
	tooDeep        cause = "too-deep"
	unreadable     cause = "unreadable"
	rootUnreadable cause = "directory-unreadable"
	notSeen        cause = "not-seen"

	cniReady      cause = "cni-ready"
	cniLoading    cause = "cni-loading"
	cniStale      cause = "cni-stale"
	cniEmpty      cause = "cni-no-configuration"
	cniBroken     cause = "cni-broken-file"
	cniNotUsed    cause = "cni-not-used"
	cniDuplicate  cause = "cni-duplicate"
	cniNoPinned   cause = "cni-no-such-network"
	cniMissing    cause = "cni-plugin-missing"
	cniNoIPAM     cause = "cni-ipam-plugin-missing"
	cniStatus     cause = "cni-status-failing"
	cniUnreadable cause = "cni-directory-unreadable"
	cniNoFile     cause = "cni-no-such-file"
	cniIgnored    cause = "cni-ignored-file"
	cniUnknown    cause = "cni-unknown-name"
	cniFailing    cause = "cni-failing"
)

// fine are the causes that nobody needs to do anything about.
var fine = []cause{isRegistered, isObserved, isStandby, cniReady}

// signs tell a cause by the error of the last try. They are of register and its handlers; a test makes each happen.
var signs = []struct {
	cause cause
	sign  *regexp.Regexp
}{
	{noDescriptors, regexp.MustCompile(`^(dial|GetInfo): .*(too many open files|cannot allocate memory|no buffer space)`)},
	{wrongType, regexp.MustCompile(`^no handler for plugin type`)},
	{nameTaken, regexp.MustCompile(`^the name .* is held by`)},
	{byHandler, regexp.MustCompile(`^register: `)},
	{badVersion, regexp.MustCompile(`^validate: .*\bversions?\b`)},
	{badName, regexp.MustCompile(`^validate: .*\bname\b`)},
	{byHandler, regexp.MustCompile(`^validate: `)},
	{pathTooLong, regexp.MustCompile(`^dial: .*path too long`)},
	{notAllowed, regexp.MustCompile(`^dial: .*(not allowed|AllowedUIDs)`)},
	{noPermission, regexp.MustCompile(`^dial: .*(permission denied|[Aa]ccess is denied)`)},
	{isHung, regexp.MustCompile(`^dial: (.*backlog|no connection within)|^GetInfo: no answer within`)},
	{deadSocket, regexp.MustCompile(`^dial: .*refused`)},
	{badAnswer, regexp.MustCompile(`^GetInfo: (the answer |endpoint |supported_versions |type |name |.* (has \d+ bytes|is not valid UTF-8|holds a control))`)},
	{hangsUp, regexp.MustCompile(`^GetInfo: (the plugin closed|the connection (has )?ended|.*closed the connection|.*connection reset|.*broken pipe|.*EOF)`)},
	{answerError, regexp.MustCompile(`^GetInfo: `)},
}

// causeOf tells why a socket is as it is, as far as the daemon knows.
func causeOf(s state.SocketView) cause {
	switch {
	case s.Call != nil && s.Call.Parked:
		return handlerHangs
	case s.Stale != nil:
		return isStale
	}
	switch s.Phase {
	case state.Registered:
		switch {
		case s.Acknowledged == state.AckNo:
			return notTold
		case s.Report != nil && s.Report.Health == state.HealthDown:
			return handlerDown
		}
		return isRegistered
	case state.Observed:
		return isObserved
	case state.Standby:
		return isStandby
	case state.NotPlugin:
		return notPlugin
	case state.Deregistering:
		return isLeaving
	case state.Unreachable:
		switch sign(s.LastError) {
		case deadSocket:
			return pluginStopped
		case noDescriptors:
			return noDescriptors
		}
		return isUnreachable
	case state.Backoff, state.Rejected:
		return sign(s.LastError)
	case state.Registering:
		if s.Tries > 0 { // what failed may fail again
			return sign(s.LastError)
		}
	}
	return isWaiting
}

func sign(text string) cause {
	for _, s := range signs {
		if s.sign.MatchString(text) {
			return s.cause
		}
	}
	return otherFailure
}

// remote are filesystems behind which another system, or another view of the same files, can bind sockets that cannot be connected to from here
// (docs/filesystems.md).
func remote(filesystem string) bool {
	return strings.HasPrefix(filesystem, "fuse") || slices.Contains([]string{"nfs", "nfs4", "9p", "cifs", "smb2", "smb3", "virtiofs", "ceph", "overlay", "vboxsf", "prl_fs"}, filesystem)
}
