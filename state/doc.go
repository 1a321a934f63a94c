// Package state decides what should change: it compares what scans show with what is registered, and says what to do about the difference.
//
// A [Core] is a pure state machine. [Core.Step] takes what happened (an [Input]) and the time, and returns what to do (a list of [Effect]). It does no I/O,
// reads no clock, starts no goroutine, and draws its jitter from a seed, so the same inputs give the same effects. Package register carries effects out
// and posts their results as inputs; most users want its Manager and only the plain data of this package: [View], [Event], [Registration], [Report].
//
// It promises, for every order of inputs: one probe and one handler call at a time per path, one handler call at a time per plugin name (R7); exactly one
// Deregister for each Register that succeeded, except on stop (R5); the newest instance wins; and when the inputs cease and effects
// succeed, what is registered is what is there.
//
// It never treats a failed scan as an empty directory: only the scanner says that something is gone. Ids such as R7 are those of docs/contract.md.
package state
