//go:build !unix

package scanner

// opensUnblocked: on Windows a pipe is no file of a directory, and nothing blocks that was seen to be a regular file.
const opensUnblocked = false

func osOpen(string) (source, error) { panic("not called") }
