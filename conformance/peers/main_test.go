package main

import (
	"os"
	"testing"
	"time"
)

// The test binary is also the processes that it starts.
func TestMain(m *testing.M) {
	if !play() {
		os.Exit(m.Run())
	}
}

// Each registrar runs, registers a plugin of another process and lets it go: what measures and judges them works.
func TestRegistrars(t *testing.T) {
	for peer := range registrars {
		t.Run(peer, func(t *testing.T) {
			t.Parallel()
			err := catch(func() {
				s, end, err := newScene(t.Context(), peer)
				must(err)
				defer end()
				s.run()
				listening := s.start("a.sock", "a")
				told, err := s.told("a", time.Minute)
				if must(err); told.At < listening {
					t.Errorf("it listens at %v and was told at %v", listening, told.At)
				}
				removed := s.tell(order{Do: "unlink", Path: s.path("a.sock")})
				gone, err := within(s, s.peer, 0, 1, "deregister", "a", time.Minute)
				if must(err); gone.At < removed {
					t.Errorf("it was removed at %v and deregistered at %v", removed, gone.At)
				}
				if u := s.order(s.peer, order{Do: "usage"}).Usage; u.CPU <= 0 || u.RSS < 1<<20 || u.HighWater < u.RSS {
					t.Errorf("it takes %+v", u)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
