package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// testType is the type of the plugins.
const testType = "CSIPlugin"

// farm is a process with any number of real plugins. Of each it says "listening" when its socket listens and is in place, "removed" when its socket is
// away, and "told" or "refused" when it is told what became of its registration.
type farm struct {
	*mouthpiece
	plugins map[string]*plugin // by path
	started int
}

// plugin is one of them.
type plugin struct {
	registerapi.UnimplementedRegistrationServer
	*mouthpiece
	order
	server *grpc.Server

	mu   sync.Mutex
	path string
}

func playFarm(say *mouthpiece) {
	f := &farm{mouthpiece: say, plugins: map[string]*plugin{}}
	obeyAll(say, f.obey)
}

func (f *farm) obey(o order) (note, error) {
	p := f.plugins[o.Path]
	if p == nil && o.Do != "start" && o.Do != "all" {
		return note{}, errors.New("there is no such plugin")
	}
	switch o.Do {
	case "all": // All, in turn
		for _, one := range o.All {
			if _, err := f.obey(one); err != nil {
				return note{}, fmt.Errorf("%s of %q: %w", one.Do, one.Path, err)
			}
		}
	case "start": // a plugin at Path, which may be taken by what a dead one has left
		if err := os.Remove(o.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return note{}, err
		}
		return note{}, f.start(o, o.Path)
	case "unlink": // its socket is removed, and it lives on
		return note{}, f.remove(o.Path)
	case "rebind": // the socket is removed and made anew at once
		if err := f.remove(o.Path); err != nil {
			return note{}, err
		}
		return note{}, errors.Join(f.start(o, o.Path), p.end())
	case "replace": // the same, but by a rename over the old socket
		f.started++
		return note{}, errors.Join(f.start(o, filepath.Join(filepath.Dir(o.Path), fmt.Sprintf(".new%d", f.started))), p.end())
	case "rename": // the socket, to To
		if err := os.Rename(o.Path, o.To); err != nil {
			return note{}, err
		}
		f.say(note{What: "listening", Path: o.To, Name: p.Name})
		delete(f.plugins, o.Path)
		f.plugins[o.To] = p
		p.mu.Lock()
		defer p.mu.Unlock()
		p.path = o.To
	default:
		return note{}, errors.New("a farm cannot do that")
	}
	return note{}, nil
}

func (f *farm) remove(path string) error {
	err := os.Remove(path)
	f.say(note{What: "removed", Path: path})
	return err
}

func (p *plugin) end() error {
	p.server.Stop()
	return nil
}

// start has a plugin listen at a path, renamed to o.Path if that is another one.
func (f *farm) start(o order, at string) error {
	l, err := listen(at)
	if err != nil {
		return err
	}
	began := clock()
	l.SetUnlinkOnClose(false)
	p := &plugin{mouthpiece: f.mouthpiece, order: o, path: o.Path, server: grpc.NewServer()}
	registerapi.RegisterRegistrationServer(p.server, p)
	go func() { _ = p.server.Serve(l) }()
	if at != o.Path {
		if err := os.Rename(at, o.Path); err != nil {
			return err
		}
		began = clock()
	}
	f.plugins[o.Path] = p
	f.say(note{At: began, What: "listening", Path: o.Path, Name: o.Name})
	return nil
}

// listen binds through a handle of the directory, so that a path may have any length.
func listen(path string) (*net.UnixListener, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), Net: "unix"})
}

func (p *plugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: testType, Name: p.Name, SupportedVersions: []string{"1.0.0"}}, nil
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	n := note{What: "told", Name: p.Name, Error: s.GetError()}
	if !s.GetPluginRegistered() {
		n.What = "refused"
	}
	p.mu.Lock()
	n.Path = p.path
	p.mu.Unlock()
	p.say(n)
	return &registerapi.RegistrationStatusResponse{}, nil
}
