package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/plugpoll/plugpoll/conformance/peers/measured"
)

func main() {
	from := flag.String("from", "figures.json", "`file` with what was measured")
	to := flag.String("to", ".", "`directory` for the pictures")
	flag.Parse()
	if err := drawAll(os.Stdout, *from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// drawAll draws every picture that there are figures for, and says which. That there are none for one is an error, after the others.
func drawAll(out io.Writer, from, to string) error {
	run, err := measured.Read(from)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pictures {
		text, err := p.svg(run)
		file := filepath.Join(to, p.name+".svg")
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s is left as it is: %w", file, err))
			continue
		}
		fmt.Fprintln(out, file)
	}
	return errors.Join(errs...)
}
