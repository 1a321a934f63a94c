package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/record"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

func (p plugin) accepts(ctx context.Context) error {
	conn, err := p.dial(ctx, p.Socket)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (p plugin) answersInfo(ctx context.Context) error {
	_, err := p.ask(ctx)
	return err
}

// bounded looks at the length and the characters of each text only: the rest is other rules'.
func (p plugin) bounded(ctx context.Context) error {
	info, err := p.ask(ctx)
	if err != nil {
		return err
	}
	texts := &registerapi.PluginInfo{Type: orX(info.GetType()), Name: orX(info.GetName()), SupportedVersions: info.GetSupportedVersions()}
	if endpoint := info.GetEndpoint(); endpoint != "" {
		_, first := utf8.DecodeRuneInString(endpoint)
		texts.Endpoint = "/" + endpoint[first:]
	}
	_, err = register.Understand(texts, p.Socket, runtime.GOOS)
	return err
}

func orX(s string) string {
	if s == "" {
		return "x"
	}
	return s
}

func (p plugin) endpointFits(ctx context.Context) error {
	info, err := p.ask(ctx)
	if err != nil {
		return err
	}
	_, err = p.endpoint(info)
	return err
}

// endpoint is the path that an answer names, whatever else there is about its text.
func (p plugin) endpoint(info *registerapi.PluginInfo) (string, error) {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return 'x'
		}
		return r
	}, strings.ToValidUTF8(info.GetEndpoint(), "x"))
	found, err := register.Understand(&registerapi.PluginInfo{Type: "x", Name: "x", Endpoint: text[:min(len(text), 4096)]}, p.Socket, runtime.GOOS)
	return found.Endpoint, err
}

func (p plugin) endpointAccepts(ctx context.Context) error {
	info, err := p.ask(ctx)
	if err != nil {
		return err
	}
	path, err := p.endpoint(info)
	if err != nil {
		return err
	}
	conn, err := p.dial(ctx, path)
	if err != nil {
		return fmt.Errorf("the endpoint: %w", err)
	}
	return conn.Close()
}

func (p plugin) stable(ctx context.Context) error {
	return p.with(ctx, func(t *talk) error {
		first, err := t.ask(ctx)
		if err != nil {
			return err
		}
		for range 3 {
			again, err := t.ask(ctx)
			if err != nil {
				return fmt.Errorf("asked again: %w", err)
			}
			if err := differs(first, again); err != nil {
				return err
			}
		}
		return nil
	})
}

// differs is an error if two answers are not the same.
func differs(a, b *registerapi.PluginInfo) error {
	if a.GetType() == b.GetType() && a.GetName() == b.GetName() && a.GetEndpoint() == b.GetEndpoint() &&
		slices.Equal(a.GetSupportedVersions(), b.GetSupportedVersions()) {
		return nil
	}
	return fmt.Errorf("asked again it says %s, after %s", describe(b), describe(a))
}

func describe(i *registerapi.PluginInfo) string {
	return fmt.Sprintf("type %.64q name %.64q endpoint %.128q versions %.28q", i.GetType(), i.GetName(), i.GetEndpoint(), i.GetSupportedVersions())
}

func (p plugin) typeKnown(ctx context.Context) error {
	info, err := p.ask(ctx)
	if err != nil {
		return err
	}
	if known := append(record.Types[:], p.Types...); !slices.Contains(known, info.GetType()) {
		return fmt.Errorf("its type is %.64q, want one of %q", info.GetType(), known)
	}
	return nil
}

// fits has the rule of the type look at an answer in which one part stands for itself, and the other is one that fits.
func (p plugin) fits(ctx context.Context, part func(state.Registration, *registerapi.PluginInfo) state.Registration) error {
	info, err := p.ask(ctx)
	if err != nil {
		return err
	}
	good := fitting[info.GetType()]
	return record.Handler{}.Validate(ctx, part(state.Registration{Type: info.GetType(), Name: good.name, Versions: []string{good.version}}, info))
}

