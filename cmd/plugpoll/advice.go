package main

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/state"
)

// advice says for each cause what to do, to the person who can.
var advice = map[cause]func(told) string{
	isRegistered: func(told) string { return "Nothing is to be done." },
	isObserved: func(told) string {
		return "The daemon runs with --observe, so it registers nothing; without --observe it would register this plugin. Nothing is to be done."
	},
	isStandby: func(t told) string {
		return "It takes over by itself when that one goes. If this one should be registered instead, stop the plugin that serves " +
			name(rawPath(t.s.Holder, t.s.HolderBase64)) + "."
	},
	isWaiting: func(told) string { return "That takes a moment: ask again in a second." },
	isLeaving: func(told) string { return "Nothing is to be done." },
	deadSocket: func(t told) string {
		return "No process listens on it: its plugin has ended and left the file, or has not come to listen yet. Start the plugin (again); what it makes is found by itself. " +
			"If it is not wanted any more, remove the file: " + command("rm", t.path) + "."
	},
	otherSide: func(t told) string {
		text := "Its directory is on " + cmp.Or(t.facts.filesystem, "a mount") + ". A socket can be connected to only through the mount it was made through, by the same kernel: "
		switch {
		case filepath.IsAbs(t.facts.listener):
			text += "a process here listens at " + name(t.facts.listener) + ", which may be the same socket seen through another mount. "
		case t.facts.listener != "":
			text += "a process here listens at a socket of this name, which may be the same one seen through another mount. "
		default:
			text += "no process on this machine listens on it, so it was made on the other side (by another machine, virtual machine or sandbox), or its process has ended. "
		}
		return text + "Run the plugin and plugpoll on one side and have both use the same mount; if the plugin has just ended, start it again."
	},
	isHung: func(t told) string {
		return "A process listens but does not answer: it hangs, is stopped (SIGSTOP, a debugger), or the machine is overloaded. Find it (" + command("ss -xlp | grep -F --", filepath.Base(t.path)) +
			"), see its log, and restart it. A plugin that is only slow needs a longer --info-timeout of plugpoll run."
	},
	pluginStopped: func(t told) string {
		return "Its process has ended without removing its socket. Start the plugin again: it is then registered anew by itself. If it does not come back it is deregistered " +
			spell(register.DefaultLivenessGrace) + " after it fell silent, unless --liveness-grace says otherwise; remove what is left: " + command("rm", t.path) + "."
	},
	isUnreachable: func(told) string {
		return "Its connection ended and a new one brings no answer: it hangs or is overloaded. See the plugin's log and restart it. It is deregistered after --liveness-grace (" +
			spell(register.DefaultLivenessGrace) + " by default) if it stays so."
	},
	notPlugin: func(t told) string {
		return "Something listens there that does not speak the registration protocol: most likely the plugin's own API (CSI, device plugin). Its registration socket is another one: " +
			"for CSI that of the node-driver-registrar container, which must run beside the driver. Move other sockets out of " + name(rawPath(t.s.Root, t.s.RootBase64)) + "."
	},
	hangsUp: func(told) string {
		return "It accepts connections and closes them without an answer: it crashes when it is asked, or another program with a protocol of its own listens there. See the log of the plugin; what serves its own API belongs into another directory."
	},
	answerError: func(told) string {
		return "The plugin itself answers with this error, so its log says more. It is asked again by itself; nothing is wrong with the socket."
	},
	badAnswer: func(told) string {
		return "What the plugin says of itself cannot be used, so its author or its configuration has to change that; it is asked again once its socket is made anew (restart the plugin)."
	},
	wrongType: func(t told) string {
		return "The daemon has handlers for " + list(t.view.Types) + ". If the type is misspelt, correct the plugin and restart it; a plugin of another type needs a program that embeds plugpoll with a handler for it."
	},
	badName: func(t told) string {
		return "The name breaks the rule for " + name(pluginType(t.s)) + ", which the error states. Change the plugin's name (for CSI the driver's --drivername or its manifest) and restart it."
	},
	badVersion: func(t told) string {
		return "The versions do not fit the rule for " + name(pluginType(t.s)) + ", which the error states. Use a release of the plugin, or of its registrar, that announces such a version."
	},
	nameTaken: func(t told) string {
		return "A plugin of another user holds the name, and only the same user or root may take it over. If this one is the right one, stop the holder; else find out who runs this socket (" +
			command("ls -l", t.path) + ")."
	},
	byHandler: func(told) string {
		return "The handler for this type turned the plugin down for the reason it gives: mend that; it is tried again by itself, and at once when the plugin is restarted or the daemon gets SIGHUP."
	},
	handlerHangs: func(told) string {
		return "Only this socket and its name are held up. The handler is part of the program that embeds plugpoll: see its log, and what it waits for (a mount, an API server). The call ends at its deadline (" +
			spell(register.DefaultHandlerTimeout) + " by default) if the handler obeys it; else restart the daemon."
	},
	handlerDown: func(told) string {
		return "The plugin is registered; its own API does not work. See the plugin's log, and restart it."
	},
	notTold: func(told) string {
		return "It works all the same. A registrar that waits to be told may restart its container: see the plugin's log for why it does not take NotifyRegistrationStatus."
	},
	noDescriptors: func(told) string {
		return "That is the daemon's own lack and says nothing of the plugin: each registered plugin holds one descriptor. Raise its limit (LimitNOFILE= of its unit, or ulimit -n) and restart it; what is registered stays so."
	},
	pathTooLong: func(t told) string {
		return "Use a shorter directory or file name; on Linux, having /proc mounted lifts the limit."
	},
	noPermission: func(t told) string {
		return "The daemon's user may not connect, which takes write permission on the socket and search permission on every directory above it: see " + command("namei -l", t.path) +
			". Run the daemon as root, or have the plugin make its socket for a group that the daemon is in."
	},
	notAllowed: func(t told) string {
		return "The daemon was started with --allowed-uid. Run the plugin as an allowed user, or add its user to --allowed-uid if you trust it (" + command("ls -ln", t.path) + ")."
	},
	isStale: func(t told) string {
		return "What was known stays as it is, until the filesystem answers. " + rootAdvice(t.view, rawPath(t.s.Root, t.s.RootBase64))
	},
	otherFailure: func(told) string { return "It is tried again by itself. See the plugin's log and the daemon's." },
}

