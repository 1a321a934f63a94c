package conformance_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

var errBroken = errors.New("not by me")

// refuses has Validate fail for some plugins.
func refuses(r *brokenRun, which func(name, endpoint string) bool) {
	r.validate = func(next func() error, name, endpoint string) error {
		if which(name, endpoint) {
			return errBroken
		}
		return next()
	}
}

// often does something every few milliseconds until the run ends.
func (r *brokenRun) often(do func()) func() {
	return func() {
		for {
			select {
			case <-r.ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
				do()
			}
		}
	}
}

// exists looks for an entry of the root.
func (r *brokenRun) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, name))
	return err == nil
}

func wait(d time.Duration) { <-time.After(d) }

// over opens a connection to a plugin for a call.
func over(path string, call func(context.Context, registerapi.RegistrationClient)) {
	conn, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return register.DialUnix(ctx, scanner.Entry{Path: path, Maybe: true})
		}))
	if err != nil {
		return
	}
	defer conn.Close()                                                    //nolint:errcheck // it was open
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) //nolint:usetesting // it runs on in a registrar
	defer cancel()
	call(ctx, registerapi.NewRegistrationClient(conn))
}

func ask(path string) {
	over(path, func(ctx context.Context, c registerapi.RegistrationClient) {
		_, _ = c.GetInfo(ctx, &registerapi.InfoRequest{})
	})
}

// gate lets one at a time through.
type gate chan struct{}

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dials puts something in front of a Manager's own Dialer, and after it.
func dials(r *brokenRun, before, after func(ctx context.Context, name string) error) {
	r.cfg.Dial = func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
		if err := before(ctx, filepath.Base(e.Path)); err != nil {
			return nil, err
		}
		conn, err := register.DialUnix(ctx, e)
		if err != nil {
			return nil, errors.Join(err, after(ctx, filepath.Base(e.Path)))
		}
		return conn, nil
	}
}

// sameAt returns whether something of which info tells is at another path of a directory now.
func sameAt(dir, not string, info fs.FileInfo) bool {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		other, err := e.Info()
		if err == nil && filepath.Join(dir, e.Name()) != not && os.SameFile(info, other) && info.ModTime().Equal(other.ModTime()) {
			return true
		}
	}
	return false
}

// forgetsMoved has Deregister left out where what of returns for the endpoint is at another path of the root.
func forgetsMoved(r *brokenRun, of func(endpoint string) string) {
	var known sync.Map
	r.register = func(next func() error, _, endpoint string) error {
		if info, err := os.Lstat(of(endpoint)); err == nil {
			known.Store(endpoint, info)
		}
		return next()
	}
	r.deregister = func(next func(), _, endpoint string) {
		if info, ok := known.Load(endpoint); ok && of(endpoint) != r.dir && sameAt(r.dir, of(endpoint), info.(fs.FileInfo)) {
			return
		}
		next()
	}
}

