package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/conformance/peers/measured"
)

// roleVariable is the environment variable that says which role a process has.
const roleVariable = "PEERS_ROLE"

// play plays the role of this process to its end, if it has one.
func play() bool {
	say := &mouthpiece{enc: json.NewEncoder(os.Stdout)}
	switch role := os.Getenv(roleVariable); {
	case role == "farm":
		playFarm(say)
	case registrars[role] != nil:
		playAgent(say, registrars[role]())
	default:
		return false
	}
	return true
}

func main() {
	if play() {
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer cancel()
	if err := compare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context) error {
	short := flag.Bool("short", false, "measure in about five minutes instead of ten")
	run := flag.String("run", "", "hold them only to the rules whose id and sentence match this `regexp`, and measure nothing")
	only := flag.String("only", "", "`what` to do alone: rules, figures or scan")
	file := flag.String("keep", "", "`file` to keep what is measured in, for the program plots")
	flag.Parse()
	matches, err := regexp.Compile(*run)
	if err != nil {
		return err
	}
	does := func(what string) bool { return (*only == "" || *only == what) && (what == "rules" || *run == "") }
	kept := &measured.Run{About: about(*short)}
	fmt.Println(kept.About)
	var errs []error
	if does("rules") {
		if broken := judge(ctx, os.Stdout, matches); broken > 0 {
			errs = append(errs, fmt.Errorf("plugpoll was not seen to keep %d of the rules", broken))
		}
	}
	if does("figures") {
		errs = append(errs, newFigures(ctx, os.Stdout, *short, kept).all())
	}
	if does("scan") {
		kept.Scan, err = scans(ctx)
		errs = append(errs, err)
	}
	if *file != "" && ctx.Err() == nil {
		errs = append(errs, kept.Write(*file))
	}
	return errors.Join(errs...)
}

// scans runs the benchmark of the scanner that is part of our own module, and prints nothing of it.
func scans(ctx context.Context) ([]measured.Scan, error) {
	bench := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkScan$/././^("+measured.Unchanged+"|"+measured.First+")$", "-timeout", "1h", "./scanner")
	bench.Dir = filepath.Join("..", "..")
	output, err := bench.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("the benchmark of the scanner: %w\n%s", err, output)
	}
	return measured.ParseScan(bytes.NewReader(output))
}

// about says when, where and of what the tables are.
func about(short bool) string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	var versions []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "k8s.io/kubernetes", "google.golang.org/grpc":
				versions = append(versions, d.Path+" "+d.Version)
			}
		}
	}
	commit, err := exec.Command("git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("of an unknown commit")
	}
	text := fmt.Sprintf("Measured %s: plugpoll %s, %s, %s, Linux %s, %d processors.", time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), strings.Join(versions, ", "),
		runtime.Version(), unix.ByteSliceToString(u.Release[:]), runtime.NumCPU())
	if short {
		text += " In short: few samples."
	}
	return text
}
