package cni

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containernetworking/cni/pkg/types"
)

func TestStatusThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		release := make(chan struct{})
		err := within(ctx, func() error {
			<-release
			return nil
		})
		if !errors.Is(err, errStuck) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) >= 2*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		close(release)

		late := errors.New("late")
		if err := within(ctx, func() error {
			time.Sleep(stuckAfter / 2) //nolint:forbidigo // of the bubble
			return late
		}); !errors.Is(err, late) {
			t.Errorf("an answer that comes late: %v", err)
		}
	})
}

// TestStatusText says what becomes of a plugin's own words: above all of one that does not know STATUS.
func TestStatusText(t *testing.T) {
	const older = `/bin/x is made for a CNI older than the configuration's cniVersion (`
	const fix = `); install a newer one, or lower the cniVersion below 1.1.0`
	tests := []struct {
		said types.Error
		want string
	}{
		{types.Error{Code: 50, Msg: "no addresses left"}, "no addresses left (code 50)"},
		{types.Error{Code: 51, Msg: "a", Details: "b"}, "a; b (code 51)"},
		{types.Error{}, "it fails and does not say why"},
		{types.Error{Code: 999}, "it fails and does not say why (code 999)"},
		{types.Error{Msg: "two\nlines\x1b[2J"}, `two\nlines\x1b[2J`},
		// pkg/skel before 1.2.0 of the library.
		{types.Error{Code: 4, Msg: "unknown CNI_COMMAND: STATUS"}, older + "unknown CNI_COMMAND: STATUS" + fix},
		// pkg/skel since, in a plugin that does not support 1.1.0.
		{types.Error{Code: 1, Msg: "plugin version does not allow STATUS"}, older + "plugin version does not allow STATUS" + fix},
		{types.Error{Code: 1, Msg: "incompatible CNI versions", Details: `config is "1.1.0", plugin supports ["1.0.0"]`}, older + `incompatible CNI versions; config is "1.1.0", plugin supports ["1.0.0"]` + fix},
		{types.Error{Code: 4, Msg: "required env variables [CNI_PATH] missing"}, "required env variables [CNI_PATH] missing (code 4)"},
	}
	for _, test := range tests {
		if got := statusText(&test.said, "/bin/x"); got != test.want {
			t.Errorf("%+v: %s\nwant %s", test.said, got, test.want)
		}
	}
	if got := statusText(&types.Error{Msg: strings.Repeat("x", 1<<20)}, "/bin/x"); len(got) > maxText {
		t.Errorf("%d bytes", len(got))
	}
}
