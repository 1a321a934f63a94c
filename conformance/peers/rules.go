package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/plugpoll/plugpoll/conformance"
	"github.com/plugpoll/plugpoll/register"
)

// noInotify has a process run where the kernel has no inotify instance to give.
var noInotify = []string{"unshare", "--user", "--map-root-user", "sh", "-euc", `echo 0 >/proc/sys/user/max_inotify_instances; exec "$@"`, "noinotify"}

// registrar is a peer as package conformance holds it to its rules: a process for each rule, with the defaults of its makers.
func registrar(peer string) conformance.RegistrarSubject {
	type handlers = map[string]register.KubeletHandler
	return conformance.RegistrarSubject{
		Run: func(ctx context.Context, dir string, hs handlers) error { return serve(ctx, peer, dir, hs, nil) },
		Adding: func(ctx context.Context, dir string, hs handlers, added <-chan handlers) error {
			return serve(ctx, peer, dir, hs, added)
		},
		NoInotify: func(ctx context.Context, dir string, hs handlers) error {
			return serve(ctx, peer, dir, hs, nil, noInotify...)
		},
		Quiet: 3 * time.Second, // the kubelet looks once a second
	}
}

// verdict is what came of a rule.
type verdict struct {
	mark, seen string
}

func verdictOf(res conformance.Result) verdict {
	switch broken, ok := res.Err.(*conformance.Broken); { //nolint:errorlint // as it is returned
	case res.Skipped != "":
		return verdict{"–", res.Skipped}
	case ok:
		return verdict{"✗", broken.Text()}
	case res.Err != nil:
		return verdict{"?", res.Err.Error()}
	}
	return verdict{"✓", res.Seen}
}

// judge holds every registrar to every rule that matches, many at a time, prints the table and returns how many plugpoll was seen not to keep.
func judge(ctx context.Context, out io.Writer, matches *regexp.Regexp) (broken int) {
	peers := []string{"plugpoll", "kubelet"}
	var rules []conformance.Rule
	verdicts := make([][]verdict, len(peers))
	var all sync.WaitGroup
	for i, peer := range peers {
		rules = nil
		for _, r := range conformance.Registrar(registrar(peer)) {
			if matches.MatchString(r.ID + " " + r.Sentence) {
				rules = append(rules, r)
			}
		}
		own := rules
		all.Go(func() {
			for res := range conformance.Check(ctx, own) {
				verdicts[i] = append(verdicts[i], verdictOf(res))
			}
		})
	}
	all.Wait()
	fmt.Fprintf(out, "\n| rule | | plugpoll | kubelet |\n|---|---|---|---|\n")
	kept := make([]int, len(peers))
	for n, r := range rules {
		fmt.Fprintf(out, "| %s | %s |", r.ID, r.Sentence)
		for i := range peers {
			v := verdict{"?", "not checked"}
			if n < len(verdicts[i]) {
				v = verdicts[i][n]
			}
			fmt.Fprintf(out, " %s |", strings.TrimSpace(v.mark+" "+strings.ReplaceAll(v.seen, "|", "/")))
			switch {
			case v.mark == "✓":
				kept[i]++
			case i == 0 && v.mark != "–":
				broken++
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "| | kept, of %d | %d | %d |\n\n", len(rules), kept[0], kept[1])
	return broken
}
