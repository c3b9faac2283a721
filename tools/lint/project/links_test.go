package project

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// TestLinks checks the links in all Markdown files. The file that a link points
// to must exist. If the link has a fragment, that file must contain a heading
// with this fragment. TestLinks skips links to other sites.
func TestLinks(t *testing.T) {
	t.Chdir(root)
	links, withFragment := 0, 0
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || path == "bin" || path == "dist"):
			return filepath.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		for _, m := range linkTarget.FindAllStringSubmatch(withoutCode(readPage(t, path)), -1) {
			target := m[1]
			if strings.Contains(target, "://") {
				continue
			}
			links++
			name, fragment, hasFragment := strings.Cut(target, "#")
			file := path
			if name != "" {
				file = filepath.Join(filepath.Dir(path), name)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: %v", path, target, err)
				continue
			}
			if !hasFragment {
				continue
			}
			withFragment++
			if !headingFragments(readPage(t, file))[fragment] {
				t.Errorf("%s: link to %s: no heading of %s has this fragment", path, target, file)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 100 || withFragment < 10 {
		t.Errorf("%d links, %d with a fragment: the test does not recognize the form of links", links, withFragment)
	}
}

func TestHeadingFragments(t *testing.T) {
	t.Chdir(root)
	page := "# The `-f` option: files, _all_ of them\n\n```sh\n# no heading\n```\n\n## [Links](x.md#y) & more\n### Links\n## Links ##\n#nothing\n"
	want := map[string]bool{"the--f-option-files-_all_-of-them": true, "links--more": true, "links": true, "links-1": true}
	if got := headingFragments(page); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

var (
	linkTarget  = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^()\s]*\)`)
	headingLine = regexp.MustCompile(`(?m)^#{1,6} +(.*?)(?: +#+)?\s*$`)
	fencedBlock = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	codeSpan    = regexp.MustCompile("`[^`\n]*`")
)

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutCode returns a page without its code blocks and code spans.
func withoutCode(page string) string {
	return codeSpan.ReplaceAllString(fencedBlock.ReplaceAllString(page, ""), "")
}

// headingFragments returns the fragments that GitHub gives to the headings of a
// page. A fragment is the heading's text in lower case, without markup and
// punctuation, and with a hyphen for each blank. If several headings have the
// same text, GitHub appends -1, -2 and so on to the fragments of all but the
// first.
func headingFragments(page string) map[string]bool {
	fragments, repeated := map[string]bool{}, map[string]int{}
	for _, m := range headingLine.FindAllStringSubmatch(fencedBlock.ReplaceAllString(page, ""), -1) {
		fragment := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, linkText.ReplaceAllString(m[1], "$1"))
		n := repeated[fragment]
		repeated[fragment]++
		if n > 0 {
			fragment = fmt.Sprintf("%s-%d", fragment, n)
		}
		fragments[fragment] = true
	}
	return fragments
}
