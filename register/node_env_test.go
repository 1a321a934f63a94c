//go:build linux

package register

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/scanner"
)

// envNode is a Manager on a directory of the environment that a test makes.
type envNode struct {
	*realNode
	log *output
}

// startEnvNode starts a Manager on one root, until the test ends.
func startEnvNode(t *testing.T, root scanner.Config) *envNode {
	t.Helper()
	n := &envNode{realNode: &realNode{T: t, dir: root.Root, h: newTaker()}, log: &output{}}
	m, err := NewManager(Config{
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: n.log, DisableTime: true}),
		Roots:  []scanner.Config{root},
		Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
			n.mu.Lock()
			n.dials = append(n.dials, filepath.Base(e.Path))
			n.mu.Unlock()
			return dialUnix(ctx, e)
		},
	})
	n.must(err)
	n.m = m
	n.must(m.AddHandler(testType, n.h))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if t.Failed() {
			t.Log("log:\n" + n.log.String())
		}
	})
	return n
}

// awaitRoot waits until View shows what is wanted of the root's error, empty if it has none.
func (n *envNode) awaitRoot(what string, wanted func(problem string) bool) {
	n.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(20 * time.Second)
	for range ticker.C {
		r := n.m.View().Roots[0]
		if wanted(r.Error) {
			return
		}
		if time.Now().After(deadline) {
			n.Fatalf("the root is not %s: %+v", what, r)
		}
	}
}
