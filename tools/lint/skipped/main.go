// Command skipped runs "go test" and prints its output, followed by a list of
// the skipped tests with the reasons. Its exit status is that of go test.
//
//	skipped ARGUMENT... [-- ARGUMENT...]...
//
// Each list of arguments is for one run of "go test". The command stops after
// the first run that fails.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
)

func main() {
	status := 0
	skips := skips{}
	for arguments := range runs(os.Args[1:]) {
		if status = run(arguments, os.Stdout, skips); status != 0 {
			break
		}
	}
	skips.print(os.Stdout)
	os.Exit(status)
}

// runs yields each list of arguments.
func runs(args []string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for {
			end := slices.Index(args, "--")
			if end < 0 {
				yield(args)
				return
			}
			if !yield(args[:end]) {
				return
			}
			args = args[end+1:]
		}
	}
}

// run runs go test once and returns its exit status.
func run(arguments []string, out io.Writer, skips skips) int {
	// Ctrl-C also interrupts go test, which then reports its progress. This
	// program must keep running to print that report.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	test := exec.Command("go", append([]string{"test", "-json"}, arguments...)...)
	test.Stderr = os.Stderr
	events, err := test.StdoutPipe()
	if err == nil {
		err = test.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: run go test:", err)
		return 1
	}
	report := newReport(out, skips)
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		report.processLine(line)
		if err != nil {
			break
		}
	}
	err = test.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: go test:", err)
		return 1
	}
	return 0
}
