package cni

import (
	"testing"
	"time"
)

// CN5, CN6: a set is in use once two polls have seen it, the second 20 ms after the first.
func TestApplied(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.write("10-a.conflist", list("a"))
		w.run()
		w.is(Loading, "")
		w.pass(20 * time.Millisecond)
		w.is(Ready, "a")
		w.happened(EventApplied, EventReady, EventSynced)
	})
}
