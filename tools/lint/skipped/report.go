package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// An event is a line that "go test -json" printed: see "go doc test2json".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A report prints events as "go test" does without -v. If a package passed, it
// prints one line. Otherwise it prints the whole output of the tests that
// failed.
type report struct {
	out      io.Writer
	skips    skips
	packages map[string]*packageRun
	failed   []failure // the top-level tests that failed
	aborted  bool      // a package was not built, or ended before all of its tests had run
}

// A failure is a test that failed.
type failure struct{ pkg, test string }

func (f failure) String() string { return f.pkg[strings.LastIndexByte(f.pkg, '/')+1:] + "." + f.test }

// packageRun is the state of a package whose tests are running.
type packageRun struct {
	lines   []line            // lines of the package itself, and of tests not known to have passed, in order
	results map[string]string // result of each test: "pass", "fail" or "skip"
	failed  bool
}

type line struct{ test, text string }

func newReport(out io.Writer, skips skips) *report {
	return &report{out: out, skips: skips, packages: map[string]*packageRun{}}
}

// processLine processes a line that go test printed. If the line is not an
// event, it is printed unchanged.
func (r *report) processLine(text []byte) {
	var e event
	if json.Unmarshal(text, &e) != nil || e.Action == "" {
		r.out.Write(text)
		return
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "build-fail":
		r.aborted = true
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &packageRun{results: map[string]string{}}
		r.packages[e.Package] = p
	}
	switch {
	case e.Action == "output" && p.results[e.Test] != "": // of a program that crashed: test2json takes it for a part of the last test that printed
		p.lines = append(p.lines, line{"", e.Output})
	case e.Action == "output":
		p.lines = append(p.lines, line{e.Test, e.Output})
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
	case e.Test != "":
		p.recordResult(e, r.skips)
	default:
		p.failed = e.Action == "fail"
		r.addFailures(e.Package, p)
		p.print(r.out)
		delete(r.packages, e.Package)
	}
}

// addFailures adds the tests of a package that has ended.
func (r *report) addFailures(pkg string, p *packageRun) {
	if !p.failed {
		return
	}
	n := len(r.failed)
	for test, result := range p.results {
		if result == "fail" && !strings.Contains(test, "/") {
			r.failed = append(r.failed, failure{pkg, test})
		}
	}
	crashed := slices.ContainsFunc(p.lines, func(l line) bool {
		return strings.HasPrefix(l.text, "panic: ") || strings.HasPrefix(l.text, "fatal error: ") || strings.HasPrefix(l.text, "signal: ")
	})
	r.aborted = r.aborted || crashed || len(r.failed) == n
}

// recordResult records the result of a test. If a top-level test passed or was
// skipped, it drops the lines of that test and of its subtests.
func (p *packageRun) recordResult(e event, skips skips) {
	p.results[e.Test] = e.Action
	if e.Action == "skip" {
		skips.add(p.reason(e.Test), e.Package, e.Test)
	}
	if e.Action == "fail" || strings.Contains(e.Test, "/") {
		return
	}
	remaining := p.lines[:0]
	for _, l := range p.lines {
		if l.test != e.Test && !strings.HasPrefix(l.test, e.Test+"/") {
			remaining = append(remaining, l)
		}
	}
	p.lines = remaining
}

// reason returns the last message that a skipped test logged.
func (p *packageRun) reason(test string) string {
	reason := "no reason given"
	for _, l := range p.lines {
		text := strings.TrimSpace(l.text)
		if l.test != test || text == "" || strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "--- ") {
			continue
		}
		if place, rest, ok := strings.Cut(text, ": "); ok && strings.Contains(place, ".go:") {
			reason = rest
		}
	}
	return reason
}

// print prints the results of a package whose tests have ended: first the
// output of each failed test, and then the package's own lines. It does not mix
// the outputs of tests that ran in parallel.
func (p *packageRun) print(out io.Writer) {
	byTest := map[string][]string{}
	for _, l := range p.lines {
		if marker := strings.TrimSpace(l.text); strings.HasPrefix(marker, "=== ") || l.test == "" && marker == "PASS" ||
			p.results[l.test] == "pass" || p.results[l.test] == "skip" {
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(l.text), "--- FAIL: ") {
			byTest[l.test] = slices.Insert(byTest[l.test], 0, l.text)
			continue
		}
		byTest[l.test] = append(byTest[l.test], l.text)
	}
	for _, test := range slices.Sorted(maps.Keys(byTest)) {
		if test != "" {
			fmt.Fprint(out, strings.Join(byTest[test], ""))
		}
	}
	for _, text := range byTest[""] {
		if p.failed || strings.HasPrefix(text, "ok  \t") || strings.HasPrefix(text, "?   \t") {
			fmt.Fprint(out, text)
		}
	}
}