func pluginType(s state.SocketView) string {
	if s.Plugin == nil {
		return "its type"
	}
	return s.Plugin.Type
}

func list(words []string) string {
	if len(words) == 0 {
		return "no type"
	}
	return strings.Join(words, ", ")
}

// rootAdvice says what to do about a directory that cannot be read.
func rootAdvice(v state.View, dir string) string {
	look := "Look at the directory as the daemon's user: " + command("plugpoll scan", dir) + "."
	for _, r := range v.Roots {
		if rawPath(r.Path, r.PathBase64) != dir {
			continue
		}
		switch error := r.Error; {
		case strings.Contains(error, "permission denied"):
			return "The daemon's user may not read it: run the daemon as root, or give its user read and search permission (" + command("namei -l", dir) + "). Nothing is deregistered meanwhile."
		case strings.Contains(error, "no such file"):
			return "The directory is missing: make it (" + command("mkdir -p", dir) + ") or correct --dir. It is found by itself, and until it has been gone for --root-grace nothing is deregistered."
		case strings.Contains(error, "not a directory"):
			return "There is a file in the directory's place: move it away, or correct --dir."
		case strings.Contains(error, "another filesystem"):
			return "Another filesystem is mounted there, or one was unmounted: see " + command("findmnt -T", dir) + ". After --root-grace what is there now counts."
		}
	}
	return look
}

// scanAge says how old the picture of a root is.
func scanAge(r state.RootView) string {
	if r.LastGoodScan.IsZero() {
		return "never"
	}
	return spanText(time.Duration(r.GoodScanAge*float64(time.Second))) + " ago"
}
