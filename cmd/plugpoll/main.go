// Command plugpoll is the daemon that registers the plugins whose sockets are in its directories, and the tools to try it out.
package main

import (
	"context"
	"io"
	"os"

	"google.golang.org/grpc/grpclog"
)

func main() {
	// gRPC's own log is one for the process and speaks of what the daemon's log says better (R17).
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	os.Exit(execute(context.Background(), os.Args[1:], os.Stderr))
}

// execute runs one command line, says on stderr what went wrong, and returns the exit code.
func execute(ctx context.Context, args []string, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	complain(stderr, err)
	return exitCode(err)
}
