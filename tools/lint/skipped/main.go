// Command skipped runs "go test" and prints its output, followed by a list of
// the skipped tests with the reasons. Its exit status is that of go test.
//
//	skipped [-again N] ARGUMENT... [-- ARGUMENT...]...
//
// Each list of arguments is for one run of "go test". The command stops after
// the first run that fails.
//
// With -again, if at most N tests of a run fail, each of them runs once more,
// alone. If they pass, the run has passed, and the tests are listed at the end:
// a test that fails on a busy machine is a fault, but not one of the change
// that is tested.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	again := flag.Int("again", 0, "how many tests that fail run once more")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: skipped [-again N] ARGUMENT... [-- ARGUMENT...]...") }
	var own []string // what follows are the flags of go test
	if len(os.Args) > 2 && os.Args[1] == "-again" {
		own = os.Args[1:3]
	}
	_ = flag.CommandLine.Parse(own) // exits if it fails
	status := 0
	skips := skips{}
	var busy []failure
	for arguments := range runs(os.Args[1+len(own):]) {
		var failed []failure
		if status, failed = run(arguments, os.Stdout, skips); status != 0 && 0 < len(failed) && len(failed) <= *again {
			if status = runAlone(arguments, failed, os.Stdout); status == 0 {
				busy = append(busy, failed...)
			}
		}
		if status != 0 {
			break
		}
	}
	skips.print(os.Stdout)
	printBusy(os.Stdout, busy)
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

// run runs go test once and returns its exit status, and the tests that failed.
// It returns no test if something else has failed, too: then other tests may not
// have run.
func run(arguments []string, out io.Writer, skips skips) (status int, failed []failure) {
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
		return 1, nil
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
	if report.aborted {
		report.failed = nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exit.ExitCode(), report.failed
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: go test:", err)
		return 1, nil
	}
	return 0, nil
}

// runAlone runs each of the tests by itself, with the flags in arguments. It
// returns the first exit status that is not 0.
func runAlone(arguments []string, tests []failure, out io.Writer) int {
	isPackage := func(arg string) bool { return strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "schedrestd") }
	flags := slices.DeleteFunc(slices.Clone(arguments), isPackage)
	for _, f := range tests {
		fmt.Fprintf(out, "\n%s fails beside other tests; once more, alone:\n", f)
		status, _ := run(append(slices.Clone(flags), "-count=1", "-run", "^"+f.test+"$", f.pkg), out, skips{})
		if status != 0 {
			return status
		}
	}
	return 0
}

// printBusy prints the tests that have passed only alone.
func printBusy(out io.Writer, tests []failure) {
	if len(tests) == 0 {
		return
	}
	fmt.Fprintf(out, "\ntests that failed beside others and passed alone: %d\n", len(tests))
	for _, f := range tests {
		fmt.Fprintf(out, "  %s\n", f)
	}
	fmt.Fprintln(out, "They are faulty: a test must pass on a busy machine.")
}
