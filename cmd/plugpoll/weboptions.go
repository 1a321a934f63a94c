package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"runtime"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
)

// webOptions are the flags of run that say where it answers.
type webOptions struct {
	listen, metricsListen string

	status, metrics address
	asked           bool // --listen was given: that it cannot be had is an error
}

func (o *webOptions) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.listen, "listen", defaultListen, "`address` to answer status, why, watch and browsers at: HOST:PORT, unix:/PATH, or none")
	cmd.Flags().StringVar(&o.metricsListen, "metrics-listen", "", "another `address` for /metrics, /healthz and /readyz alone (default none)")
	complete(cmd, "listen", defaultListen, "none")
	complete(cmd, "metrics-listen", "none")
}

// check reads the flags.
func (o *webOptions) check(cmd *cobra.Command, dirs []string) error {
	o.asked = cmd.Flags().Changed("listen")
	var errs [2]error
	o.status, errs[0] = parseAddress("--listen", o.listen)
	o.metrics, errs[1] = parseAddress("--metrics-listen", o.metricsListen)
	if errors.Join(errs[:]...) == nil {
		errs = [2]error{outside("--listen", o.status, dirs), outside("--metrics-listen", o.metrics, dirs)}
	}
	if o.status == o.metrics && !o.status.isZero() && errs[1] == nil && o.status.at != "" && !freePort(o.status) {
		errs[1] = usagef("--metrics-listen is the same as --listen, where the metrics are as well: leave it out, or name another address")
	}
	return usage(errs[:]...)
}

func freePort(a address) bool {
	_, port, _ := net.SplitHostPort(a.at)
	return a.network == "tcp" && port == "0"
}

// outside refuses a socket that the daemon would take for a plugin's.
func outside(flag string, a address, dirs []string) error {
	inside := func(dir string) bool { return scanner.Nested(dir, a.at, runtime.GOOS) }
	if a.network == "unix" && slices.ContainsFunc(dirs, inside) {
		return usagef("%s is %s, inside a watched directory: it would be taken for a plugin", flag, a)
	}
	return nil
}

// serve opens what the flags ask for. A daemon that merely found its usual port taken works on without.
func (o *webOptions) serve(ctx context.Context, f followed, log hclog.Logger) (*web, error) {
	w := &web{log: log, unfollow: func() {}}
	if o.status.isZero() && o.metrics.isZero() {
		return w, nil
	}
	s := newSite(f.plugins, f.interval, metricsOf(f.collectors()), f.cni...)
	following, unfollow := context.WithCancel(context.WithoutCancel(ctx)) // the last events are those of Run's end
	w.unfollow = unfollow
	events := f.plugins.Events(following)
	var ofCNI []iter.Seq[cni.Event]
	for _, one := range f.cni {
		ofCNI = append(ofCNI, one.Events(following))
	}
	w.serving.Go(func() { s.feed.run(events, ofCNI...) })
	for _, one := range []struct {
		flag    string
		at      address
		handler http.Handler
		must    bool
	}{
		{"--listen", o.status, s.status(o.status), o.asked},
		{"--metrics-listen", o.metrics, s.numbers(), true},
	} {
		if one.at.isZero() {
			continue
		}
		addr, err := w.open(ctx, one.at, one.handler)
		switch {
		case err == nil:
			where := one.at.String() // as --address takes it
			if one.at.network == "tcp" {
				where = addr.String() // which port it is, if any was wanted
			}
			log.Info("answering", "flag", one.flag, "address", shown(where))
			if !one.at.local() && one.flag == "--listen" {
				log.Warn("other machines can read the names and errors of all plugins here", "address", shown(where))
			}
		case one.must:
			w.close()
			return nil, fmt.Errorf("%s: %w", one.flag, err)
		default:
			log.Warn("not answering: status, why, watch and browsers find nothing here; name another address with --listen, or none", "error", shown(err.Error()))
		}
	}
	return w, nil
}

// metricsOf serves what is collected.
func metricsOf(all []prometheus.Collector) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(all...)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}
