// Package conformance tells whether what meets plugpoll keeps its side: a filesystem that is to be polled ([FS]), a plugin that is to be registered ([Plugin]),
// a handler that is to take plugins over ([Handler]), a registrar that is to find plugins and hand them over ([Registrar]).
//
// # Use
//
// A suite is a list of rules for one subject. In a test:
//
//	conformance.Test(t, conformance.Plugin(conformance.PluginSubject{Socket: path}))
//
// Elsewhere, without package testing:
//
//	for result := range conformance.Check(ctx, rules) {
//		if result.Err != nil {
//			fmt.Println(result.Err, result.Rule.Fix)
//		}
//	}
//
// A single rule is checked by [Rule.Check]. What a subject does not claim to do is said in its fields; the rules about that are skipped, and say why. A rule that a
// subject is known not to keep is named in Lacks. `plugpoll check` runs the suites from the command line.
//
// # Promises
//
//   - A failure says what was seen, which sentence that breaks, and what to do about it.
//   - An id stays with its sentence. Ids that docs/contract.md has, as R16, are the subject's side of that promise.
//   - Each rule is about one thing: a subject that breaks it breaks that one alone (the tests of this package hold every rule to it).
//   - A subject that hangs or panics breaks a rule, not the suite.
//   - A plugin is asked what it is, and nothing else unless its subject allows it. A filesystem is changed in the given directory only, and left as it was.
//   - A registrar is run in directories of the suite's only, which are removed.
//
// It does not test what a plugin does: no call of the CSI, device plugin or DRA API is made.
package conformance