func (p plugin) nameFits(ctx context.Context) error {
	empty := false
	err := p.fits(ctx, func(r state.Registration, info *registerapi.PluginInfo) state.Registration {
		empty = info.GetName() == ""
		r.Name = info.GetName()
		return r
	})
	if err == nil && empty { // of a type that has no rule of its own
		err = errors.New("its name is empty")
	}
	return err
}

func (p plugin) versionsFit(ctx context.Context) error {
	return p.fits(ctx, func(r state.Registration, info *registerapi.PluginInfo) state.Registration {
		r.Versions = info.GetSupportedVersions()
		return r
	})
}

// connectionsAtOnce is how many a plugin must bear at once: that of a registrar, and those of others that look in.
const connectionsAtOnce = 4

func (p plugin) several(ctx context.Context) (err error) {
	for i := range connectionsAtOnce {
		t, opened := p.open(ctx)
		if opened != nil {
			return fmt.Errorf("with %d connections open: %w", i, opened)
		}
		defer func() { err = errors.Join(err, t.Close()) }()
		if _, err := t.ask(ctx); err != nil {
			return fmt.Errorf("over connection %d of several that are open: %w", i+1, err)
		}
	}
	return nil
}

// noticeTime is how long a plugin has to do what it must not: to end because a client is gone, or because it was turned down.
const noticeTime = 100 * time.Millisecond

// halfSaid is the beginning of a connection of HTTP/2, and of its first frame.
const halfSaid = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00"

func (p plugin) survivesClose(ctx context.Context) error {
	if err := p.with(ctx, func(t *talk) error { _, err := t.ask(ctx); return err }); err != nil {
		return err
	}
	raw, err := p.dial(ctx, p.Socket)
	if err != nil {
		return fmt.Errorf("after a connection was closed: %w", err)
	}
	_, err = raw.Write([]byte(halfSaid))
	if err := errors.Join(err, raw.Close(), pause(ctx, noticeTime)); err != nil {
		return fmt.Errorf("closing a connection in the middle of a message: %w", err)
	}
	if _, err := p.ask(ctx); err != nil {
		return fmt.Errorf("after a connection was closed in the middle of a message: %w", err)
	}
	return nil
}

func (p plugin) told(ctx context.Context) error {
	return p.with(ctx, func(t *talk) error {
		for i := range 3 {
			if err := t.tell(ctx, true, ""); err != nil {
				return fmt.Errorf("time %d: %w", i+1, err)
			}
		}
		_, err := t.ask(ctx)
		return err
	})
}

func (p plugin) askedAgain(ctx context.Context) error {
	for i := range 2 {
		err := p.with(ctx, func(t *talk) error {
			if _, err := t.ask(ctx); err != nil {
				return err
			}
			return t.tell(ctx, true, "")
		})
		if err != nil && i > 0 {
			err = fmt.Errorf("after it was registered and the connection closed: %w", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p plugin) survivesRejection(ctx context.Context) error {
	err := p.with(ctx, func(t *talk) error {
		if _, err := t.ask(ctx); err != nil {
			return err
		}
		_ = t.tell(ctx, false, "a check by plugpoll: this plugin is turned down on purpose, and will be asked again") // that it cannot be delivered is no error
		return pause(ctx, noticeTime)
	})
	if err != nil {
		return err
	}
	if _, err := p.ask(ctx); err != nil {
		return fmt.Errorf("after it was turned down: %w", err)
	}
	return nil
}

// remakePause is the time between two looks for a socket that is to be made anew.
const remakePause = 20 * time.Millisecond

func (p plugin) remakes(ctx context.Context) error {
	if err := p.FS.Remove(p.Socket); err != nil {
		return fmt.Errorf("removing its socket: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	var last error
	for pause(ctx, remakePause) == nil {
		if _, last = (bench{FSSubject{FS: p.FS}}).lstat(p.Socket); errors.Is(last, fs.ErrNotExist) {
			continue
		}
		if _, last = p.ask(ctx); last == nil {
			return nil
		}
	}
	return fmt.Errorf("%v after its socket %s was removed: %w", p.Patience, scanner.Quote(p.Socket), given(last))
}
