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

// CodeBlock is the block of a document's that says in its first lines which file it is.
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

// Replaced is text with each old replaced by its new one. All of them have to be there: what a document
// shows is run as it stands, but for these.
func Replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		old := regexp.MustCompile("(?m)" + pairs[i])
		if !old.MatchString(text) {
			t.Fatalf("no %s in:\n%s", pairs[i], text)
		}
		text = old.ReplaceAllLiteralString(text, pairs[i+1])
	}
	return text
}

// Program is the path of a foreign program. Where it is missing the test is skipped, but not where
// continuous integration runs as root and has installed all of them.
func Program(t *testing.T, name, pkg string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	Missing(t, fmt.Sprintf("%s is not here; apt-get install %s", name, pkg))
	return ""
}

// Missing skips a test for what this machine has not; where it had to be there, the test fails.
func Missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" && os.Geteuid() == 0 {
		t.Fatal(what)
	}
	t.Skip(what)
}
