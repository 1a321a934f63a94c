package cni

// Revision tells one content of a directory from another (CN2). Empty: nothing was read yet.
type Revision string

// FileState is what becomes of a file. The texts are part of the JSON interface.
type FileState string

// FileView is one file of a directory and the verdict on it.
type FileView struct {
	Path       string    `json:"path"`
	PathBase64 string    `json:"path_base64,omitempty"`
	State      FileState `json:"state"`
	// Reason says why, in words. Empty: it is used, and there is nothing to say.
	Reason string `json:"reason,omitempty"`
	// Network, CNIVersion and Plugins are what the file says, if it is not broken.
	Network    string     `json:"network,omitempty"`
	CNIVersion string     `json:"cni_version,omitempty"`
	Plugins    []string   `json:"plugins,omitempty"`
	Error      *ConfError `json:"error,omitempty"`
}

// Kind is what is wrong with a file (CN11). The texts are part of the JSON interface.
type Kind string

// ConfError is why a file cannot be used, or a directory.
type ConfError struct {
	// Path is the file, raw, or the directory, if no file is at fault.
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
	// Line and Column tell where, from 1. 0: unknown, or the whole file is meant.
	Line   int  `json:"line,omitempty"`
	Column int  `json:"column,omitempty"`
	Kind   Kind `json:"kind"`
	// Text says what is wrong, Fix what to do, one line each.
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Error returns the text.
func (e *ConfError) Error() string { return e.Text }
