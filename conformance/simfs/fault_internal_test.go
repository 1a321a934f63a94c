package simfs

import (
	"testing"
	"testing/synctest"
	"time"
)

// Faults that are over take no room, however many there were; one in which calls may hang can be cleared as long as it is there.
func TestSpentFaultsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{})
		defer f.Close()
		letGo := f.Inject("/", OpStat, Fault{Hang: true, Times: 1})
		hung := make(chan error, 1)
		look := func() error {
			_, err := f.Stat("/")
			return err
		}
		go func() { hung <- look() }()
		synctest.Wait()
		for range 100 {
			f.Freeze("/", time.Second)
			f.Inject("/", OpStat, Fault{Times: 1})
			<-time.After(time.Minute)
			for range 2 {
				if err := look(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := len(f.faults[point{"/", OpStat}]); n != 1 {
			t.Errorf("%d faults are kept, want the one that hangs", n)
		}
		letGo()
		if err := <-hung; err != nil {
			t.Error(err)
		}
	})
}
