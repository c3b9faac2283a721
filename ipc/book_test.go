package ipc

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write generated pages anew")

// TestBookIsSound holds the table to what the reader and the docs take for granted.
func TestBookIsSound(t *testing.T) {
	kinds := map[Kind]bool{}
	for _, r := range book {
		t.Run(r.Name, func(t *testing.T) {
			if r.Kind == 0 || kinds[r.Kind] {
				t.Errorf("kind %d is zero or used twice", r.Kind)
			}
			kinds[r.Kind] = true
			if r.Min > r.Max || r.Max >= MaxMessage {
				t.Errorf("sizes %d to %d", r.Min, r.Max)
			}
			if r.FDs >= maxRights {
				t.Errorf("%d descriptors: a surplus could not be told", r.FDs)
			}
			if r.From == r.To || r.About == "" {
				t.Errorf("row is not filled in: %+v", r)
			}
			m := r.empty()
			if name := fmt.Sprintf("%T", m); r.Phases == 0 || m.Kind() != r.Kind || name != "*ipc."+r.Name {
				t.Fatalf("permitted in %q, reader %s of kind %d", r.Phases, name, m.Kind())
			}
			if got := len(frameOf(t, least(r))) - 1; got != r.Min {
				t.Errorf("the empty message has %d bytes, the book says %d", got, r.Min)
			}
			m, again := full(r), r.empty()
			frame := frameOf(t, m)
			if got := len(frame) - 1; got > r.Max || got == r.Min && r.Min < r.Max {
				t.Errorf("a message has %d bytes, the book says %s", got, r.size())
			}
			if err := decode(frame[1:], again); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(m, again, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
				t.Errorf("-sent +received:\n%s", d)
			}
		})
	}
}

func TestPermit(t *testing.T) {
	tests := []struct {
		name      string
		kind      Kind
		from, to  Role
		phase     Phase
		size, fds int
		want      string // part of the violation; "" when permitted
	}{
		{"in turn", KindDone, Worker, Parent, Serving, 8, 0, ""},
		{"connection", KindConnection, Parent, Worker, Serving, 31, 1, ""},
		{"unknown kind", 200, Worker, Parent, Serving, 8, 0, "not in the book"},
		{"kind 0", 0, Worker, Parent, Serving, 8, 0, "not in the book"},
		{"wrong way", KindDone, Parent, Worker, Serving, 8, 0, "is not for a parent"},
		{"too early", KindDone, Worker, Parent, Proving, 8, 0, "not permitted while proving"},
		{"twice", KindReady, Worker, Parent, Serving, 0, 0, "not permitted while serving"},
		{"after the end", KindDone, Worker, Parent, Over, 8, 0, "not permitted while over"},
		{"too short", KindDone, Worker, Parent, Serving, 7, 0, "has 7 bytes, not 8"},
		{"too long", KindDone, Worker, Parent, Serving, 9, 0, "has 9 bytes, not 8"},
		{"descriptor missing", KindConnection, Parent, Worker, Serving, 31, 0, "came with 0 descriptors, not 1"},
		{"descriptor too many", KindDone, Worker, Parent, Serving, 8, 1, "came with 1 descriptors, not 0"},
		{"no phase at all", KindDone, Worker, Parent, phases, 8, 0, "not permitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := permit(tt.kind, tt.from, tt.to, tt.phase, tt.size, tt.fds)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestEveryRowIsHeard: what the book permits, somebody has to hear; and each who hears has to have an end for the rest.
func TestEveryRowIsHeard(t *testing.T) {
	heard := map[Role]map[string]bool{}
	for role, dirs := range map[Role][]string{Parent: {"../privsep", "../privsep/dial", "../privsep/inetd", "../privsep/planner"}, Worker: {"../worker"}, Keeper: {"../keeper"}, Config: {"../plan"}, Resolver: {"../service", "../resolver"}, Auditor: {"../service", "../auditor"}} {
		heard[role] = map[string]bool{"Posture": true} // HearBirth does
		var files []string
		for _, dir := range dirs {
			found, err := filepath.Glob(dir + "/*.go")
			if err != nil || found == nil {
				t.Fatal(dir, err)
			}
			files = append(files, found...)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			var receives, unheard int
			ast.Inspect(file, func(n ast.Node) bool {
				var types []ast.Expr
				switch n := n.(type) {
				case *ast.SelectorExpr:
					switch n.Sel.Name {
					case "Receive":
						receives++
					case "Unheard":
						unheard++
					}
				case *ast.CaseClause:
					types = n.List
				case *ast.IndexExpr: // HearBirth[*ipc.Setup]
					types = []ast.Expr{n.Index}
				}
				for _, one := range types {
					if p, ok := one.(*ast.StarExpr); ok {
						if s, ok := p.X.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == "ipc" {
							heard[role][s.Sel.Name] = true
						}
					}
				}
				return true
			})
			if receives != unheard {
				t.Errorf("%s has %d calls of Receive and %d of ipc.Unheard", name, receives, unheard)
			}
		}
	}
	for _, r := range book {
		for _, role := range []Role{Parent, Worker, Keeper, Resolver, Auditor, Config} {
			if r.To.Has(role) && !heard[role][r.Name] {
				t.Errorf("no %s hears %s", role, r.Name)
			}
		}
	}
}

const (
	page  = "../docs/PRIVSEP.md"
	begin = "<!-- book: generated by go test ./ipc -update -->\n"
	end   = "<!-- end of book -->\n"
)

// markdown is the book as a table, for docs/PRIVSEP.md.
func markdown() string {
	var b strings.Builder
	b.WriteString("| kind | message | from → to | permitted while | bytes | descriptors | then | meaning |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range book {
		then := ""
		if r.Then != Born {
			then = r.Then.String()
		}
		fmt.Fprintf(&b, "| %d | %s | %s → %s | %s | %s | %d | %s | %s |\n",
			r.Kind, r.Name, r.From, r.To, r.Phases, r.size(), r.FDs, then, r.About)
	}
	return b.String()
}

// TestPageShowsTheBook fails when docs/PRIVSEP.md has another table than the code.
func TestPageShowsTheBook(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the marks around the book", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+markdown()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(markdown(), old); diff != "" {
		t.Errorf("%s is stale: run go test ./ipc -update (-code +page):\n%s", page, diff)
	}
}
