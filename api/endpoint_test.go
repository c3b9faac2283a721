package api

import (
	"bufio"
	"cmp"
	goflag "flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

var update = goflag.Bool("update", false, "write unserved.go and the pages of docs/ again")

// rows reads a table from a file in the directory testdata. Each line is one
// row.
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

// operations returns the rows of testdata/paths.tsv. The keys consist of
// version, method and path.
func operations(t *testing.T) map[[3]string]operation {
	ops := map[[3]string]operation{}
	for _, c := range rows(t, "paths.tsv")[1:] {
		answer, _, _ := strings.Cut(strings.TrimPrefix(c[6], "200="), ";")
		ops[[3]string{c[0], c[1], c[2]}] = operation{c[3], c[5], answer}
	}
	return ops
}

// differingAnswers maps the ids of operations to reasons. For each of these
// operations, the reason explains why our description of the answer differs
// from the one in slurmrestd's documents.
var differingAnswers = map[string]string{
	"get_jobs_state": "slurmrestd documents whole jobs, but sends states",
}

// TestEndpoints compares the method, path, name, parameters and bodies of every
// endpoint with those in slurmrestd's documents, and the order of the
// parameters. If the documents for a version lack the operation, the test checks
// only that SlurmSince agrees with this.
func TestEndpoints(t *testing.T) {
	ops := operations(t)
	params := map[[3]string][]string{}
	for _, c := range rows(t, "params.tsv") {
		key := [3]string{c[0], c[1], c[2]}
		params[key] = append(params[key], strings.TrimSpace(c[3]+" "+c[4]+": "+c[5]+" "+c[8]))
	}
	differ := map[string]bool{}
	for _, e := range Endpoints {
		for _, v := range Versions {
			if !e.In(v) {
				continue
			}
			view := schema.View{Version: v, Spelling: schema.Slurm}
			key := [3]string{v.String(), e.Method, e.URL(view)}
			t.Run(e.OperationID(view), func(t *testing.T) {
				op, documented := ops[key]
				if documented == (v < e.SlurmSince) {
					t.Fatalf("Slurm's gateway has it: %v; declared as ours: %v", documented, v < e.SlurmSince)
				}
				if !documented {
					return
				}
				var got []string
				for i, p := range e.Parameters(view) {
					if !p.Undocumented {
						got = append(got, place(e, p.Name)+" "+p.Name+": "+describeParam(p))
						if len(got) <= i {
							t.Errorf("parameter %s comes after one that slurmrestd's document lacks", p.Name)
						}
					}
				}
				if op.id != e.OperationID(view) {
					t.Errorf("documented as %s", op.id)
				}
				if d := gocmp.Diff(params[key], got); d != "" {
					t.Errorf("parameters documented (-), declared (+):\n%s", d)
				}
				if want := schemaName(v, op.answer, e.Answer, view); op.answer != want && differingAnswers[e.ID] != "" {
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
	for name := range differingAnswers {
		if !differ[name] {
			t.Errorf("%s is in differingAnswers, but no answer of it differs", name)
		}
	}
}

// unserved returns the operations of slurmrestd that have no endpoint in at
// least one API version. Since and Until give the versions without an endpoint.
func unserved(t *testing.T) []Endpoint {
	versions := map[Endpoint][]schema.Version{}
	for key := range operations(t) {
		i := slices.IndexFunc(Versions, func(v schema.Version) bool { return v.String() == key[0] })
		parts := strings.SplitN(strings.TrimSuffix(key[2], "/"), "/", 4)
		e := Endpoint{Method: key[1], Path: parts[3], Accounting: parts[1] == "slurmdb", Util: parts[1] == "util"}
		versions[e] = append(versions[e], Versions[i])
	}
	var list []Endpoint
	for e, in := range versions {
		in = slices.DeleteFunc(in, func(v schema.Version) bool {
			return slices.ContainsFunc(Endpoints, func(d *Endpoint) bool {
				return d.In(v) && d.Method == e.Method && strings.TrimSuffix(d.Path, "/") == e.Path && d.Accounting == e.Accounting && d.Util == e.Util
			})
		})
		if len(in) == 0 {
			continue
		}
		slices.Sort(in)
		if e.Since = in[0]; e.Since == Versions[0] {
			e.Since = 0
		}
		if last := in[len(in)-1]; last != Versions[len(Versions)-1] {
			e.Until = last + 1
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Segment(schema.Slurm), b.Segment(schema.Slurm)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return list
}

// TestUnserved checks that every operation of slurmrestd either has an endpoint
// or is in the generated list of operations that are not served yet.
func TestUnserved(t *testing.T) {
	want := new(strings.Builder)
	want.WriteString(`package api

// Unserved lists the operations of slurmrestd that this gateway does not serve
// yet. A client that requests one of them gets an error that says so, not the
// error for an unknown path. Generated from testdata/paths.tsv by go test ./api
// -update.
var Unserved = []Endpoint{`)
	for _, e := range unserved(t) {
		fmt.Fprintf(want, "\n\t{Method: %q, ", e.Method)
		if e.Accounting {
			want.WriteString("Accounting: true, ")
		}
		if e.Util {
			want.WriteString("Util: true, ")
		}
		fmt.Fprintf(want, "Path: %q", e.Path)
		if e.Since != 0 {
			fmt.Fprintf(want, ", Since: V%d", e.Since)
		}
		if e.Until != 0 {
			fmt.Fprintf(want, ", Until: V%d", e.Until)
		}
		want.WriteString("},")
	}
	if len(unserved(t)) > 0 {
		want.WriteString("\n")
	}
	want.WriteString("}\n")
	checkGenerated(t, "unserved.go", want.String())
}

// TestEndpointsPage checks that docs/generated/ENDPOINTS.md lists the served endpoints.
func TestEndpointsPage(t *testing.T) {
	page := new(strings.Builder)
	page.WriteString(`# Endpoints

These are the operations that the gateway serves. If the configuration contains keys in Slurm's spelling, the gateway also serves these paths with
` + "`/slurm/` instead of `/sched/`, and with `/slurmdb/` instead of `/scheddb/`" + `. A slash at the end may be omitted. The following operations need no
credential and no scope: ` + "`GET /healthz`, `GET /readyz`, `GET /status`, `GET /docs`, `GET /openapi`, `GET /openapi.json`, `GET /openapi.yaml` and `GET /openapi/v3`" + `. The OpenAPI
document (` + "`GET /openapi.json`" + `) describes the parameters and fields of all operations, and ` + "`GET /sched/v0.0.45/openapi.json`" + ` those of one version. Operations of slurmrestd that this page does not
list are answered with 501. ` + previews() + `This page is generated by ` + "`go test ./api -update`" + `.

| operation | purpose | scope | API versions |
| --- | --- | --- | --- |
`)
	for _, e := range Endpoints {
		first, last := Versions[0], Versions[len(Versions)-1]
		if e.Since != 0 {
			first = e.Since
		}
		if e.Until != 0 {
			last = e.Until - 1
		}
		versions := first.String()
		if last != first {
			versions += " to " + last.String()
		}
		fmt.Fprintf(page, "| `%s /%s/…/%s` | %s | %s | %s |\n", e.Method, e.Segment(schema.Sched), e.Path, e.Doc, e.Scope, versions)
	}
	checkGenerated(t, "../docs/generated/ENDPOINTS.md", page.String())
}

// previews returns a sentence about each preview.
func previews() (text string) {
	for _, p := range feature.Parsers {
		if p.Preview() {
			text += p.Name() + " is a preview of Slurm " + feature.PreviewOf + " and may change until that release.\n"
		}
	}
	return text
}

// checkGenerated checks that a file has the expected content. With the flag
// -update it writes the file instead.
func checkGenerated(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(want, string(got)); d != "" {
		t.Errorf("go test ./api -update: %s should have (-), has (+):\n%s", file, d)
	}
}

func place(e *Endpoint, name string) string {
	if e.InPath(name) {
		return "path"
	}
	return "query"
}

func describeParam(p schema.Property) string {
	typ := p.Shape.Kind
	if p.Shape.Enum != nil {
		typ += "(" + strings.Join(p.Shape.Enum, "|") + ")"
	}
	if p.Required {
		typ += " required"
	}
	return typ
}

// schemaName returns the name that testdata uses for body's schema, or "" if
// there is no body. If testdata defines the schema in place, schemaName returns
// the body's kind, such as "object". In this case TestCoverage compares the
// contents.
func schemaName(v schema.Version, documented string, body Table, view schema.View) string {
	switch {
	case body == nil:
		return ""
	case documented == "object":
		return body.Shape(view).Kind
	}
	return "@" + v.String() + "_" + body.Shape(view).Name
}

var braces = regexp.MustCompile(`{([^}]*)}`)

// TestPathParameters checks that a path has a parameter in braces if and only
// if the table has this parameter and marks it as required.
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
			if d := gocmp.Diff(named, required); d != "" {
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
				t.Errorf("%s: declared twice, or without Doc, Answer or Params", key)
			}
			seen[key] = seen[key] || e.In(v)
		}
	}
}
