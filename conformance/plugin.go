package conformance

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/spf13/afero"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

// DefaultPatience is how long a plugin may take for one answer. A registrar waits as long.
const DefaultPatience = 10 * time.Second

// PluginSubject is a plugin that serves a registration socket.
type PluginSubject struct {
	// Socket is the path of its registration socket.
	Socket string
	// FS is the filesystem of the socket. nil: the operating system's.
	FS afero.Fs
	// Dial connects to a socket of FS. nil: the operating system's unix sockets; required if FS is another one.
	Dial func(ctx context.Context, path string) (net.Conn, error)
	// Types are plugin types that its registrar takes beside those that Kubernetes knows (CSIPlugin, DevicePlugin, DRAPlugin).
	Types []string
	// Notifies says that the plugin may be told that it is registered. Many do something then, or begin to count on it. False: those rules are skipped.
	Notifies bool
	// Rejects says that the plugin may be told that it is not registered, and is expected to go on. Some exit on such news, so that whatever started them does it
	// again. False: that rule is skipped.
	Rejects bool
	// Remakes says that the plugin makes its socket anew when it is removed, as after a restart of a registrar that clears its directory. The suite then removes it.
	// False: that rule is skipped.
	Remakes bool
	// Patience bounds each dial, each answer, and the wait for a socket that is to be made anew. 0: DefaultPatience.
	Patience time.Duration
	// Lacks are the ids of rules that the plugin is known not to keep: they are skipped.
	Lacks []string
}

// Plugin returns the rules for a plugin. They only ask it what it is, but for those that Notifies, Rejects and Remakes allow.
func Plugin(s PluginSubject) []Rule {
	if s.FS == nil {
		s.FS = afero.NewOsFs()
	}
	if s.Dial == nil {
		s.Dial = func(ctx context.Context, path string) (net.Conn, error) {
			if _, err := os.Lstat(path); err != nil { // the dialer speaks to those who have seen it there
				return nil, errors.Unwrap(err)
			}
			return register.DialUnix(ctx, scanner.Entry{Path: path, Maybe: true})
		}
	}
	s.Patience = cmp.Or(s.Patience, DefaultPatience)
	p := plugin{s}
	rules := append(p.answers(), p.connections()...)
	rules = append(rules, p.notices()...)
	for i, r := range rules {
		rules[i].needs = needs[r.ID]
	}
	return without(rules, s.Lacks)
}

// needs are the rules without which another tells nothing.
var needs = map[string][]string{
	"P2": {"P1"}, "R16": {"P2"}, "P3": {"P2"}, "P4": {"P2"}, "P5": {"P2", "P4"}, "P6": {"P2", "P4"}, "X5": {"P2"}, "P7": {"P2", "X5"},
	"P8": {"P2"}, "P9": {"P2"}, "P10": {"P2", "P9"}, "P11": {"P2", "P9"}, "P12": {"P2", "P9"}, "R3": {"P2", "P9", "P12"},
}

// plugin is what the rules are checked on.
type plugin struct{ PluginSubject }

// answers are the rules about what a plugin says of itself.
func (p plugin) answers() []Rule {
	return []Rule{{
		ID: "P1", Sentence: "The socket takes a connection.",
		Fix:   "Start the plugin, and have it bind, listen and accept at this path; remove a socket that an earlier run has left behind before binding.",
		check: p.accepts,
	}, {
		ID: "P2", Sentence: "It answers GetInfo of the service pluginregistration.Registration.",
		Fix:   "Register the service on the gRPC server of this socket (registerapi.RegisterRegistrationServer) and answer GetInfo at once, without waiting for others.",
		check: p.answersInfo,
	}, {
		ID: "R16", Sentence: "Its answer is bounded: name and type 253 bytes, endpoint 4096, 64 versions of 256; valid UTF-8 without control characters.",
		Fix: "Shorten what is too long, and take control characters out.", check: p.bounded,
	}, {
		ID: "P3", Sentence: "It says the same of itself each time it is asked.",
		Fix: "Fix type, name, endpoint and versions when the plugin starts; to change them, start anew with a new socket.", check: p.stable,
	}, {
		ID: "P4", Sentence: "Its type is one that the registrar knows: CSIPlugin, DevicePlugin, DRAPlugin, or one that was named.",
		Fix: "Announce one of these types, letter by letter.", check: p.typeKnown,
	}, {
		ID: "P5", Sentence: "Its name fits its type.",
		Fix: "Give the plugin a name as the text above says.", check: p.nameFits,
	}, {
		ID: "P6", Sentence: "Its versions fit its type.",
		Fix:   "Announce a CSI version 1.x, the device plugin API v1beta1, or a DRA service by its name, as supported_versions.",
		check: p.versionsFit,
	}, {
		ID: "X5", Sentence: "Its endpoint is empty, or the absolute path of a unix socket.",
		Fix: "Announce the path of the plugin's own socket as the registrar sees it: /path, unix:/path or unix:///path.", check: p.endpointFits,
	}, {
		ID: "P7", Sentence: "Its endpoint takes a connection.",
		Fix: "Serve the plugin's own API before the registration socket is made, and announce the path where it is on the host, not in the plugin's container.",

		check: p.endpointAccepts,
	}}
}

// connections are the rules about several connections.
func (p plugin) connections() []Rule {
	return []Rule{{
		ID: "P8", Sentence: "It answers over several connections at once.",
		Fix: "Serve each connection for itself: a registrar may ask anew before the old connection is gone.", check: p.several,
	}, {
		ID: "P9", Sentence: "It answers on after a connection was closed, even in the middle of a message.",
		Fix: "Do not end the server, nor remove the socket, when a client goes.", check: p.survivesClose,
	}}
}

// notices are the rules that do more than ask. A rejection comes last, since a plugin may end of it.
func (p plugin) notices() []Rule {
	rules := []Rule{{
		ID: "P10", Sentence: "It can be told that it is registered, again and again.",
		Fix:   "Answer each NotifyRegistrationStatus without an error; that it is registered already is no reason to fail or to exit.",
		check: p.told,
	}, {
		ID: "P11", Sentence: "When the registrar was restarted, it can be asked and told again.",
		Fix:   "Keep the registration service up after the plugin was registered.",
		check: p.askedAgain,
	}, {
		ID: "P12", Sentence: "It makes its socket anew when that was removed.",
		Fix:   "Look at the socket's path now and then, and bind anew when it is gone.",
		check: p.remakes,
	}, {
		ID: "R3", Sentence: "When it is told that it is not registered, and why, it stays there to be asked again.",
		Fix: "Log the reason and go on serving: the registrar tries again by itself.", check: p.survivesRejection,
	}}
	for i, r := range rules {
		switch {
		case !p.Notifies && (r.ID == "P10" || r.ID == "P11"):
			rules[i].Skip = "the plugin may not be told that it is registered (Notifies)"
		case !p.Remakes && r.ID == "P12":
			rules[i].Skip = "the plugin's socket may not be removed (Remakes)"
		case !p.Rejects && r.ID == "R3":
			rules[i].Skip = "the plugin may not be told that it is not registered (Rejects)"
		}
	}
	return rules
}

// fitting are a name and versions that fit a type, so that each can be looked at without the other.
var fitting = map[string]struct {
	name    string
	version string
}{
	registerapi.CSIPlugin:    {"a.example.com", "1.0.0"},
	registerapi.DevicePlugin: {"example.com/a", "v1beta1"},
	registerapi.DRAPlugin:    {"a.example.com", "v1.DRAPlugin"},
}
