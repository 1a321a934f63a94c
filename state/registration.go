package state

import "github.com/plugpoll/plugpoll/scanner"

// Registration is one instance of a plugin: the socket it was found by and what it said of itself. It is what a handler is given, unchanged, in
// Validate, Register and Deregister (R5).
type Registration struct {
	// Entry is the socket, as scanned.
	Entry scanner.Entry
	// Type is the plugin's type, which chose the handler: CSIPlugin, DevicePlugin, DRAPlugin or another.
	Type string
	// Name is the plugin's name. Several sockets may announce one (Type, Name): the instances differ by Entry.Path and Endpoint (N1).
	Name string
	// Endpoint is the path of the socket the plugin serves its own API on; Entry.Path if it named none (R1).
	Endpoint string
	// Versions are the API versions the plugin supports, as it gave them.
	Versions []string
}

// Health is what a handler says of a plugin it has registered.
type Health string

// The values of Health. The zero value means the same as HealthUnknown.
const (
	HealthUnknown Health = "unknown"
	HealthServing Health = "serving"
	HealthDown    Health = "down"
)

// Report is what a handler tells about a plugin, for people to see in View and Events.
type Report struct {
	// Health of the plugin's own API.
	Health Health
	// Message is one sentence for people. Control characters are escaped and it is cut at 1 KiB.
	Message string
	// Detail is anything that marshals to JSON. nil: nothing.
	Detail any
}

// name is the key under which operations of one plugin exclude each other (R7).
type name struct{ typ, name string }

func (r Registration) key() name { return name{r.Type, r.Name} }

func (i Info) key() name { return name{i.Type, i.Name} }
