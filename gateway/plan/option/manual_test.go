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

var update = flag.Bool("update", false, "write the entries of variables in schedrestd(8), and the example of an environment file")

const (
	manual  = "../../../docs/man/schedrestd.8"
	example = "../../../deploy/examples/schedrestd.env"
)

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
	compare(t, manual, page, want)
}

// compare fails if a generated file differs from the tables, or updates it.
func compare(t *testing.T, file, got, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(got, want); d != "" {
		t.Errorf("run go test ./gateway/plan/option -update (-%s +comments):\n%s", file, d)
	}
}

// TestExample checks that the example of an environment file contains the example
// of each row that has one. The blocks keep the order that they have in the file.
// A new one follows the block of the row above.
func TestExample(t *testing.T) {
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var examples []string
	for _, e := range slices.Concat(rows(t, "variables.go", "variables"), rows(t, "switches.go", "switches")) {
		if e.example != "" {
			examples = append(examples, strings.TrimSuffix(e.example, "\n"))
		}
	}
	// A block without a row stays: the introduction, and what other programs read.
	blocks := slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n\n"), func(block string) bool {
		_, setting, _ := strings.Cut(block, "\n#S")
		return len(SetVariables([]string{"S" + setting})) > 0 && place(examples, block) < 0
	})
	for i, e := range examples {
		if at := place(blocks, e); at >= 0 {
			blocks[at] = e
		} else if i > 0 {
			blocks = slices.Insert(blocks, place(blocks, examples[i-1])+1, e)
		} else {
			blocks = append(blocks, e)
		}
	}
	compare(t, example, string(data), strings.Join(blocks, "\n\n")+"\n")
}

const startOfList = ".Bl -tag -width Ds"

// place returns the index of the block whose last line is that of block, or -1.
func place(blocks []string, block string) int {
	last := func(b string) string { return b[strings.LastIndex(b, "\n#")+1:] }
	return slices.IndexFunc(blocks, func(b string) bool { return last(b) == last(block) })
}

// An entry is the manual's text about rows that follow each other.
type entry struct {
	names   []string
	text    string
	example string // a block of the example of an environment file; "" for none
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
	entries := map[int]entry{} // by the line of the row below
	for _, group := range code.Comments {
		var e entry
		for _, c := range group.List {
			line := strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ") + "\n"
			if line[0] == '#' {
				e.example += line
			} else {
				e.text += line
			}
		}
		entries[positions.Position(group.End()).Line+1] = e
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
		if e, ok := entries[positions.Position(row.Pos()).Line]; ok {
			e.names = []string{name}
			list = append(list, e)
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