// brokenRegistrars has for each rule what makes a Manager break it.
var brokenRegistrars = map[string]func(*brokenRun){
	"":   func(*brokenRun) {},
	"R1": func(r *brokenRun) { r.instead = func() bool { return true } },
	"R1/again": func(r *brokenRun) {
		r.register = func(next func() error, _, _ string) error { return errors.Join(next(), next()) }
	},
	"R1-given":          func(r *brokenRun) { r.versions = func(v []string) []string { return v[:1] } },
	"R1-given/endpoint": func(r *brokenRun) { r.passesEmpty = true },
	"D1": func(r *brokenRun) {
		early := r.exists("early")
		refuses(r, func(name, _ string) bool { return early && name == "early" })
	},
	"D1-inotify": func(*brokenRun) {},
	"D2": func(r *brokenRun) {
		r.beside = r.often(func() {
			if f, err := os.OpenFile(filepath.Join(r.dir, "fifo"), os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
				wait(10 * time.Millisecond)
				_ = f.Close()
			}
		})
	},
	"D3": func(r *brokenRun) {
		var hidden sync.Map
		r.beside = r.often(func() {
			if r.exists(".shown") {
				hidden.Store("shown", true)
			}
		})
		refuses(r, func(_, endpoint string) bool {
			_, was := hidden.Load(filepath.Base(endpoint))
			return was
		})
	},
	"D3/early": func(r *brokenRun) {
		r.beside = r.often(func() {
			if path := filepath.Join(r.dir, ".shown"); r.exists(".shown") {
				_ = r.h.ValidatePlugin(r.ctx, "hidden", path, nil)
			}
		})
	},
	"D3-directory": func(r *brokenRun) {
		r.beside = r.often(func() {
			if r.exists(".late/a") {
				_ = r.h.ValidatePlugin(r.ctx, "late", filepath.Join(r.dir, ".late", "a"), nil)
			}
		})
	},
	"D4": func(r *brokenRun) {
		refuses(r, func(_, endpoint string) bool {
			below, ok := strings.CutPrefix(endpoint, r.dir+string(filepath.Separator))
			return ok && filepath.Base(below) != below
		})
	},
	"D5": func(r *brokenRun) {
		refuses(r, func(_, endpoint string) bool {
			info, err := os.Lstat(endpoint)
			return err == nil && info.Mode()&fs.ModeSymlink != 0
		})
	},
	"D5-root": func(r *brokenRun) {
		r.instead = func() bool {
			info, err := os.Lstat(r.dir)
			return err == nil && info.Mode()&fs.ModeSymlink != 0
		}
	},
	"D6": func(r *brokenRun) { forgetsMoved(r, func(endpoint string) string { return endpoint }) },
	"D7": func(r *brokenRun) { forgetsMoved(r, filepath.Dir) },
	"D7-remade": func(r *brokenRun) {
		r.beside = r.often(func() {
			if !r.exists("") && r.ctx.Err() == nil {
				r.cancel()
			}
		})
		r.instead = func() bool { return false }
		if !r.exists("") {
			r.beside = nil // D8
		}
	},
	"D7-mounted": func(r *brokenRun) {
		first, err := os.Stat(r.dir)
		if err != nil {
			return // D8
		}
		missed := false
		r.beside = r.often(func() {
			now, err := os.Stat(r.dir)
			missed = missed || err != nil // D7-remade
			if !missed && !os.SameFile(first, now) {
				r.cancel()
			}
		})
	},
	"D8": func(r *brokenRun) { r.instead = func() bool { return !r.exists("") } },
	"D10": func(r *brokenRun) {
		refuses(r, func(_, endpoint string) bool { return strings.Contains(endpoint, "#") })
	},
	"I4": func(r *brokenRun) {
		r.beside = r.often(func() {
			path := filepath.Join(r.dir, "a")
			if info, err := os.Lstat(path); err == nil && info.Mode().Perm() == 0o600 {
				r.h.DeRegisterPlugin(r.ctx, "a", path)
			}
		})
	},
	"R2": func(r *brokenRun) {
		r.register = func(next func() error, name, endpoint string) error {
			err := next()
			if err != nil {
				r.h.DeRegisterPlugin(r.ctx, name, endpoint)
			}
			return err
		}
	},
	"R3":       func(r *brokenRun) { r.others = handlers{"OtherPlugin": kubeletHandler{}} },
	"R3-known": func(r *brokenRun) { r.others = handlers{"OtherPlugin": noHandler{}} },
	"R3-cause": func(r *brokenRun) {
		r.validate = func(next func() error, _, _ string) error {
			if next() != nil {
				return errBroken
			}
			return nil
		}
	},
	"R3-text": func(r *brokenRun) {
		r.validate = func(next func() error, _, endpoint string) error {
			err := next()
			if err != nil && len(err.Error()) > 1024 {
				over(endpoint, func(ctx context.Context, c registerapi.RegistrationClient) {
					_, _ = c.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{Error: strings.ToValidUTF8(err.Error(), "?")})
				})
			}
			return err
		}
	},
	"R4": func(r *brokenRun) {
		r.register = func(next func() error, name, endpoint string) error {
			err := next()
			if name == "deaf" {
				r.work.Go(func() {
					wait(50 * time.Millisecond)
					r.h.DeRegisterPlugin(r.ctx, name, endpoint)
				})
			}
			return err
		}
	},
	"R5": func(r *brokenRun) {
		r.deregister = func(next func(), _, _ string) {
			next()
			next()
		}
	},
	"R6":         func(r *brokenRun) { r.deregister = pausesFor("again") },
	"R6-renamed": func(r *brokenRun) { r.deregister = pausesFor("over") },
	"R7": func(r *brokenRun) {
		r.register = func(next func() error, name, _ string) error {
			if name != "one" {
				return next()
			}
			r.work.Go(func() { _ = next() })
			return nil
		}
	},
	"R8": func(r *brokenRun) {
		r.validate = func(next func() error, _, _ string) error {
			if err := next(); err != nil {
				return register.Permanent(err)
			}
			return nil
		}
	},
	"R8-added": func(r *brokenRun) { r.takesNone = true },
	"R9": func(r *brokenRun) {
		r.register = func(next func() error, _, _ string) (err error) {
			defer func() {
				if recover() != nil {
					err = register.Permanent(errBroken)
				}
			}()
			return next()
		}
	},
	"R9-others": func(r *brokenRun) {
		var bad sync.Map
		r.register = func(next func() error, name, _ string) error {
			_, own := bad.Load(name)
			if _, any := bad.Load("any"); any && !own {
				return errBroken
			}
			defer func() {
				if v := recover(); v != nil {
					bad.Store(name, true)
					bad.Store("any", true)
					panic(v)
				}
			}()
			return next()
		}
	},
	"R9-hangs": func(r *brokenRun) {
		var mu sync.Mutex
		r.register = func(next func() error, _, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			return next()
		}
	},
	"R10": func(r *brokenRun) { r.cfg.InfoTimeout = time.Second },
	"R11": func(r *brokenRun) {
		g := make(gate, 1)
		dials(r, func(ctx context.Context, name string) error {
			err := g.enter(ctx)
			if err == nil && !strings.HasPrefix(name, "hung") {
				<-g
			}
			return err
		}, func(context.Context, string) error { return nil })
	},
	"R11-dead": func(r *brokenRun) {
		g := make(gate, 1)
		dials(r, func(ctx context.Context, _ string) error {
			err := g.enter(ctx)
			if err == nil {
				<-g
			}
			return err
		}, func(ctx context.Context, name string) error {
			if !strings.HasPrefix(name, "dead") || name == "dead" {
				return nil
			}
			return g.enter(ctx)
		})
	},
	"R12": func(r *brokenRun) {
		var mu sync.Mutex
		fails, until := 0, time.Time{}
		r.validate = func(next func() error, _, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			err := next()
			if err != nil {
				if fails++; fails == 4 {
					until = time.Now().Add(5 * time.Second)
				}
			}
			if time.Now().Before(until) {
				return errBroken
			}
			return err
		}
	},
	"R13": func(r *brokenRun) {
		r.beside = r.often(func() {
			if r.exists("foreign") {
				ask(filepath.Join(r.dir, "foreign"))
			}
		})
	},
	"R15": func(r *brokenRun) { refuses(r, func(_, endpoint string) bool { return len(endpoint) > 107 }) },
	"R16": func(r *brokenRun) {
		r.beside = r.often(func() {
			if r.exists("long") {
				_ = r.h.ValidatePlugin(r.ctx, strings.Repeat("n", 300), filepath.Join(r.dir, "long"), nil)
			}
		})
	},
	"R16/control": func(r *brokenRun) {
		r.beside = r.often(func() {
			if r.exists("control") {
				_ = r.h.RegisterPlugin(r.ctx, "a\nb", filepath.Join(r.dir, "control"), nil, nil)
			}
		})
	},
	"R17": func(r *brokenRun) {
		r.beside = r.often(func() {
			if conn, err := net.Dial("unix", filepath.Join(r.dir, "rude")); err == nil {
				_ = conn.Close()
			}
		})
	},
	"N1": func(r *brokenRun) {
		var names sync.Map
		r.register = func(next func() error, name, endpoint string) error {
			if other, taken := names.LoadOrStore(name, endpoint); taken && other != endpoint {
				return errBroken
			}
			return next()
		}
		r.deregister = func(next func(), name, endpoint string) {
			names.CompareAndDelete(name, endpoint)
			next()
		}
	},
	"L1": func(r *brokenRun) {
		r.deregister = func(next func(), name, _ string) {
			if name != "anew" {
				next()
			}
		}
	},
	"L2":       func(r *brokenRun) { r.cfg.LivenessGrace = -1 },
	"L2/early": func(r *brokenRun) { r.cfg.LivenessGrace = time.Millisecond },
	"L3": func(r *brokenRun) {
		r.beside = r.often(func() {
			if r.exists("idle") {
				ask(filepath.Join(r.dir, "idle"))
			}
		})
	},
	"S1": func(r *brokenRun) {
		r.after = func() error {
			if r.exists("last") {
				wait(brokenPatience + brokenQuiet)
			}
			return nil
		}
	},
	"S1/calls": func(r *brokenRun) {
		r.after = func() error {
			if r.exists("last") {
				r.work.Go(func() {
					wait(brokenQuiet / 2)
					r.h.DeRegisterPlugin(context.WithoutCancel(r.ctx), "last", "")
				})
			}
			return nil
		}
	},
	"S1/fails": func(r *brokenRun) { r.after = func() error { return errBroken } },
	"S2":       func(r *brokenRun) { r.cfg.DeregisterOnStop = true },
	"S3": func(r *brokenRun) {
		r.register = func(next func() error, name, endpoint string) error {
			if name == "open" {
				conn, err := net.Dial("unix", endpoint)
				if err != nil {
					return err
				}
				r.work.Go(func() {
					<-r.ctx.Done()
					wait(brokenPatience + brokenQuiet)
					_ = conn.Close()
				})
			}
			return next()
		}
	},
	"X5": func(r *brokenRun) {
		r.beside = r.often(func() {
			if r.exists("tcp") {
				_ = r.h.ValidatePlugin(r.ctx, "tcp", "tcp://127.0.0.1:80", nil)
			}
		})
	},
}

// pausesFor has a Deregister take long.
func pausesFor(plugin string) func(next func(), name, endpoint string) {
	return func(next func(), name, _ string) {
		next()
		if name == plugin {
			wait(150 * time.Millisecond)
		}
	}
}

// noHandler turns down what it is given, as if it were not there.
type noHandler struct{ kubeletHandler }

func (noHandler) ValidatePlugin(context.Context, string, string, []string) error {
	return errors.New(`there is no handler for "OtherPlugin"`)
}
