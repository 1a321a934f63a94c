package state

import (
	"slices"
	"testing"
	"time"
)

// S1, S2: Stopping in each part of a try, with and without DeregisterOnStop. Probes are given up, calls are cancelled and waited for, no call starts but a
// Deregister that is asked for, every connection is closed, and Stopped comes once and last.
func TestStop(t *testing.T) {
	for _, late := range []bool{false, true} { // whether the call that runs succeeds
		for _, all := range []bool{false, true} {
			tests := []struct {
				name    string
				prepare func(d *driver)
				stop    []string
				call    EffectID // that is waited for
				end     []string // what its end brings
				fails   []string // if it fails
			}{
				{"idle", func(d *driver) {}, []string{"stopped"}, 0, nil, nil},
				{"ask", func(d *driver) { d.scan(sock("a", 1, 1)) }, []string{"cancel 1", "stopped"}, 0, nil, nil},
				{
					"validate", func(d *driver) { d.scan(sock("a", 1, 1)); d.answers(1, csi, "x") },
					[]string{"cancel 2"},
					2,
					[]string{"close 1", "stopped"},
					[]string{"close 1", "stopped"},
				},
				{
					"register", func(d *driver) { d.scan(sock("a", 1, 1)); d.answers(1, csi, "x"); d.ok(2) },
					[]string{"cancel 3"},
					3,
					[]string{"close 1", "stopped"},
					[]string{"close 1", "stopped"},
				},
				{
					"tell", func(d *driver) { d.scan(sock("a", 1, 1)); d.answers(1, csi, "x"); d.fails(2) },
					[]string{"cancel 3", "close 1", "stopped"},
					0, nil, nil,
				},
				{
					"notify", func(d *driver) { d.scan(sock("a", 1, 1)); d.answers(1, csi, "x"); d.ok(2); d.ok(3) },
					[]string{"cancel 4", "close 1", "stopped"},
					0, nil, nil,
				},
				{
					"registered", func(d *driver) { d.scan(sock("a", 1, 1)); d.register(1, csi, "x") },
					[]string{"close 1", "stopped"},
					0, nil, nil,
				},
				{
					"replaced", func(d *driver) { d.scan(sock("a", 1, 1)); d.register(1, csi, "x"); d.scan(sock("a", 2, 2)) },
					[]string{"cancel 5", "close 1", "stopped"},
					0, nil, nil,
				},
				{
					"deregister", func(d *driver) { d.scan(sock("a", 1, 1)); d.register(1, csi, "x"); d.scan() },
					[]string{"cancel 5"},
					5,
					[]string{"close 1", "stopped"},
					[]string{"close 1", "stopped"},
				},
				{
					"backoff", func(d *driver) { d.scan(sock("a", 1, 1)); d.refused(1) },
					[]string{"stopped"},
					0, nil, nil,
				},
			}
			if all {
				tests[3].end = []string{"4 deregister a CSI/x inode 1"}
				tests[5].stop = []string{"cancel 4", "5 deregister a CSI/x inode 1"}
				tests[6].stop = []string{"5 deregister a CSI/x inode 1"}
				tests[7].stop = []string{"cancel 5", "6 deregister a CSI/x inode 1"}
				tests[8].stop = []string{}
			}
			for _, test := range tests {
				t.Run(test.name+map[bool]string{true: "/all"}[all]+map[bool]string{true: "/late"}[late], func(t *testing.T) {
					d := drive(t, Config{DeregisterOnStop: all})
					d.step(HandlerAdded{Type: csi})
					d.scan()
					test.prepare(d)
					d.want(d.step(Stopping{}), test.stop...)
					if !all && !d.core.Deadline().IsZero() { // else the call may be parked, so that Deregister has its place
						t.Error("it wants ticks")
					}
					d.want(d.step(Stopping{}))
					d.want(d.wait(time.Minute))
					switch {
					case test.call != 0 && late:
						d.want(d.ok(test.call), test.end...)
					case test.call != 0:
						d.want(d.fails(test.call), test.fails...)
					}
					for id := range d.check.flights { // the Deregister that was asked for
						got := d.ok(id)
						if got[len(got)-1] != "stopped" {
							t.Errorf("its end: %v", got)
						}
					}
					if !d.check.stopped || len(d.check.conns) > 0 {
						t.Errorf("stopped: %v, connections: %v", d.check.stopped, d.check.conns)
					}
					d.want(d.scan(sock("b", 7, 7)))
					d.want(d.step(RetryAsked{}))
					d.want(d.step(HandlerAdded{Type: dra}))
					d.want(d.step(Stopping{}))
				})
			}
		}
	}
}

// S2: DeregisterOnStop within the slots, one after the other for a name, and what hangs is waited for.
func TestDeregisterAllOnStop(t *testing.T) {
	d := drive(t, Config{DeregisterOnStop: true, Calls: 2})
	d.step(HandlerAdded{Type: csi})
	d.scan()
	names := []string{"x", "x", "y", "z", "y"}
	entries := burst(5)
	for n, name := range names {
		d.scan(entries[:n+1]...)
		d.register(EffectID(4*n+1), csi, name)
	}
	got := d.step(Stopping{})
	for range names {
		if d.check.stopped {
			t.Fatal("stopped too early")
		}
		for id := range d.check.flights {
			got = append(got, d.ok(id)...)
			break
		}
	}
	deregistered := 0
	for n := range entries {
		deregistered += count(got, "deregister "+base(entries[n].Path)+" CSI/"+names[n]+" inode "+string(rune('1'+n)))
	}
	if deregistered != 5 || got[len(got)-1] != "stopped" {
		t.Errorf("%d deregistered: %v", deregistered, got)
	}
}

// A late result of a probe that Stopping gave up still has its connection closed, even after Stopped.
func TestLateAfterStopped(t *testing.T) {
	d := drive(t, Config{})
	d.step(HandlerAdded{Type: csi})
	d.scan(sock("a", 1, 1))
	if got := d.step(Stopping{}); !slices.Contains(got, "stopped") {
		t.Fatal(got)
	}
	d.want(d.answers(1, csi, "x"), "close 1")
}
