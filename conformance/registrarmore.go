package conformance

// calls are the rules about calls of a handler.
func (r registrar) calls() []Rule {
	return []Rule{{
		ID: "R2", Sentence: "A Register that failed is followed by no Deregister.",
		Fix: "Record a plugin once Register has succeeded.", see: r.on(failedRegister),
	}, {
		ID: "R5", Sentence: "When a socket is removed there is one Deregister, with the name and endpoint of the Register.",
		Fix: "Keep what was registered, and let go of exactly that.", see: r.on(removedSocket), needs: []string{"R1-given"},
	}, {
		ID: "R7", Sentence: "Calls of a handler for one name do not overlap.",
		Fix: "Queue them by type and name.", see: r.on(oneAtATime), needs: []string{"N1"},
	}, {
		ID: "R8", Sentence: "When Validate fails twice, and then not, the plugin is told each time, and registered.",
		Fix: "Try again after a pause.", see: r.on(failsTwice), needs: []string{"R3-cause"},
	}, {
		ID: "R8-added", Sentence: "A plugin of unknown type is registered once its type gets a handler.",
		Fix: "Try those again that wait for a type when its handler comes.", see: r.on(handlerAdded), needs: []string{"R3"},
	}, {
		ID: "R9", Sentence: "When Register panics once it is tried again, and the plugin registered.",
		Fix: "Recover around each call of a handler, and take a panic for an error.", see: r.on(panicsOnce),
	}, {
		ID: "R9-others", Sentence: "When Register panics for one plugin others are registered.",
		Fix: "Recover around each call of a handler.", see: r.on(panicBesides),
	}, {
		ID: "R9-hangs", Sentence: "When Register does not return for one plugin others are registered.",
		Fix: "Call a handler for several plugins at a time.", see: r.on(hangsBesides),
	}, {
		ID: "R12", Sentence: "A plugin that has failed four times is fixed and makes its socket anew: it is registered no more than 2 s after a new one that comes with it.",
		Fix: "Begin a new socket's pauses afresh.", see: r.on(fixed), needs: []string{"R8"},
	}}
}

// crowds are the rules about plugins that must not hold others up.
func (r registrar) crowds() []Rule {
	return []Rule{{
		ID: "R11", Sentence: "A plugin beside 100 that do not answer is registered.",
		Fix: "Ask several plugins at a time, and those first that come first.", see: r.on(besideHung),
	}, {
		ID: "R11-dead", Sentence: "A plugin beside 100 sockets on which nobody listens is registered.",
		Fix: "Go on at once when a connection is refused.", see: r.on(besideDead),
	}, {
		ID: "N1", Sentence: "When two sockets announce one name both are registered, and Deregister names the one that left.",
		Fix: "Key by the path of the socket.", see: r.on(twoOfAName), needs: []string{"R1-given"},
	}}
}

// lives are the rules about plugins that are replaced, die, or do nothing.
func (r registrar) lives() []Rule {
	return []Rule{{
		ID: "R6", Sentence: "When a socket is removed and bound again at once the handler is without the plugin for 100 ms at most.",
		Fix: "Ask the new instance first, then let Register follow Deregister at once.", see: r.on(replacedBy("again", (*stage).rebind)),
	}, {
		ID: "R6-renamed", Sentence: "When a socket is replaced by a rename the handler is without the plugin for 100 ms at most.",
		Fix: "Ask the new instance first, then let Register follow Deregister at once.", see: r.on(replacedBy("over", (*stage).renameOver)),
	}, {
		ID: "L1", Sentence: "When a plugin dies and another version of it is started it is deregistered, and registered anew.",
		Fix: "Keep a connection to each plugin, or compare the sockets: one that was made anew is another one.", see: r.on(startedAnew),
	}, {
		ID: "L2", Sentence: "When a plugin dies and its socket stays it is deregistered after the grace, and not before.",
		Fix: "Keep a connection to each plugin, and let go of what cannot be connected to for long.", see: r.on(died),
	}, {
		ID: "L3", Sentence: "A plugin that is registered and does nothing is left alone.",
		Fix: "Do not ask or ping it: its connection ends when it does.", see: r.on(idle),
	}}
}

// ends are the rules about the registrar's own end.
func (r registrar) ends() []Rule {
	return []Rule{{
		ID: "S1", Sentence: "Run returns soon after its context has ended, and no handler is called after that.",
		Fix: "Wait for what was begun, and begin nothing any more.", see: r.on(endsItself),
	}, {
		ID: "S2", Sentence: "The end of the registrar deregisters nothing.",
		Fix: "Leave the plugins as they are: the next run finds them.", see: r.on(keepsAll), needs: []string{"S1"},
	}, {
		ID: "S3", Sentence: "After its end no connection to a plugin is left.",
		Fix: "Close the connections that are kept.", see: r.on(closesAll), needs: []string{"S1"},
	}}
}
