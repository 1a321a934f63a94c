//go:build !linux

package conformance

import "errors"

// D7-mounted is skipped there.
func mountOver(string) (unmount func(), err error) { return nil, errors.ErrUnsupported }
