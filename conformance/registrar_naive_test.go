package conformance_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/conformance"
)

// naive is a registrar of the plainest kind: it tells no plugin that it was turned down, knows no endpoints but those announced, and has no idea of errors.
func naive(ctx context.Context, dir string, hs handlers) error {
	known := map[string]bool{}
	for ctx.Err() == nil {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); e.Type() == fs.ModeSocket && !known[path] {
				over(path, func(ctx context.Context, c registerapi.RegistrationClient) {
					info, err := c.GetInfo(ctx, &registerapi.InfoRequest{})
					if err != nil {
						return
					}
					h := hs[info.GetType()] // nil for one that is not known: what follows panics
					if h.ValidatePlugin(ctx, info.GetName(), path, info.GetSupportedVersions()) == nil &&
						h.RegisterPlugin(context.WithoutCancel(ctx), info.GetName(), path, info.GetSupportedVersions(), nil) == nil {
						known[path] = true
						_, _ = c.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: true})
					}
				})
			}
		}
		wait(20 * time.Millisecond)
	}
	return nil
}

// What the author of a registrar is told helps: it is about the rule's own sentence, and says where.
func TestRegistrarNaive(t *testing.T) {
	for id, want := range map[string]string{
		"R1": "", "R2": "",
		"D6":       `^registered only: both paths are registered now$`,
		"R3":       `^its Run returned by itself, with the error panic: .* nil pointer dereference \(registrar_naive_test\.go:\d+\)$`,
		"R9":       `^its Run returned by itself, with the error panic: the handler was told to \(.*\.go:\d+\)$`,
		"R9-hangs": `^no Notify\(true\) of "b" within 1s$`,
	} {
		t.Run(id, func(t *testing.T) {
			rules := conformance.Registrar(conformance.RegistrarSubject{Run: naive, Patience: time.Second, Quiet: 200 * time.Millisecond})
			r := rules[slices.IndexFunc(rules, func(r conformance.Rule) bool { return r.ID == id })]
			err := r.Check(t.Context())
			broken, ok := errors.AsType[*conformance.Broken](err)
			switch {
			case want == "" && err != nil:
				t.Error(err)
			case want != "" && !ok:
				t.Errorf("%v, want it broken", err)
			case want != "" && !regexp.MustCompile(want).MatchString(broken.Text()):
				t.Errorf("it says %q", broken.Text())
			}
		})
	}
}
