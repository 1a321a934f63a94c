package conformance

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/register"
)

// RegistrarSubject is a registrar: whatever registers the plugins of a directory. It is judged by what handlers and plugins see of it.
type RegistrarSubject struct {
	// Run has a new registrar watch dir, and give the plugins of each type to the handler of that type, until ctx ends. It is called for each rule, several at a time. Required.
	Run func(ctx context.Context, dir string, handlers map[string]register.KubeletHandler) error
	// Adding does the same, and takes the handlers that come by added as well, each while the registrar runs. nil: R8-added is skipped.
	Adding func(ctx context.Context, dir string, handlers map[string]register.KubeletHandler, added <-chan map[string]register.KubeletHandler) error
	// NoInotify does what Run does, where the kernel has no inotify instance to give. nil: D1-inotify is skipped.
	NoInotify func(ctx context.Context, dir string, handlers map[string]register.KubeletHandler) error
	// Dir is where the directories are made that are watched. Empty: os.TempDir. Elsewhere than on Linux it must leave room for the name of a socket in 103 bytes.
	Dir string
	// Grace is how long a plugin may be unreachable before it is deregistered. 0: register.DefaultLivenessGrace; negative: for ever, so that L2 is skipped.
	Grace time.Duration
	// Patience is how long it may take to do what it should do at once. 0: 10 s. A rule has a minute in all.
	Patience time.Duration
	// Quiet is how long it must not do what it should not do. It is to be longer than the registrar's interval, if it polls. 0: 2 s.
	Quiet time.Duration
	// Lacks are the ids of rules that the registrar is known not to keep: they are skipped.
	Lacks []string
}

// runFunc is the type of Run.
type runFunc = func(ctx context.Context, dir string, handlers map[string]register.KubeletHandler) error

const (
	registrarPatience = 10 * time.Second
	registrarQuiet    = 2 * time.Second
	// maxGrace is how long a grace can be for its end to be waited for.
	maxGrace = 40 * time.Second
)

// Registrar returns the rules for a registrar: promises of docs/contract.md that can be seen from outside, on a directory of the operating system with plugins
// that are gRPC servers of this process.
func Registrar(s RegistrarSubject) []Rule {
	s.Grace = cmp.Or(s.Grace, register.DefaultLivenessGrace)
	s.Patience = cmp.Or(s.Patience, registrarPatience)
	s.Quiet = cmp.Or(s.Quiet, registrarQuiet)
	r := registrar{s}
	rules := slices.Concat(r.first(), r.entries(), r.directories(), r.answers(), r.calls(), r.crowds(), r.lives(), r.ends())
	for i := range rules {
		rules[i].apart = true
		if i > 0 {
			rules[i].needs = append(rules[i].needs, rules[0].ID)
		}
		rules[i].Skip = r.skip(rules[i].ID)
	}
	return without(rules, s.Lacks)
}

// registrar is what the rules are checked on.
type registrar struct{ RegistrarSubject }

// skip is why a rule cannot be checked on this subject or system.
func (r registrar) skip(id string) string {
	unixOnly := []string{"D2", "D10", "I4"}
	linuxOnly := []string{"D7-mounted", "R15"}
	switch {
	case id == "D1-inotify" && r.NoInotify == nil:
		return "the subject cannot be run without inotify (NoInotify)"
	case id == "R8-added" && r.Adding == nil:
		return "the subject takes no handler while it runs (Adding)"
	case id == "L2" && r.Grace < 0:
		return "the subject lets nothing go for being unreachable (Grace)"
	case id == "L2" && r.Grace > maxGrace:
		return fmt.Sprintf("the subject's grace of %v is longer than a check may take", r.Grace)
	case runtime.GOOS == "windows" && slices.Contains(unixOnly, id):
		return "Windows has not what this is about"
	case runtime.GOOS != "linux" && slices.Contains(linuxOnly, id):
		return "only Linux has what this is about"
	case id == "D7-mounted" && os.Geteuid() != 0:
		return "only root may mount"
	}
	return ""
}

// first are the rules about the life of one plugin. Without R1 no other rule tells anything.
func (r registrar) first() []Rule {
	return []Rule{{
		ID: "R1", Sentence: "A plugin is asked, validated, registered and told that it is, in this order.",
		Fix: "Look into the directory, connect to each socket, and call GetInfo, the handler of that type, and NotifyRegistrationStatus(true).", see: r.on(inOrder),
	}, {
		ID: "R1-given", Sentence: "The handler is given the name, endpoint and versions that a plugin announced, and the path of its socket where it announced no endpoint.",
		Fix: "Pass on what GetInfo has answered as it is.", see: r.on(givenAll),
	}, {
		ID: "D1", Sentence: "A socket from before the start is found.",
		Fix: "Read the directory at the start, and treat what is there like what comes.", see: r.on(fromBefore),
	}, {
		ID: "D1-inotify", Sentence: "Sockets are found without an inotify instance, from before the start and later.",
		Fix: "Poll where there is none, or always.", see: r.on(withoutInotify), needs: []string{"D1"},
	}}
}

