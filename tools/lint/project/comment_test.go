package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestComments checks the comments of declarations. If a comment begins with a
// name, that name must be the declared one. After a rename, comments often keep
// the old name, and staticcheck checks only exported names.
func TestComments(t *testing.T) {
	t.Chdir(root)
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				checkComment(t, files, n.Name, n.Doc)
			case *ast.GenDecl:
				if n.Lparen.IsValid() { // the comment is about all declarations in parentheses
					return true
				}
				switch s := n.Specs[0].(type) {
				case *ast.TypeSpec:
					checkComment(t, files, s.Name, n.Doc)
				case *ast.ValueSpec:
					checkComment(t, files, s.Names[0], n.Doc)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	firstWord = regexp.MustCompile(`^[A-Za-z]\w*`)
	tests     = regexp.MustCompile(`^(Test|Benchmark|Fuzz)`) // comments on these may begin with any word
)

// checkComment fails if the comment on name begins with another name.
func checkComment(t *testing.T, files *token.FileSet, name *ast.Ident, doc *ast.CommentGroup) {
	word := firstWord.FindString(doc.Text())
	if word == "" || word == name.Name || tests.MatchString(name.Name) {
		return
	}
	if word[0] >= 'a' || strings.EqualFold(word, name.Name) {
		t.Errorf("%s: the comment on %s begins with %q", files.Position(doc.Pos()), name.Name, word)
	}
}
