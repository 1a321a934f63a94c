package main

import (
	"strings"
	"testing"
)

func TestListenerIn(t *testing.T) {
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/a b.sock
0000000000000000: 00000003 00000000 00000000 0001 03    99 /run/connected.sock
0000000000000000: 00000002 00000000 00010000 0001 01  1234 @/abstract.sock
0000000000000000: 00000002 00000000 00010000 0001 01  1234 /proc/self/fd/5/held.sock
0000000000000000: 00000003 00000000 00000000 0001 03 77
`
	for path, want := range map[string]string{
		"/run/a b.sock": "/run/a b.sock", "/other/a b.sock": "/run/a b.sock", "/run/connected.sock": "", "/x/abstract.sock": "", "/x/held.sock": "held.sock", "/x/77": "",
	} {
		if got := listenerIn(strings.NewReader(table), path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
