package register

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// The bounds of what a plugin may say of itself (R16), in bytes but for the number of versions.
const (
	maxAnswer   = 1 << 20
	maxHeaders  = 64 << 10 // gRPC's default is 16 MiB; an error's text comes in them
	maxName     = 253      // of a DNS name, which is what the kubelet's own handlers take at most
	maxType     = 253
	maxEndpoint = 4096 // PATH_MAX
	maxVersions = 64
	maxVersion  = 256
	// maxErrorText is how much is kept of the text of an error that a plugin, or a handler, returns.
	maxErrorText = 1024
)

// understand checks an answer as far as it can be judged without a handler.
func understand(answer *registerapi.PluginInfo, socket, goos string) (state.Info, error) {
	if err := bounded(answer); err != nil {
		return state.Info{}, err
	}
	endpoint, err := endpointPath(answer.GetEndpoint(), socket, goos)
	switch {
	case answer.GetType() == "":
		return state.Info{}, errors.New("the answer has no plugin type")
	case answer.GetName() == "":
		return state.Info{}, errors.New("the answer has no plugin name")
	case err != nil:
		return state.Info{}, err
	}
	return state.Info{Type: answer.GetType(), Name: answer.GetName(), Endpoint: endpoint, Versions: answer.GetSupportedVersions()}, nil
}

// bounded checks each text of an answer (R16).
func bounded(answer *registerapi.PluginInfo) error {
	for _, f := range []struct {
		field, text string
		limit       int
	}{
		{"type", answer.GetType(), maxType},
		{"name", answer.GetName(), maxName},
		{"endpoint", answer.GetEndpoint(), maxEndpoint},
	} {
		if err := boundedText(f.field, f.text, f.limit); err != nil {
			return err
		}
	}
	versions := answer.GetSupportedVersions()
	if len(versions) > maxVersions {
		return fmt.Errorf("supported_versions has %d versions, more than %d: name fewer", len(versions), maxVersions)
	}
	for i, v := range versions {
		if err := boundedText(fmt.Sprintf("supported_versions[%d]", i), v, maxVersion); err != nil {
			return err
		}
	}
	return nil
}

func boundedText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return fmt.Errorf("%s has %d bytes, more than %d: shorten it", field, len(text), limit)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s is not valid UTF-8: %s", field, scanner.Clean(text, 256))
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%s holds a control character: remove it from %s", field, scanner.Clean(text, 256))
	}
	return nil
}

// tooLarge reports whether gRPC did not read an answer for its size. It has no other way to say so than in words.
func tooLarge(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.ResourceExhausted && strings.HasPrefix(s.Message(), "grpc: ") && strings.Contains(s.Message(), "larger than max")
}
