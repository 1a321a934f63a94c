package record

import (
	"testing"

	"github.com/plugpoll/plugpoll/state"
)

// The rules themselves are tested in their packages: here each type meets its own.
func TestHandler(t *testing.T) {
	for _, c := range []struct {
		typ, name string
		versions  []string
		want      string
	}{
		{"CSIPlugin", "driver.example.com", []string{"1.0.0"}, ""},
		{"CSIPlugin", "driver.example.com", []string{"v1beta1"}, "x"},
		{"DevicePlugin", "example.com/gpu", []string{"v1beta1"}, ""},
		{"DevicePlugin", "gpu", []string{"v1beta1"}, "x"},
		{"DRAPlugin", "gpu.example.com", []string{"v1.DRAPlugin"}, ""},
		{"DRAPlugin", "gpu.example.com", []string{"1.0.0"}, "x"},
		{"OtherPlugin", "any thing", nil, ""},
	} {
		r := state.Registration{Type: c.typ, Name: c.name, Versions: c.versions, Endpoint: "/run/x.sock"}
		if err := (Handler{}).Validate(t.Context(), r); (err == nil) != (c.want == "") {
			t.Errorf("Validate of %s %s %q is %v", c.typ, c.name, c.versions, err)
		}
	}
}

func TestReport(t *testing.T) {
	r := state.Registration{Type: "CSIPlugin", Name: "driver.example.com", Endpoint: "/run/x\n.sock"}
	var got []state.Report
	if err := (Handler{}).Register(t.Context(), r, func(r state.Report) { got = append(got, r) }); err != nil {
		t.Errorf("Register is %v", err)
	}
	if len(got) != 1 || got[0].Health != state.HealthUnknown || got[0].Message != `recorded; the plugin's own API at "/run/x\n.sock" was not called` {
		t.Errorf("reported %+v", got)
	}
	if err := (Handler{}).Deregister(t.Context(), r); err != nil {
		t.Errorf("Deregister is %v", err)
	}
}
