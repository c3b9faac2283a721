package option

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the entries of variables in schedrestd(8)")

const manual = "../../../docs/man/schedrestd.8"

// TestManual checks that the entries of the variables and of the switches in the
// manual are the comments on their rows.
func TestManual(t *testing.T) {
	data, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	before, rest, ok := strings.Cut(page, "\n.Sh ENVIRONMENT\n")
	intro, rest, ok2 := strings.Cut(rest, "\n"+startOfList+"\n")
	list, after, ok3 := strings.Cut(rest, "\n.El\n.Sh ")
	if !ok || !ok2 || !ok3 {
		t.Fatal("the manual has no list of variables")
	}
	variables := rows(t, "variables.go", "variables")
	if i := slices.IndexFunc(variables, func(e entry) bool { return e.names[0] == "SCHEDRESTD_SECURITY" }); i >= 0 {
		nested, _, _ := strings.Cut(list[strings.Index(list, ".It Ev SCHEDRESTD_SECURITY\n"):], "\n.El\n")
		variables[i].text += startOfList + "\n" + printEntries("Cm", rows(t, "switches.go", "switches"), nested) + ".El\n"
	}
	want := before + "\n.Sh ENVIRONMENT\n" + intro + "\n" + startOfList + "\n" + printEntries("Ev", variables, list) + ".El\n.Sh " + after
	if *update {
		if err := os.WriteFile(manual, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(page, want); d != "" {
		t.Errorf("run go test ./gateway/plan/option -update (-manual +comments):\n%s", d)
	}
}

const startOfList = ".Bl -tag -width Ds"

// An entry is the manual's text about rows that follow each other.
type entry struct {
	names []string
	text  string
}

// rows returns the entries of the table that a function returns, from the comments
// on its rows.
func rows(t *testing.T, file, function string) (list []entry) {
	t.Helper()
	positions := token.NewFileSet()
	code, err := parser.ParseFile(positions, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[int]string{} // by the line of the row below
	for _, group := range code.Comments {
		var text strings.Builder
		for _, c := range group.List {
			text.WriteString(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ") + "\n")
		}
		texts[positions.Position(group.End()).Line+1] = text.String()
	}
	ast.Inspect(code, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok {
			return f.Name.Name == function
		}
		row, ok := n.(*ast.CompositeLit)
		if !ok || row.Type != nil || len(row.Elts) == 0 {
			return true
		}
		literal, ok := row.Elts[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := texts[positions.Position(row.Pos()).Line]; ok {
			list = append(list, entry{[]string{name}, text})
		} else if len(list) > 0 {
			list[len(list)-1].names = append(list[len(list)-1].names, name)
		}
		return false
	})
	return list
}

// printEntries returns the list of entries, in the order that they have in the manual. A
// new entry follows the one above it in the table.
func printEntries(macro string, list []entry, manual string) string {
	place := func(e entry) int {
		head := "\n.It " + macro + " " + e.names[0]
		return max(strings.Index("\n"+manual, head+"\n"), strings.Index("\n"+manual, head+" ,"))
	}
	var sorted []entry
	for i, e := range list {
		at := len(sorted)
		if place(e) < 0 && i > 0 {
			at = slices.IndexFunc(sorted, func(s entry) bool { return s.names[0] == list[i-1].names[0] }) + 1
		} else if next := slices.IndexFunc(sorted, func(s entry) bool { return place(s) > place(e) }); next >= 0 {
			at = next
		}
		sorted = slices.Insert(sorted, at, e)
	}
	var b strings.Builder
	for _, e := range sorted {
		b.WriteString(".It " + macro + " " + strings.Join(e.names, " , "+macro+" ") + "\n" + e.text)
	}
	return b.String()
}
