package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// TestParserNames checks that the names of the versions that the option -d
// accepts are those in paths.
func TestParserNames(t *testing.T) {
	for i, p := range feature.Parsers {
		if p.Name() != Versions[i].String() {
			t.Errorf("%s is %s in paths", p.Name(), Versions[i])
		}
	}
}

// names adds the names of all schemas in a documented body to the map. The keys
// are the paths of the fields.
func (d documents) names(version, name, path string, into map[string]string) {
	for _, row := range d[[2]string{version, name}] {
		inline, at := name+"."+row.field, path+"."+row.field
		if row.field == "[]" {
			inline, at = name+"[]", path+"[]"
		}
		typ := row.typ
		for m := arrayOf.FindStringSubmatch(typ); m != nil; m = arrayOf.FindStringSubmatch(typ) {
			typ, inline, at = m[1], inline+"[]", at+"[]"
		}
		if named, ok := strings.CutPrefix(typ, "@"); ok {
			into[at], inline = named, named
		}
		d.names(version, inline, at, into)
	}
}

// shapeNames adds the names of all schemas in a Shape to the map. The keys are
// the paths of the fields.
func shapeNames(v schema.View, s *schema.Shape, path string, into map[string]string) {
	for _, p := range s.Fields {
		if p.Undocumented {
			continue
		}
		if p.Shape.Name != "" {
			into[path+"."+p.Name] = SchemaName(p.Shape.Name, v)
		}
		shapeNames(v, p.Shape, path+"."+p.Name, into)
	}
	if s.Items != nil {
		if s.Items.Name != "" {
			into[path+"[]"] = SchemaName(s.Items.Name, v)
		}
		shapeNames(v, s.Items, path+"[]", into)
	}
}

// renamed lists our schemas whose names differ from those in Slurm's documents.
// The values are the reasons.
var renamed = map[string]string{
	"tres_of_task": "it has two fields that slurmrestd always sends, but that the documented schema lacks",
}

// TestSchemaNames checks that schemas have the same names as in Slurm's
// documents, because the code of generated clients contains these names.
// Slurm's documents for v0.0.41 name hardly any schemas, so the test skips this
// version. From v0.0.43 on, Slurm's documents don't name sets of words, so the
// test ignores our names for such sets.
func TestSchemaNames(t *testing.T) {
	docs := readDocuments(t)
	for name, b := range bodies() {
		for _, v := range Versions {
			if v < b.since || v == V41 { // before b.since it is this project's own endpoint
				continue
			}
			view := schema.View{Version: v, Spelling: schema.Slurm}
			want, got := map[string]string{}, map[string]string{}
			docs.names(v.String(), v.String()+"_"+name, "", want)
			shapeNames(view, b.Shape(view), "", got)
			for path, schemaName := range got {
				if renamed[strings.TrimPrefix(schemaName, v.String()+"_")] != "" {
					delete(want, path)
					delete(got, path)
				}
			}
			words := map[string]bool{}
			wordPaths(b.Shape(view), "", words)
			for path := range got {
				if _, named := want[path]; !named && v >= V43 && words[path] {
					delete(got, path)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s %s: documented (-), declared (+):\n%s", v, name, d)
			}
		}
	}
}

// wordPaths adds the paths of all arrays in s to the map. The value is true if
// the array is a set of words.
func wordPaths(s *schema.Shape, path string, into map[string]bool) {
	if s.Items != nil {
		into[path] = s.Items.Enum != nil
		wordPaths(s.Items, path+"[]", into)
	}
	for _, p := range s.Fields {
		wordPaths(p.Shape, path+"."+p.Name, into)
	}
}

// TestOneNameOneSchema checks that no two schemas of a View have the same name,
// because a document can define a name only once.
func TestOneNameOneSchema(t *testing.T) {
	for _, v := range Versions {
		for _, names := range NamesBoth.Spellings() {
			view := schema.View{Version: v, Spelling: names}
			seen := map[string]*schema.Shape{}
			for _, b := range bodies() {
				oneName(t, view, b.Shape(view), seen)
			}
			if len(seen) < 10 {
				t.Errorf("%v: %d names", view, len(seen))
			}
		}
	}
}

func oneName(t *testing.T, v schema.View, s *schema.Shape, seen map[string]*schema.Shape) {
	if s.Name != "" {
		if prev := seen[s.Name]; prev != nil {
			if d := cmp.Diff(prev, s); d != "" {
				t.Errorf("%v: two schemas %s:\n%s", v, s.Name, d)
			}
			return
		}
		seen[s.Name] = s
	}
	if s.Items != nil {
		oneName(t, v, s.Items, seen)
	}
	for _, p := range s.Fields {
		oneName(t, v, p.Shape, seen)
	}
}
