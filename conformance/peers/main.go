package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// roleVariable is the environment variable that says which role a process has.
const roleVariable = "PEERS_ROLE"

func main() {
	say := &mouthpiece{enc: json.NewEncoder(os.Stdout)}
	switch role := os.Getenv(roleVariable); {
	case role == "farm":
		playFarm(say)
		return
	case registrars[role] != nil:
		playAgent(say, registrars[role]())
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
	short := flag.Bool("short", false, "measure in about four minutes instead of nine")
	run := flag.String("run", "", "hold them only to the rules whose id and sentence match this `regexp`, and measure nothing")
	only := flag.String("only", "", "`what` to do alone: rules or figures")
	flag.Parse()
	matches, err := regexp.Compile(*run)
	if err != nil {
		return err
	}
	fmt.Println(about(*short))
	broken := 0
	if *only != "figures" {
		broken = judge(ctx, os.Stdout, matches)
	}
	if *only != "rules" && *run == "" {
		if err := newFigures(ctx, os.Stdout, *short).all(); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("plugpoll was not seen to keep %d of the rules", broken)
	}
	return nil
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
