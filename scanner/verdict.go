package scanner

// Outcome is what a scan makes of an entry (D9).
type Outcome int

// The outcomes of a Verdict.
const (
	// IsSocket is a plugin socket.
	IsSocket Outcome = iota + 1
	// MaybeSocket is an entry whose type the filesystem cannot tell.
	MaybeSocket
	// IsDirectory is a directory that is read too.
	IsDirectory
	// IsIgnored is no candidate; Verdict.Reason says why.
	IsIgnored
	// IsUnreadable could not be looked at; Verdict.Err says why.
	IsUnreadable
	// IsFile is a file that Config.Select selects, be it with a Problem.
	IsFile
)

// Reason is why an entry is ignored. The texts are part of the JSON interface: they may be added to, not changed.
type Reason string

// The reasons.
const (
	DotName         Reason = "dot name"
	NotSocket       Reason = "not a socket"
	TooDeep         Reason = "too deep"
	LinkToDirectory Reason = "link to a directory"
	DanglingLink    Reason = "dangling link"
	// OtherName is anything but a directory, where files are selected, by a name that is not.
	OtherName Reason = "another name"
	// Unreadable stands in Ignored only: such an entry's Verdict is IsUnreadable.
	Unreadable Reason = "unreadable"
)

// Verdict is what a scan made of one entry.
type Verdict struct {
	Outcome Outcome
	// Reason is set for IsIgnored.
	Reason Reason
	// Err is set for IsUnreadable, and for MaybeSocket if a refused Lstat is the cause.
	Err error
	// Type is the entry's type, as a word: "socket", "file", "directory", "link", "fifo", "device", "unknown".
	Type string
	// Entry is set for IsSocket, MaybeSocket and IsFile.
	Entry Entry
}
