// Command surface reads OpenAPI documents of slurmrestd and writes the tables
// with which tests compare the API. The tables list every operation, parameter
// and field of each version, by name and type.
//
//	slurmrestd --generate-openapi-spec -d v0.0.40,v0.0.41,v0.0.42 >24.11.json
//	slurmrestd --generate-openapi-spec -d v0.0.43,v0.0.44,v0.0.45 >26.05.json
//	slurmrestd --generate-openapi-spec -d v0.0.46 >26.11.json
//	go run ./tools/lint/surface 24.11.json 26.05.json 26.11.json
//
// It writes api/testdata/paths.tsv, params.tsv and schemas.tsv, whose columns
// api/testdata/README.md describes.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	OperationID string
	Tags        []string
	Deprecated  bool
	Parameters  []struct {
		In, Name, Style   string
		Explode, Required bool
		Schema            *schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema *schema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema *schema }
	}
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type, Format         string
	Enum                 []string
	Items                *schema
	Properties           map[string]*schema
	AdditionalProperties json.RawMessage
	Required             []string
	Deprecated           bool
	AllOf                []*schema
}

// tables has the rows of each file.
type tables struct{ paths, params, schemas []string }

func main() {
	if len(os.Args) < 2 {
		fail("usage: surface DOCUMENT...")
	}
	var t tables
	var documents []document
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			fail("%v", err)
		}
		var d document
		if err := json.Unmarshal(text, &d); err != nil {
			fail("read %s: %v", name, err)
		}
		documents = append(documents, d)
	}
	bodies := bodyNames(documents)
	for _, d := range documents {
		t.read(d, bodies)
	}
	for _, f := range []struct {
		name, header string
		rows         []string
	}{
		{"paths", "version\tmethod\tpath\toperationId\ttags\trequest\tresponses\tdeprecated\tcontent", t.paths},
		{"params", "version\tmethod\tpath\tin\tname\ttype\tstyle\texplode\trequired", t.params},
		{"schemas", "version\tschema\tfield\ttype\trequired\tdeprecated", t.schemas},
	} {
		if f.name == "params" { // in the document's order, within an operation
			slices.SortStableFunc(f.rows, func(a, b string) int { return cmp.Compare(operationOf(a), operationOf(b)) })
		} else {
			slices.Sort(f.rows)
		}
		text := f.header + "\n" + strings.Join(slices.Compact(f.rows), "\n") + "\n"
		if err := os.WriteFile(filepath.Join("api", "testdata", f.name+".tsv"), []byte(text), 0o644); err != nil {
			fail("%v", err)
		}
	}
}

// operationOf returns the version, method and path of a row.
func operationOf(row string) string {
	return strings.Join(strings.SplitN(row, "\t", 4)[:3], "\t")
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "error: "+format+"\n", args...)
	os.Exit(1)
}

var version = regexp.MustCompile(`^/\w+/(v0\.0\.\d+)/(.*)$`)

// splitVersion returns the version of a path, and the path without it.
func splitVersion(path string) (v, rest string) {
	m := version.FindStringSubmatch(path)
	if m == nil {
		return "", ""
	}
	return m[1], strings.Split(path, "/")[1] + "/" + strings.TrimSuffix(m[2], "/")
}

// bodyNames returns a map from the bodies of all operations to their names. If
// a version defines a body in place, without a name, bodyNames takes the name
// from a version whose operation refers to a named body.
func bodyNames(documents []document) map[string]string {
	names := map[string]string{}
	for _, d := range documents {
		for path, methods := range d.Paths {
			v, rest := splitVersion(path)
			for method, op := range methods {
				for kind, s := range op.bodies() {
					if s != nil && s.Ref != "" {
						key := method + " " + rest + " " + kind
						name := strings.TrimPrefix(refName(s.Ref), v+"_")
						if old := names[key]; old == "" || name < old {
							names[key] = name
						}
					}
				}
			}
		}
	}
	return names
}

// bodies returns the schemas of an operation's request and answer.
func (o operation) bodies() map[string]*schema {
	return map[string]*schema{
		"request":  o.RequestBody.Content["application/json"].Schema,
		"response": o.Responses["200"].Content["application/json"].Schema,
	}
}

func (t *tables) read(d document, bodies map[string]string) {
	for path, methods := range d.Paths {
		v, rest := splitVersion(path)
		if v == "" {
			continue
		}
		for method, op := range methods {
			key := []string{v, strings.ToUpper(method), path}
			t.operation(key, op)
			for kind, s := range op.bodies() {
				if name := bodies[method+" "+rest+" "+kind]; s != nil && s.Ref == "" && name != "" {
					t.fields(v, v+"_"+name, s)
				}
			}
		}
	}
	for name, s := range d.Components.Schemas {
		v, _, _ := strings.Cut(name, "_")
		t.fields(v, name, s)
	}
}

func (t *tables) operation(key []string, op operation) {
	var answers, media []string
	for status, r := range op.Responses {
		answers = append(answers, status+"="+typeOf(r.Content["application/json"].Schema))
		for m := range r.Content {
			media = append(media, m)
		}
	}
	slices.Sort(answers)
	slices.Sort(media)
	var request string
	if s := op.RequestBody.Content["application/json"].Schema; s != nil {
		request = typeOf(s)
	}
	t.paths = append(t.paths, row(key, op.OperationID, strings.Join(op.Tags, ","), request, strings.Join(answers, ";"),
		mark("deprecated", op.Deprecated), strings.Join(slices.Compact(media), ",")))
	for _, p := range op.Parameters {
		t.params = append(t.params, row(key, p.In, p.Name, typeOf(p.Schema), p.Style,
			mark("explode", p.Explode), mark("required", p.Required)))
	}
}

// fields adds the fields of the schema s, which has the given name, and the
// fields of the objects that s defines in place.
func (t *tables) fields(v, name string, s *schema) {
	if s.Type == "array" {
		t.field(v, name, "[]", s.Items, "", name+"[]")
	}
	if len(s.AdditionalProperties) > 0 && s.AdditionalProperties[0] == '{' {
		var extra schema
		if json.Unmarshal(s.AdditionalProperties, &extra) == nil {
			t.field(v, name, "*", &extra, "", name+".*")
		}
	}
	for field, p := range s.Properties {
		t.field(v, name, field, p, mark("required", slices.Contains(s.Required, field)), name+"."+field)
	}
}

func (t *tables) field(v, name, field string, s *schema, required, inline string) {
	if s == nil {
		s = &schema{}
	}
	t.schemas = append(t.schemas, row([]string{v, name, field}, typeOf(s), required, mark("deprecated", s.Deprecated)))
	for s.Type == "array" && s.Items != nil {
		s, inline = s.Items, inline+"[]"
	}
	if s.Type == "object" {
		t.fields(v, inline, s)
	}
}

// typeOf returns a schema's type in the notation of the tables.
func typeOf(s *schema) string {
	switch {
	case s == nil:
		return "?"
	case s.Ref != "":
		return "@" + refName(s.Ref)
	case len(s.AllOf) == 1:
		return typeOf(s.AllOf[0])
	case s.Type == "array":
		return "array<" + typeOf(s.Items) + ">"
	case len(s.Enum) > 0:
		return s.Type + "(" + strings.Join(s.Enum, "|") + ")"
	case s.Format != "":
		return s.Type + ":" + s.Format
	case s.Type == "":
		return "?"
	}
	return s.Type
}

func refName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

func mark(word string, on bool) string {
	if on {
		return word
	}
	return ""
}

func row(key []string, cells ...string) string {
	return strings.Join(append(slices.Clone(key), cells...), "\t")
}
