package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// CodeBlock returns a code block from a page of docs/: the block whose first
// line names file.
func CodeBlock(t *testing.T, document, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root, "docs", document))
	Must(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		first, _, _ := strings.Cut(strings.TrimPrefix(m[1], "#!/bin/sh\n"), "\n")
		if first == "# "+file || strings.HasPrefix(first, "# "+file+", after ") {
			return m[1]
		}
	}
	t.Fatalf("%s has no block # %s", document, file)
	return ""
}

// Substitute returns text with some parts replaced. The text is from a page of
// the documentation. pairs contains regular expressions, each followed by its
// replacement. The test fails if an expression matches nothing.
func Substitute(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		pattern := regexp.MustCompile("(?m)" + pairs[i])
		if !pattern.MatchString(text) {
			t.Fatalf("no %s in:\n%s", pairs[i], text)
		}
		text = pattern.ReplaceAllLiteralString(text, pairs[i+1])
	}
	return text
}

// FindProgram returns the path of a program of another project. If the program
// is missing, the test is skipped. But if the test runs as root in continuous
// integration, where all such programs are installed, it fails.
func FindProgram(t *testing.T, name, pkg string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	SkipMissing(t, fmt.Sprintf("%s is not here; apt-get install %s", name, pkg))
	return ""
}

// SkipMissing skips the test, because this machine lacks something that the
// test needs. But if the test runs as root in continuous integration, it fails.
func SkipMissing(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" && os.Geteuid() == 0 {
		t.Fatal(reason)
	}
	t.Skip(reason)
}
