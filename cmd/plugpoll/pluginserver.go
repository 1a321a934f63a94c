package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// pluginServer answers as the flags say.
type pluginServer struct {
	registerapi.UnimplementedRegistrationServer
	*pluginOptions
	log   *pluginLog
	asked atomic.Int64
}

// serve binds the socket and answers until ctx or a signal ends it.
func (o *pluginOptions) serve(ctx context.Context, log *pluginLog) error {
	signal.Ignore(syscall.SIGPIPE) // a plugin whose lines nobody reads any more still serves
	ctx, end := signal.NotifyContext(ctx, stopSignals()...)
	defer end()
	socket, err := bind(ctx, o.socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, &pluginServer{pluginOptions: o, log: log})
	log.listening()
	served := make(chan error, 1)
	go func() { served <- server.Serve(socket) }()
	select {
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		log.stopping()
		end() // a second signal ends it at once
	}
	if !o.keep {
		err = errors.Join(err, socket.remove())
	}
	server.Stop()
	return err
}

// GetInfo says what the plugin is, after the delay and the failures that were asked for.
func (s *pluginServer) GetInfo(ctx context.Context, _ *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	n := s.asked.Add(1)
	if s.slow > 0 {
		timer := time.NewTimer(s.slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			s.log.asked("gave up: " + ctx.Err().Error())
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	if n <= int64(s.fail) {
		reason := fmt.Sprintf("failing on purpose, %d of %d", n, s.fail)
		s.log.asked(reason)
		return nil, status.Error(codes.Unavailable, reason)
	}
	s.log.asked("")
	return &registerapi.PluginInfo{Type: s.typ, Name: s.name, Endpoint: s.endpoint, SupportedVersions: s.versions}, nil
}

// NotifyRegistrationStatus hears what became of it.
func (s *pluginServer) NotifyRegistrationStatus(_ context.Context, r *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	s.log.told(r.GetPluginRegistered(), r.GetError())
	return &registerapi.RegistrationStatusResponse{}, nil
}
