package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSpecification checks the rows of docs/design/SPECIFICATION.md. Each row
// must name existing places in the sources and existing tests. TestSpecification
// can't check whether the tests prove what the row says.
func TestSpecification(t *testing.T) {
	t.Chdir(root)
	rows, head := 0, ""
	for line := range strings.Lines(readPage(t, "docs/design/SPECIFICATION.md")) {
		if !strings.HasPrefix(line, "| ") {
			head = ""
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if head == "" || strings.HasPrefix(line, "| ---") { // skip the header of a table and the line below it
			head = line
			continue
		}
		rows++
		if len(cells) != 3 {
			t.Errorf("not three cells: %s", line)
			continue
		}
		places, tests := backquoted(cells[1]), backquoted(cells[2])
		if len(places) == 0 || len(tests) == 0 {
			t.Errorf("no place or no test: %s", line)
		}
		for _, place := range places {
			if _, err := os.Stat(place); err != nil {
				t.Errorf("no place %s: %s", place, line)
			}
		}
		for _, name := range tests {
			folder, function, ok := strings.Cut(name, ".")
			function, part, hasPart := strings.Cut(function, "/")
			if !ok || !testsOf(t, folder).functions[function] {
				t.Errorf("no test %s: %s", name, line)
			} else if hasPart && !testsOf(t, folder).hasPart(function, part) {
				t.Errorf("no part %s: %s", name, line)
			}
		}
	}
	if rows < 100 {
		t.Errorf("%d rows: the test does not recognize the form of the table", rows)
	}
}

var inBackquotes = regexp.MustCompile("`([^`]+)`")

func backquoted(cell string) []string {
	var list []string
	for _, m := range inBackquotes.FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

// folderTests lists the tests of a folder.
type folderTests struct {
	folder    string
	functions map[string]bool
	words     map[string]bool // all string literals in the tests, including the names of subtests
}

// hasPart reports whether the test named function has a case named part. If
// that test runs scripts, the case is a file in testdata/script. Otherwise, the
// case is a string literal in the folder's tests.
func (t *folderTests) hasPart(function, part string) bool {
	if function == "TestCommand" || function == "TestCommands" {
		folder := t.folder
		if folder == "integration" {
			folder = "integration/install"
		}
		_, err := os.Stat(filepath.Join(folder, "testdata", "script", part+".txtar"))
		return err == nil
	}
	return t.words[`"`+part+`"`]
}

var testsByFolder = map[string]*folderTests{}

var testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark)`)

func testsOf(t *testing.T, folder string) *folderTests {
	t.Helper()
	if cached, ok := testsByFolder[folder]; ok {
		return cached
	}
	result := &folderTests{folder, map[string]bool{}, map[string]bool{}}
	testsByFolder[folder] = result
	pattern := filepath.Join(folder, "*_test.go")
	if folder == "integration" { // each subject has a subfolder with tests
		pattern = filepath.Join(folder, "*", "*_test.go")
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && testName.MatchString(n.Name.Name) {
					result.functions[n.Name.Name] = true
				}
			case *ast.BasicLit:
				result.words[n.Value] = true
			}
			return true
		})
	}
	return result
}
