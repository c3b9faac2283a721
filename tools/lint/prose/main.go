// Command prose checks the English of the texts, comments and names in this
// repository, and the subjects of its commits, against the rules in rules.txt.
//
//	go run ./tools/lint/prose [-update] [-v [PATH]...]
//
// The file allowed.tsv limits the number of findings. One limit covers all Go
// files of a top-level folder, and every other file has its own limit. The
// command prints the numbers of findings. It fails if a number exceeds its
// limit, or if the subject of a commit violates the rules.
//
// With -v it lists every finding. If arguments follow, it lists only findings
// in files whose paths begin with one of the arguments. With -update it lowers
// the limits to the current numbers of findings; it never raises them.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const allowedFile = "tools/lint/prose/allowed.tsv"

// lastUncheckedCommit is the last commit whose subject is not checked.
const lastUncheckedCommit = "66f69cd12b83"

func main() {
	verbose := flag.Bool("v", false, "list every finding, the permitted ones too")
	update := flag.Bool("update", false, "lower the permitted numbers to the present ones")
	flag.Parse()
	failed, err := run(*verbose, *update)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

func run(verbose, update bool) (failed bool, err error) {
	report := report{places: map[string]*place{}}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "dist", "testdata", "node_modules"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if path == "tools/lint/prose/main_test.go" { // it quotes findings
			return nil
		}
		return report.file(path)
	})
	if err != nil {
		return false, err
	}
	allowed, err := readAllowed()
	if err != nil {
		return false, err
	}
	for _, name := range slices.Sorted(maps.Keys(report.places)) {
		p := report.places[name]
		for kind, findings := range p.findings {
			tooMany := len(findings) > allowed[name][kind]
			for _, f := range findings {
				if tooMany || verbose && f.inPaths(flag.Args()) {
					fmt.Println(f)
				}
			}
			if tooMany {
				failed = true
				fmt.Fprintf(os.Stderr, "error: %s: %s: %d found, %d permitted\n", name, kinds[kind], len(findings), allowed[name][kind])
			}
		}
	}
	subjects, err := badSubjects()
	if err != nil {
		return false, err
	}
	for _, s := range subjects {
		failed = true
		fmt.Fprintf(os.Stderr, "error: commit %s: the subject must be \"package: what it does now\", at most 72 characters\n", s)
	}
	report.printFigures()
	if update {
		return failed, writeAllowed(allowed, report.places)
	}
	return failed, nil
}

func (r *report) printFigures() {
	var total [len(kinds)]int
	for _, p := range r.places {
		for kind, findings := range p.findings {
			total[kind] += len(findings)
		}
	}
	fmt.Printf("forbidden phrases: %d in %d words, %.1f per 10,000\n",
		total[phrase], r.words, 1e4*float64(total[phrase])/float64(max(r.words, 1)))
	fmt.Printf("function comments that define: %d of %d, %.1f %%\n",
		total[definition], r.functions, 100*float64(total[definition])/float64(max(r.functions, 1)))
	fmt.Printf("retired words: %d in names, %d in texts\n", total[retiredName], total[retiredWord])
}

// readAllowed reads allowed.tsv. For each file or folder, it returns the limit
// on the number of findings of each kind.
func readAllowed() (map[string][len(kinds)]int, error) {
	allowed := map[string][len(kinds)]int{}
	raw, err := os.ReadFile(allowedFile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		var n [len(kinds)]int
		if _, err := fmt.Sscan(line, &name, &n[0], &n[1], &n[2], &n[3]); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", allowedFile, line, err)
		}
		allowed[name] = n
	}
	return allowed, nil
}

func writeAllowed(allowed map[string][len(kinds)]int, places map[string]*place) error {
	var page strings.Builder
	fmt.Fprintf(&page, "# Permitted findings: %s.\n", strings.Join(kinds[:], ", "))
	fmt.Fprintf(&page, "# Lower them with \"go run ./tools/lint/prose -update\". No number may rise.\n")
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		n, present := allowed[name], places[name]
		if present == nil {
			continue
		}
		for kind := range n {
			n[kind] = min(n[kind], len(present.findings[kind]))
		}
		if n != [len(kinds)]int{} {
			fmt.Fprintf(&page, "%s\t%d\t%d\t%d\t%d\n", name, n[0], n[1], n[2], n[3])
		}
	}
	return os.WriteFile(allowedFile, []byte(page.String()), 0o666)
}

var goodSubject = regexp.MustCompile(`^[\w./*{}, -]+: .{1,}$`)

// badSubjects returns the commits whose subjects violate the rules. In a
// shallow clone, which lacks some commits, it checks nothing.
func badSubjects() ([]string, error) {
	if exec.Command("git", "cat-file", "-e", lastUncheckedCommit+"^{commit}").Run() != nil {
		fmt.Println("commit subjects were not checked: this is not a full clone")
		return nil, nil
	}
	out, err := exec.Command("git", "log", "--no-merges", "--format=%h %s", lastUncheckedCommit+"..HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("git log: %w", err)
	}
	var bad []string
	for in := bufio.NewScanner(strings.NewReader(string(out))); in.Scan(); {
		_, subject, _ := strings.Cut(in.Text(), " ")
		if len([]rune(subject)) > 72 || !goodSubject.MatchString(subject) {
			bad = append(bad, in.Text())
		}
	}
	return bad, nil
}
