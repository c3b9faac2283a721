package slurmerror

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestSlurmErrors checks that slurmerror.go has the same numbers and names as
// Slurm.
func TestSlurmErrors(t *testing.T) {
	text, err := os.ReadFile("../../rpc/fault/testdata/errors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for line := range strings.Lines(string(text)) {
		number, rest, _ := strings.Cut(line, "\t")
		name, _, _ := strings.Cut(rest, "\t")
		names[number] = name
	}
	file, err := parser.ParseFile(token.NewFileSet(), "slurmerror.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.ValueSpec)
		if !ok || c.Names[0].Name == "Unspecified" { // not in the table, because its meaning depends on the caller
			return true
		}
		tested++
		value := c.Values[0].(*ast.BasicLit)
		number := constant.MakeFromLiteral(value.Value, value.Kind, 0).ExactString()
		name, _, _ := strings.Cut(strings.TrimSpace(c.Comment.Text()), ",")
		if want := names[number]; "ESLURM_"+name != want {
			t.Errorf("%s is %s, which is %s in Slurm", c.Names[0].Name, number, want)
		}
		return true
	})
	if tested < 40 {
		t.Errorf("only %d constants", tested)
	}
}
