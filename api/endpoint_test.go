package api

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
)

// rows reads a table of testdata, a row a line.
func rows(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list [][]string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		list = append(list, strings.Split(lines.Text(), "\t"))
	}
	return list
}

// operation is one row of testdata/paths.tsv.
type operation struct{ id, request, answer string }

// operations are the rows by version, method and path.
func operations(t *testing.T) map[[3]string]operation {
	ops := map[[3]string]operation{}
	for _, c := range rows(t, "paths.tsv") {
		answer, _, _ := strings.Cut(strings.TrimPrefix(c[6], "200="), ";")
		ops[[3]string{c[0], c[1], c[2]}] = operation{c[3], c[5], answer}
	}
	return ops
}

// unlike are the operations whose answer is documented otherwise by Slurm's gateway, each with its reason.
var unlike = map[string]string{
	"get_jobs_state": "whole jobs are documented, and states are what is sent",
}

// TestEndpoints: every endpoint is one of Slurm's gateway in every version that it does not call
// ours, with the same method, path, name, parameters and bodies; and testdata has no other.
func TestEndpoints(t *testing.T) {
	ops := operations(t)
	params := map[[3]string]map[string]string{}
	for _, c := range rows(t, "params.tsv") {
		key := [3]string{c[0], c[1], c[2]}
		if params[key] == nil {
			params[key] = map[string]string{}
		}
		params[key][c[3]+" "+c[4]] = strings.TrimSpace(c[5] + " " + c[8])
	}
	met := map[[3]string]bool{}
	differ := map[string]bool{}
	for _, e := range Endpoints {
		for _, v := range Versions {
			if !e.In(v) {
				continue
			}
			view := schema.View{Version: v, Names: schema.Slurm}
			key := [3]string{v.String(), e.Method, e.URL(view)}
			t.Run(e.OperationID(view), func(t *testing.T) {
				op, documented := ops[key]
				met[key] = true
				if documented == (v < e.Ours) {
					t.Fatalf("Slurm's gateway has it: %v; declared as ours: %v", documented, v < e.Ours)
				}
				got := map[string]string{}
				for _, p := range e.Params.Shape(view).Fields {
					if p.Ours {
						continue
					}
					got[place(e, p.Name)+" "+p.Name] = described(p)
				}
				if !documented {
					return
				}
				if op.id != e.OperationID(view) {
					t.Errorf("documented as %s", op.id)
				}
				want := params[key]
				if want == nil {
					want = map[string]string{}
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("parameters documented (-), declared (+):\n%s", d)
				}
				if want := schemaName(v, op.answer, e.Answer, view); op.answer != want && unlike[e.ID] != "" {
					differ[e.ID] = true
				} else if op.answer != want {
					t.Errorf("documented answer %s, declared %s", op.answer, want)
				}
				if want := schemaName(v, op.request, e.Request, view); op.request != want {
					t.Errorf("documented request %q, declared %q", op.request, want)
				}
			})
		}
	}
	for key := range ops {
		if !met[key] {
			t.Errorf("%v is in testdata and is no endpoint", key)
		}
	}
	for name := range unlike {
		if !differ[name] {
			t.Errorf("%s is said to differ and is nowhere", name)
		}
	}
}

// TestUnserved: what Slurm's gateway has is an endpoint, or listed as not served yet.
func TestUnserved(t *testing.T) {
	want, got := map[[3]string]bool{}, map[[3]string]bool{}
	for _, c := range rows(t, "unserved.tsv") {
		want[[3]string{c[0], c[1], strings.TrimSuffix(c[2], "/")}] = true
	}
	for _, e := range Unserved {
		for _, v := range Versions {
			if e.In(v) {
				got[[3]string{v.String(), e.Method, e.URL(schema.View{Version: v, Names: schema.Slurm})}] = true
			}
		}
	}
	for _, e := range Endpoints {
		for _, v := range Versions {
			if key := [3]string{v.String(), e.Method, strings.TrimSuffix(e.URL(schema.View{Version: v, Names: schema.Slurm}), "/")}; e.In(v) && got[key] {
				t.Errorf("%v is served", key)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("documented (-), listed (+):\n%s", d)
	}
}

func place(e *Endpoint, name string) string {
	if e.InPath(name) {
		return "path"
	}
	return "query"
}

func described(p schema.Property) string {
	typ := p.Shape.Kind
	if p.Shape.Enum != nil {
		typ += "(" + strings.Join(p.Shape.Enum, "|") + ")"
	}
	if p.Required {
		typ += " required"
	}
	return typ
}

// schemaName is body's schema as testdata writes it; where that has it in place, "object" is all
// there is to compare, and TestCoverage compares the rest.
func schemaName(v schema.Version, documented string, body Described, view schema.View) string {
	switch {
	case body == nil:
		return ""
	case documented == "object":
		return body.Shape(view).Kind
	}
	return "@" + v.String() + "_" + body.Shape(view).Name
}

var braces = regexp.MustCompile(`{([^}]*)}`)

// TestPathParameters: what stands in a path's braces is in its table, required, and so is nothing else.
func TestPathParameters(t *testing.T) {
	for _, e := range Endpoints {
		var named []string
		for _, m := range braces.FindAllStringSubmatch(e.Path, -1) {
			named = append(named, m[1])
		}
		for _, v := range Versions {
			var required []string
			for _, p := range e.Params.Shape(schema.View{Version: v}).Fields {
				if p.Required {
					required = append(required, p.Name)
				}
				if p.Doc == "" {
					t.Errorf("%s: %s has no description", e.ID, p.Name)
				}
			}
			slices.Sort(named)
			slices.Sort(required)
			if d := cmp.Diff(named, required); d != "" {
				t.Errorf("%s %v: in the path (-), required in the table (+):\n%s", e.ID, v, d)
			}
		}
	}
}

func TestEndpointsAreDescribedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Endpoints {
		for _, v := range Versions {
			key := e.OperationID(schema.View{Version: v})
			if e.In(v) && seen[key] || e.Doc == "" || e.Answer == nil || e.Params == nil {
				t.Errorf("%s: twice, or without a line, an answer or parameters", key)
			}
			seen[key] = seen[key] || e.In(v)
		}
	}
}