// entries are the rules about what a directory can have in it.
func (r registrar) entries() []Rule {
	return []Rule{{
		ID: "D2", Sentence: "What is no socket is left alone: a FIFO is not opened.",
		Fix: "Look at the type of an entry before anything else.", see: r.on(fifo),
	}, {
		ID: "D3", Sentence: "A socket that is renamed from a dot name to a visible one is found, and not before.",
		Fix: "Skip names that begin with a dot, and take the visible name for a new socket.", see: r.on(fromDotName),
	}, {
		ID: "D3-directory", Sentence: "A directory whose name begins with a dot is skipped, at the start as later.",
		Fix: "Skip such directories wherever directories are read.", see: r.on(dotDirectories),
	}, {
		ID: "D5", Sentence: "A link to a socket is registered under the path of the link, and deregistered when the link is gone.",
		Fix: "Look at what a link leads to, and keep it under the link's own path.", see: r.on(linkToSocket), needs: []string{"R1-given"},
	}, {
		ID: "D6", Sentence: "When a socket is renamed the old path is deregistered and the new one registered.",
		Fix: "Compare what is there with what was there, rather than to wait to be told.", see: r.on(renamedSocket), needs: []string{"R1-given"},
	}, {
		ID: "D10", Sentence: "Names with a blank, #, ?, %41 and a newline are registered.",
		Fix: "Never make a URL of a path: dial the path itself, by a dialer of your own.", see: r.on(oddlyNamed),
	}, {
		ID: "I4", Sentence: "chmod and touch of a socket cause no call.",
		Fix: "Compare inodes where there are any, and go by the connection.", see: r.on(touched),
	}, {
		ID: "R15", Sentence: "A socket whose path has more than 107 bytes is registered.",
		Fix: "On Linux connect to /proc/self/fd/N of the socket or its directory.", see: r.on(longPath),
	}}
}

// directories are the rules about directories that come and go.
func (r registrar) directories() []Rule {
	return []Rule{{
		ID: "D4", Sentence: "A socket in a subdirectory is found, also if both were made later.",
		Fix: "Read subdirectories, and a new one after it is watched.", see: r.on(subdirectory),
	}, {
		ID: "D5-root", Sentence: "A root that is a symbolic link is watched where it leads.",
		Fix: "Resolve the root before it is read.", see: r.on(linkedRoot),
	}, {
		ID: "D7", Sentence: "When a subdirectory is renamed the old paths below it are deregistered and the new ones registered.",
		Fix: "Open every directory by its path each time it is read.", see: r.on(renamedDirectory), needs: []string{"R1-given", "D4"},
	}, {
		ID: "D7-remade", Sentence: "When the root is removed and made again a plugin in it is registered.",
		Fix: "Open the root by its path each time it is read.", see: r.on(remadeRoot),
	}, {
		ID: "D7-mounted", Sentence: "When another filesystem is mounted over the root a plugin in it is registered.",
		Fix: "Open the root by its path each time it is read.", see: r.on(mountedOver),
	}, {
		ID: "D8", Sentence: "A root that is missing at the start is made or waited for, and a plugin in it is registered.",
		Fix: "Look again for a root that is missing.", see: r.on(missingRoot),
	}}
}

// answers are the rules about what plugins say and are told.
func (r registrar) answers() []Rule {
	return []Rule{{
		ID: "R3", Sentence: "A plugin of unknown type is told so, with the type.",
		Fix: "Call NotifyRegistrationStatus(false) with a text that has the type in it.", see: r.on(unknownType),
	}, {
		ID: "R3-known", Sentence: "A plugin of unknown type is told which types are known.",
		Fix: "List the types that have a handler in that text.", see: r.on(knownTypes), needs: []string{"R3"},
	}, {
		ID: "R3-cause", Sentence: "A plugin that the handler refuses is told the text of the handler's error.",
		Fix: "Pass the error's text on to NotifyRegistrationStatus(false).", see: r.on(toldCause),
	}, {
		ID: "R3-text", Sentence: "What a refused plugin is told is valid UTF-8 of at most 1 KiB, whatever the handler's error is.",
		Fix: "Replace what is no UTF-8, which gRPC does not send, and cut the rest off.", see: r.on(toldBounded), needs: []string{"R3-cause"},
	}, {
		ID: "R4", Sentence: "A plugin that cannot be told stays registered.",
		Fix: "Try to tell it again, and leave the handler alone.", see: r.on(deaf),
	}, {
		ID: "R10", Sentence: "A plugin whose GetInfo takes 1.2 s is registered.",
		Fix: "Give GetInfo more time: 10 s.", see: r.on(slow),
	}, {
		ID: "R13", Sentence: "A socket that does not offer the registration service is not asked again and again.",
		Fix: "Remember that GetInfo is unimplemented there, until the socket changes.", see: r.on(foreign),
	}, {
		ID: "R16", Sentence: "A plugin whose name has more than 253 bytes or a control character is refused, and reaches no handler.",
		Fix: "Check what GetInfo has answered before it is used.", see: r.on(refusedFor(&actor{name: longName, file: "long"}, &actor{name: "a\nb", file: "control"})),
	}, {
		ID: "R17", Sentence: "A server that hangs up at once is not connected to in a loop.",
		Fix: "Make one connection for a try, and wait between tries.", see: r.on(hangsUp),
	}, {
		ID: "X5", Sentence: "A plugin whose endpoint is not a path of a unix socket is refused, and reaches no handler.",
		Fix: "Check the endpoint before it is used.", see: r.on(refusedFor(&actor{name: "tcp", endpoint: "tcp://127.0.0.1:80"}, &actor{name: "relative", endpoint: "csi.sock"})),
	}}
}
