package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// phrases lists phrases that authors still write although CONTRIBUTING.md asks
// for other words, with the words to use instead.
var phrases = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(he|him|his|himself|she|her|hers|herself)\b`), "they, them, their"},
	{regexp.MustCompile(`(?i)\b(somebody|everybody|whoever|whomever)\b`), "name the actor: a user, a client"},
	{regexp.MustCompile(`(?i)\btells? (whether|if|how|what|who|which)\b`), "reports whether"},
	{regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|being) told\b`), "receives"},
	{regexp.MustCompile(`(?i)\b((worker|parent|dispatcher|keeper|resolver|auditor|exporter|daemon|controller|gateway|kernel|client|server|peer)s?|process(es)?|munged|systemd|it|they) (says|say|said)\b`), "sends, reports"},
}

// findPhrases returns the forbidden phrases in text, each with the words to use
// instead. It skips everything in backquotes, such as quotations.
func findPhrases(text string) (found []string) {
	text = strings.ReplaceAll(codeSpan.ReplaceAllString(text, "CODE"), "\n", " ") // a phrase may continue on the next line
	for _, p := range phrases {
		for _, phrase := range p.pattern.FindAllString(text, -1) {
			found = append(found, strconv.Quote(phrase)+": "+p.instead)
		}
	}
	return found
}

func TestPhrases(t *testing.T) {
	t.Chdir(root)
	for _, tt := range []struct {
		text string
		want int
	}{
		{"The user chose his\nown name, and the client is told so.", 2},
		{"Whoever guesses is blocked; the function tells whether the worker says so.", 3},
		{"The user `her` has a log. It contains the reason, which the hint says.", 0},
	} {
		if got := findPhrases(tt.text); len(got) != tt.want {
			t.Errorf("%q: %d findings, want %d: %q", tt.text, len(got), tt.want, got)
		}
	}
}

// TestEnglish looks for forbidden phrases in the documentation, in the comments
// of Go files, and in strings of at least three words, which are usually errors,
// hints or log messages.
func TestEnglish(t *testing.T) {
	t.Chdir(root)
	check := func(place, text string) {
		for _, one := range findPhrases(text) {
			t.Errorf("%s: %s", place, one)
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path == "bin" || path == "dist" || d.Name() == "testdata" || d.Name() == "node_modules" || path != "." && d.Name()[0] == '.' {
				return fs.SkipDir
			}
		case filepath.Ext(path) == ".md":
			check(path, withoutCode(readPage(t, path)))
		case strings.HasPrefix(path, "docs/man/"):
			check(path, readPage(t, path))
		case strings.HasPrefix(path, "web/src/") && strings.HasPrefix(filepath.Ext(path), ".ts"):
			check(path, readPage(t, path))
		case filepath.Ext(path) == ".go" && path != "tools/lint/project/english_test.go": // which quotes them
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, group := range file.Comments {
				check(files.Position(group.Pos()).String(), group.Text())
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok {
					if text, err := strconv.Unquote(lit.Value); err == nil && strings.Count(text, " ") > 1 {
						check(files.Position(lit.Pos()).String(), text)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
