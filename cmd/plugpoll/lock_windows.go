package main

import (
	"errors"

	"golang.org/x/sys/windows"
)

// tryLock opens a file that one process at a time can have open, and that is deleted when it is closed, at the latest when that process ends. unlock is
// nil if somebody else has it open.
func (p *place) tryLock() (unlock func(), err error) {
	name, err := windows.UTF16PtrFromString(p.at(".plugpoll.lock"))
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.DELETE, 0, nil, windows.OPEN_ALWAYS,
		windows.FILE_ATTRIBUTE_HIDDEN|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	switch {
	case err == nil:
		return func() { _ = windows.CloseHandle(h) }, nil
	// Access is denied while the file of the one before is being deleted.
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION), errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return nil, nil
	}
	return nil, err
}
