package conformance

import (
	"cmp"
	"time"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/state"
)

// HandlerSubject is a register.Handler.
type HandlerSubject struct {
	// Handler is the handler. Required.
	Handler register.Handler
	// Registration makes a plugin that the handler accepts, and whose own API answers if it is called. Each number gives another name and another path. Required.
	Registration func(n int) state.Registration
	// Fails makes one that Validate accepts and Register fails on, as one whose API does not answer. nil: H4 is skipped.
	Fails func(n int) state.Registration
	// Hangs makes one on which Register does not return by itself, as one whose API takes a call and does not answer. nil: one of Registration stands in.
	Hangs func(n int) state.Registration
	// Held counts what the handler has at the moment: registrations, connections, files. nil: what is left behind is not looked at, and H4 is skipped.
	Held func() int
	// Patience is how long the handler may take to return once its context has ended, and to stop reporting once a plugin was let go. 0: 5 s.
	Patience time.Duration
	// Lacks are the ids of rules that the handler is known not to keep: they are skipped.
	Lacks []string
}

const handlerPatience = 5 * time.Second

// Handler returns the rules for a handler: the other side of what a Manager promises it.
func Handler(s HandlerSubject) []Rule {
	s.Patience = cmp.Or(s.Patience, handlerPatience)
	h := handler{s}
	return without(append(h.one(), h.more()...), s.Lacks)
}

// handler is what the rules are checked on.
type handler struct{ HandlerSubject }

// one are the rules about the life of one plugin.
func (h handler) one() []Rule {
	needs := []string{"H1"}
	rules := []Rule{{
		ID: "H1", Sentence: "A plugin that Validate accepts can be registered and let go.",
		Fix:   "Return nil from all three calls for a plugin that is as it should be.",
		check: h.lives,
	}, {
		ID: "H2", Sentence: "Validate has no effect, and says the same of the same plugin each time.",
		Fix:   "Only look in Validate: it is called again for each try, and may be the last that is heard of the plugin.",
		check: h.validates, needs: needs,
	}, {
		ID: "R9", Sentence: "Register and Deregister return soon after their context has ended.",
		Fix:   "Pass the context on to every call that may take long, and select on ctx.Done() beside every channel.",
		check: h.obeys, needs: needs,
	}, {
		ID: "H3", Sentence: "After Deregister nothing is held for the plugin.",
		Fix: "Release in Deregister, or undo at its end, whatever Register has taken: connections, goroutines, entries in maps.", check: h.letsGo, needs: needs,
	}, {
		ID: "H4", Sentence: "A Register that returns an error leaves nothing behind.",
		Fix: "Undo what was done before the error: Deregister is not called after it.", check: h.cleansUp, needs: needs,
	}, {
		ID: "R5", Sentence: "Register changes nothing in the Registration, and Deregister takes an equal one.",
		Fix: "Copy Versions before sorting it, and find the plugin by Type, Name and Entry.Path, not by an address.", check: h.takesEqual, needs: needs,
	}, {
		ID: "H5", Sentence: "It stops reporting once the plugin was let go; a late report does no harm.",
		Fix: "End in Deregister whatever reports.", check: h.stopsReporting, needs: needs,
	}}
	for i, r := range rules {
		switch {
		case r.ID == "H4" && h.Fails == nil:
			rules[i].Skip = "the subject has no plugin that fails (Fails)"
		case (r.ID == "H3" || r.ID == "H4") && h.Held == nil:
			rules[i].Skip = "the subject does not count what it holds (Held)"
		}
	}
	return rules
}

// more are the rules about several plugins, or several lives of one.
func (h handler) more() []Rule {
	needs := []string{"H1"}
	rules := []Rule{{
		ID: "H6", Sentence: "A plugin can be registered again after it was let go.",
		Fix: "Forget in Deregister that the name was known.", check: h.again, needs: needs,
	}, {
		ID: "H7", Sentence: "Calls for different names may run at the same time.",
		Fix: "Guard what they share, and do not refuse a call because another one runs.", check: h.together, needs: needs,
	}, {
		ID: "N1", Sentence: "Several sockets may announce one name, and are told apart by their path; letting one go leaves the others.",
		Fix: "Key by Entry.Path beside the name, or have a method Exclusive that returns true.", check: h.instances, needs: needs,
	}, {
		ID: "N2", Sentence: "Exclusive returns the same each time.",
		Fix: "Return a constant: it is asked once, when the handler is added.", check: h.constant,
	}}
	if h.exclusive() {
		rules[2].Skip = "the handler takes one instance of a name at a time (Exclusive)"
	}
	return rules
}

func (h handler) exclusive() bool {
	e, ok := h.Handler.(interface{ Exclusive() bool })
	return ok && e.Exclusive()
}
