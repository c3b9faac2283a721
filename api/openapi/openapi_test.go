package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// everything returns the options for a document of the whole API.
func everything() Options {
	return Options{Parsers: feature.AllParsers(), Names: api.NamesBoth, Content: feature.AllContent,
		Auth: feature.JWT | feature.Local, Release: "1.2.3"}
}

// parsers returns the parsers that the given value of the option -d selects.
func parsers(t *testing.T, value string) []feature.Parser {
	t.Helper()
	list, err := feature.ParseParsers("-d", value)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func written(t *testing.T, o Options) []byte {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := schema.NewJSONWriter(&b, schema.Compact)
	d.Write(out)
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read returns the document for o, loaded and validated by a library.
func read(t *testing.T, o Options) *openapi3.T {
	t.Helper()
	return load(t, written(t, o))
}

// loaded contains the documents that were loaded, by their texts, because
// loading one takes long. No test changes a document.
var loaded sync.Map

// load returns the document with the given text.
func load(t *testing.T, text []byte) *openapi3.T {
	t.Helper()
	if doc, ok := loaded.Load(string(text)); ok {
		return doc.(*openapi3.T)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	loaded.Store(string(text), doc)
	return doc
}

// eachAndAll returns values of the option -d: each version, and all of them.
func eachAndAll() []string {
	var list []string
	for _, p := range feature.Parsers {
		list = append(list, p.Name())
	}
	return append(list, strings.Join(list, ","))
}

// TestDocument checks that documents with various options are valid, and that
// the same options always produce the same document.
func TestDocument(t *testing.T) {
	for _, names := range []api.Names{api.NamesSched, api.NamesSlurm, api.NamesBoth} {
		for _, versions := range append(eachAndAll(), "v0.0.41+prefer_refs", "v0.0.42+minimize_refs", "v0.0.42+inline_enums",
			"v0.0.43+minimize_refs,v0.0.42+inline_enums+minimize_refs") {
			o := everything()
			o.Names, o.Parsers = names, parsers(t, versions)
			if names == api.NamesBoth && len(o.Parsers) == 1 {
				continue // it has the operations and schemas of the two other documents
			}
			text := written(t, o)
			doc := load(t, text)
			if want := len(o.Parsers) * len(names.Spellings()); doc.Paths.Len() < 7*want {
				t.Errorf("%v %s: %d paths", names, versions, doc.Paths.Len())
			}
			if !bytes.Equal(text, written(t, o)) {
				t.Errorf("%v %s: the document differs each time it is written", names, versions)
			}
		}
	}
}

// TestPreviews checks that a document's description names the previews.
func TestPreviews(t *testing.T) {
	all := load(t, written(t, everything())).Info.Description
	for _, p := range feature.Parsers {
		o := everything()
		o.Parsers = []feature.Parser{p}
		one, text := load(t, written(t, o)).Info.Description, p.Name()+" is a preview of Slurm "+feature.PreviewOf
		if strings.Contains(one, text) != p.Preview() || strings.Contains(all, text) != p.Preview() {
			t.Errorf("%q: in the document of the version %t, in that of all %t", text, strings.Contains(one, text), strings.Contains(all, text))
		}
	}
}

// TestOperations checks that the document has every endpoint, with its
// parameters and body, and with the operation name that clients use.
func TestOperations(t *testing.T) {
	doc := read(t, everything())
	for _, e := range api.Endpoints {
		for _, v := range api.Versions {
			for _, names := range api.NamesBoth.Spellings() {
				view := schema.View{Version: v, Spelling: names}
				item := doc.Paths.Value(e.URL(view))
				if !e.InView(view) { // in version v, another endpoint may have this path
					continue
				}
				if item == nil || item.GetOperation(e.Method) == nil {
					t.Errorf("no %s %s", e.Method, e.URL(view))
					continue
				}
				op := item.GetOperation(e.Method)
				params := len(e.Parameters(view)) + len(headers(e))
				if e.Keyed {
					if p := op.Parameters.GetByInAndName("header", api.HeaderKey); p == nil || p.Required || *p.Schema.Value.MaxLength != api.MaxKey {
						t.Errorf("%s %s: %s is %+v", e.Method, e.URL(view), api.HeaderKey, p)
					}
				}
				if got, marked := op.Extensions["x-preview"]; marked != (v > api.Latest) || marked && got != true {
					t.Errorf("%s %s: x-preview is %v", e.Method, e.URL(view), got)
				}
				if op.OperationID != e.OperationID(view) || len(op.Parameters) != params || (op.RequestBody != nil) != (e.Request != nil) {
					t.Errorf("%s %s: %s, %d parameters", e.Method, e.URL(view), op.OperationID, len(op.Parameters))
				}
			}
		}
	}
}

// TestFlags checks which schema names each flag adds to the document, and which
// schema names it removes.
func TestFlags(t *testing.T) {
	tests := []struct {
		version, flags string
		named, inPlace []string // with the flags, these schemas are named or in place; without them, it is the other way round
		always         []string // named with and without the flags
	}{
		{"v0.0.41", "+prefer_refs", []string{"node", "nodes", "job_state", "uint32_no_val_struct", "csv_string", "openapi_meta", "job_submit_req"}, nil, []string{"openapi_nodes_resp"}},
		{"v0.0.42", "+prefer_refs", nil, nil, []string{"node", "nodes", "job_state", "openapi_nodes_resp"}},
		{"v0.0.42", "+minimize_refs", nil, []string{"node", "nodes", "job_info", "job_state", "openapi_errors", "uint16_no_val_struct", "job_submit_req"}, []string{"openapi_nodes_resp"}},
		{"v0.0.42", "+inline_enums", nil, []string{"job_state", "node_states", "job_flags"}, []string{"node", "nodes", "csv_string", "uint16_no_val_struct"}},
		{"v0.0.43", "+minimize_refs", nil, []string{"node", "nodes", "csv_string", "job_submit_req"}, []string{"openapi_nodes_resp"}},
	}
	for _, tt := range tests {
		t.Run(tt.version+tt.flags, func(t *testing.T) {
			o := everything()
			o.Names = api.NamesSlurm
			o.Parsers = parsers(t, tt.version)
			without := read(t, o).Components.Schemas
			o.Parsers = parsers(t, tt.version+tt.flags)
			with := read(t, o).Components.Schemas
			has := func(in openapi3.Schemas, name string) bool { return in[tt.version+"_"+name] != nil }
			for _, name := range tt.named {
				if has(without, name) || !has(with, name) {
					t.Errorf("%s: named without %v, with %v", name, has(without, name), has(with, name))
				}
			}
			for _, name := range tt.inPlace {
				if !has(without, name) || has(with, name) {
					t.Errorf("%s: named without %v, with %v", name, has(without, name), has(with, name))
				}
			}
			for _, name := range tt.always {
				if !has(without, name) || !has(with, name) {
					t.Errorf("%s: named without %v, with %v", name, has(without, name), has(with, name))
				}
			}
		})
	}
}

// TestMinimalReferences checks which bodies have names in v0.0.41, and in later
// versions with +minimize_refs: those that more than one operation has, as in
// slurmrestd's documents, and no other schema.
func TestMinimalReferences(t *testing.T) {
	text, err := os.ReadFile("../testdata/paths.tsv")
	if err != nil {
		t.Fatal(err)
	}
	slurmrestd := map[string]bool{} // in its document of v0.0.41
	for _, name := range regexp.MustCompile(`@(v0\.0\.41_\w+)`).FindAllStringSubmatch(string(text), -1) {
		slurmrestd[name[1]] = true
	}
	for _, parser := range []string{"v0.0.41", "v0.0.42+minimize_refs", "v0.0.45+minimize_refs"} {
		o := everything()
		o.Names, o.Parsers = api.NamesSlurm, parsers(t, parser)
		doc := read(t, o)
		bodies := map[string]int{} // operations by name of a body
		for _, item := range doc.Paths.Map() {
			for _, op := range item.Operations() {
				named := map[string]bool{}
				var contents []openapi3.Content
				for _, r := range op.Responses.Map() {
					contents = append(contents, r.Value.Content)
				}
				if op.RequestBody != nil {
					contents = append(contents, op.RequestBody.Value.Content)
				}
				for _, c := range contents {
					named[c.Get("application/json").Schema.Ref] = true
				}
				for name := range named {
					bodies[strings.TrimPrefix(name, "#/components/schemas/")]++
				}
			}
		}
		delete(bodies, "")
		for name, operations := range bodies {
			if operations < 2 {
				t.Errorf("%s: %s is the body of %d operations", parser, name, operations)
			}
		}
		version, _, _ := strings.Cut(parser, "+")
		for name := range slurmrestd {
			if name = strings.Replace(name, "v0.0.41", version, 1); bodies[name] == 0 {
				t.Errorf("%s: %s has no name", parser, name)
			}
		}
		if parser == "v0.0.41" && len(bodies) != len(slurmrestd) {
			t.Errorf("%d bodies have names, in slurmrestd's document %d", len(bodies), len(slurmrestd))
		}
		if len(doc.Components.Schemas) != len(bodies) {
			t.Errorf("%s: %d schemas have names, %d bodies", parser, len(doc.Components.Schemas), len(bodies))
		}
	}
}

// TestArrayReferences checks how fields refer to arrays (see property). A
// reference to an array must have no members beside it, because OpenAPI 3.0
// ignores such members. The reference must not be inside an allOf, because
// generators would lose the array's type. A field that needs members beside a
// reference defines its array in place instead.
func TestArrayReferences(t *testing.T) {
	for _, versions := range []string{"v0.0.40", "v0.0.41+prefer_refs", "v0.0.42", "v0.0.43"} {
		t.Run(versions, func(t *testing.T) {
			o := everything()
			o.Names, o.Parsers = api.NamesSched, parsers(t, versions)
			references, described := 0, 0
			for name, s := range read(t, o).Components.Schemas {
				for field, p := range s.Value.Properties {
					for _, in := range p.Value.AllOf {
						if !in.Value.Type.Is("object") {
							t.Errorf("%s.%s: an allOf of %v", name, field, in.Value.Type)
						}
					}
					if p.Ref != "" && p.Value.Type.Is("array") {
						references++
						if p.Value.Description != "" {
							described++
						}
					} else if p.Value.Description == "" {
						t.Errorf("%s.%s has no description", name, field)
					}
				}
			}
			if references == 0 || described < references {
				t.Errorf("%d of %d references to arrays have a description", described, references)
			}
		})
	}
}

// TestDeprecatedArrays checks that a deprecated field is marked as deprecated,
// even if it is an array whose schema has a name.
func TestDeprecatedArrays(t *testing.T) {
	o := everything()
	o.Names, o.Parsers = api.NamesSched, parsers(t, "v0.0.41+prefer_refs")
	field := read(t, o).Components.Schemas["v0.0.41_job_desc_msg"].Value.Properties["exclusive"]
	if !field.Value.Deprecated || !field.Value.Type.Is("array") || field.Value.Items.Value.Enum == nil {
		t.Errorf("%+v", field.Value)
	}
}

// TestTextsStayInComments checks that no description contains "*/". Generators
// copy descriptions into comments, and "*/" would end such a comment.
func TestTextsStayInComments(t *testing.T) {
	if text := written(t, everything()); bytes.Contains(text, []byte("*/")) {
		t.Error(`there is a "*/"`)
	}
}

// TestSchemaNames checks that the document refers to a schema by name wherever
// slurmrestd's document does. The code of generated clients contains the names,
// also those of lists. A name that the document never uses would be noise.
func TestSchemaNames(t *testing.T) {
	text, err := os.ReadFile("../testdata/schemas.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v0.0.40", "v0.0.42", "v0.0.42+prefer_refs", "v0.0.43", "v0.0.44", "v0.0.45"} {
		t.Run(version, func(t *testing.T) {
			o := everything()
			o.Names, o.Parsers = api.NamesSlurm, parsers(t, version)
			schemas, document := read(t, o).Components.Schemas, string(written(t, o))
			for name := range schemas {
				if !strings.Contains(document, `"#/components/schemas/`+name+`"`) {
					t.Errorf("%s is never used", name)
				}
			}
			prefix, compared := strings.SplitN(version, "+", 2)[0]+"\t", 0
			for line := range strings.Lines(string(text)) {
				row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				if !strings.HasPrefix(line, prefix) || !strings.HasPrefix(row[3], "@") || schemas[row[1]] == nil {
					continue
				}
				if schemas[row[1]].Value.Properties[row[2]] == nil {
					continue
				}
				compared++
				if want := strings.TrimPrefix(row[3], "@"); schemas[want] == nil {
					t.Errorf("%s.%s: no schema %s", row[1], row[2], want)
				}
			}
			if compared < 100 {
				t.Errorf("only %d fields compared", compared)
			}
		})
	}
}

// TestSpellings checks a document that has both spellings. For Slurm's paths it
// must have all that the document of Slurm's spelling has, with the same names,
// because clients generated from either must be the same. Schemas of this
// project's spelling that differ from Slurm's must have other names.
func TestSpellings(t *testing.T) {
	o := everything()
	both := read(t, o)
	o.Names = api.NamesSlurm
	slurm := read(t, o)
	for name, want := range slurm.Components.Schemas {
		if got := both.Components.Schemas[name]; got == nil || !maps.Equal(references(got.Value), references(want.Value)) {
			t.Errorf("%s differs from the one in the document of Slurm's spelling", name)
		}
	}
	for path, item := range slurm.Paths.Map() {
		for method, want := range item.Operations() {
			got := both.Paths.Value(path).GetOperation(method)
			if d := cmp.Diff(bodies(want), bodies(got)); d != "" {
				t.Errorf("%s %s: in the document of Slurm's spelling (-), of both (+):\n%s", method, path, d)
			}
			if d := cmp.Diff(want.Security, got.Security); d != "" {
				t.Errorf("%s %s: security: %s", method, path, d)
			}
		}
	}
	for name, header := range map[string]string{"user": "X-SLURM-USER-NAME", "token": "X-SLURM-USER-TOKEN",
		"sched_user": "X-SCHED-USER-NAME", "sched_token": "X-SCHED-USER-TOKEN"} {
		if scheme := both.Components.SecuritySchemes[name]; scheme == nil || scheme.Value.Name != header {
			t.Errorf("security scheme %s: %+v", name, scheme)
		}
	}
	for name, field := range map[string]string{"v0.0.42_node": "slurmd_start_time", "sched_v0.0.42_node": "schedd_start_time"} {
		if both.Components.Schemas[name] == nil || both.Components.Schemas[name].Value.Properties[field] == nil {
			t.Errorf("%s has no %s", name, field)
		}
	}
	if both.Components.Schemas["sched_v0.0.42_uint32_no_val_struct"] != nil {
		t.Error("a schema that is the same in both spellings is listed twice")
	}
	o.Names = api.NamesSched
	for name := range read(t, o).Components.Schemas {
		if strings.HasPrefix(name, "sched_") {
			t.Errorf("this project's spelling alone: %s", name)
		}
	}
}

// references returns the names of the schemas to which the fields of s refer.
func references(s *openapi3.Schema) map[string]string {
	names := map[string]string{}
	for field, p := range s.Properties {
		names[field] = p.Ref
		for _, in := range p.Value.AllOf {
			names[field] = in.Ref
		}
		if p.Value.Items != nil {
			names[field+"[]"] = p.Value.Items.Ref
		}
	}
	return names
}

// bodies returns the names of the schemas of an operation's bodies.
func bodies(op *openapi3.Operation) map[string]string {
	names := map[string]string{}
	if op.RequestBody != nil {
		names["request"] = op.RequestBody.Value.Content["application/json"].Schema.Ref
	}
	for status, r := range op.Responses.Map() {
		names[status] = r.Value.Content["application/json"].Schema.Ref
	}
	return names
}

func TestStatuses(t *testing.T) {
	tests := []struct {
		value string
		want  []string
	}{
		{"", []string{"200", "default"}},
		{"200,default", []string{"200", "default"}},
		{"200", []string{"200"}},
		{"200, 401,404 ,401,default,", []string{"200", "401", "404", "default"}},
		{"2XX,304,5XX", []string{"2XX", "304", "5XX"}},
		{"default", []string{"default"}},
		{"200,4XX,default", []string{"200", "4XX", "default"}},
	}
	for _, tt := range tests {
		list, err := feature.ParseStatuses("X", tt.value)
		if err != nil {
			t.Fatal(err)
		}
		o := everything()
		o.Statuses = list
		opts := o
		opts.Parsers, opts.Names = parsers(t, "v0.0.43"), api.NamesSched
		read(t, opts) // validating the document of all versions takes too long
		var doc struct {
			Paths map[string]map[string]struct{ Responses map[string]any }
		}
		if err := json.Unmarshal(written(t, o), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Paths) == 0 {
			t.Errorf("%q: no paths", tt.value)
		}
		for path, item := range doc.Paths {
			for method, op := range item {
				got := slices.Sorted(maps.Keys(op.Responses))
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Fatalf("%q: %s %s: %s", tt.value, method, path, d)
				}
			}
		}
	}
}

// TestOptions checks that invalid options cause an error, not an empty
// document.
func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no versions": func(o *Options) { o.Parsers = nil },
		"no names":    func(o *Options) { o.Names = api.Names{} },
		"no content":  func(o *Options) { o.Content = 0 },
		"bad status":  func(o *Options) { o.Statuses = []string{"all"} },
	} {
		o := everything()
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestBodiesAreJSONUnlessServed checks that only the document of a gateway
// lists other media types. The document that --generate-openapi-spec writes, for
// generators, lists only JSON. The older names of YAML are in none.
func TestBodiesAreJSONUnlessServed(t *testing.T) {
	o := everything()
	for path, item := range read(t, o).Paths.Map() {
		for method, op := range item.Operations() {
			for media := range op.Responses.Value("200").Value.Content {
				if text := strings.HasSuffix(path, "/stdout") || strings.HasSuffix(path, "/stderr") || strings.HasSuffix(path, "/script"); media != "application/json" && !(text && media == "text/plain") {
					t.Errorf("%s %s can answer with %s", method, path, media)
				}
			}
		}
	}
	o.Served, o.Parsers = true, parsers(t, "v0.0.42")
	doc := read(t, o)
	op := doc.Paths.Value("/sched/v0.0.42/job/submit").Post
	for _, content := range []openapi3.Content{op.RequestBody.Value.Content, op.Responses.Value("200").Value.Content, op.Responses.Default().Value.Content} {
		if got := slices.Sorted(maps.Keys(content)); !slices.Equal(got, []string{"application/json", "application/yaml"}) {
			t.Errorf("media types %q", got)
		}
	}
}

// TestEvents checks that the lists that clients can follow are described as
// streams of events, and that they do not have this media type in a document
// for generators, or in Slurm's spelling.
func TestEvents(t *testing.T) {
	for _, served := range []bool{false, true} {
		o := everything()
		o.Served, o.Parsers = served, parsers(t, "v0.0.43")
		doc := read(t, o)
		for _, e := range api.Endpoints {
			for _, names := range api.NamesBoth.Spellings() {
				view := schema.View{Version: 43, Spelling: names}
				if !e.InView(view) {
					continue
				}
				op := doc.Paths.Value(e.URL(view)).GetOperation(e.Method)
				if e.Text { // its events are others
					if got := op.Responses.Value("200").Value.Content["text/event-stream"] != nil; got != served {
						t.Errorf("%s, served %v: media type %v", op.OperationID, served, got)
					}
					continue
				}
				follows := e.Collection != ""
				if got := op.Parameters.GetByInAndName("header", "Last-Event-ID") != nil; got != follows {
					t.Errorf("%s: Last-Event-ID %v, want %v", op.OperationID, got, follows)
				}
				for _, event := range []string{"snapshot", "added", "changed", "removed", "reset", "end"} {
					if got := strings.Contains(op.Description, "`"+event+"`"); got != follows {
						t.Errorf("%s: described event %s: %v, want %v", op.OperationID, event, got, follows)
					}
				}
				got := op.Responses.Value("200").Value.Content["text/event-stream"] != nil
				if want := follows && served && names == schema.Sched; got != want {
					t.Errorf("%s, served %v: media type %v, want %v", op.OperationID, served, got, want)
				}
			}
		}
	}
}
