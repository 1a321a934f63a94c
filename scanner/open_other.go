//go:build !unix

package scanner

// Elsewhere opening for reading is all there is.
const (
	openDirectory = 0
	openNoLink    = 0
)
