//go:build !linux

package register

import "github.com/plugpoll/plugpoll/scanner"

// addressOf returns an address that leads to the socket until done is called. Only Linux can name the very socket that was scanned (R15).
func addressOf(e scanner.Entry, uids []int) (address string, done func(), err error) {
	return plainAddress(e.Path, uids)
}
