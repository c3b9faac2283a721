package openapi

import (
	"reflect"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/feature"
)

// schemas is every schema that a document's operations use, and which of them are named.
type schemas struct {
	policies map[schema.Version]policy
	all      map[place]*used
	order    []*used
}

// place is where a schema's name is looked up: tables use one name for one thing in a View.
type place struct {
	view schema.View
	name string
}

// used is a schema with its fate.
type used struct {
	place
	shape *schema.Shape
	doc   string // of the fields that use it, if all have the same one
	uses  int
	body  bool
	as    string // name in the document; "" when it is written in place
	first bool   // no other schema before it has that name
}

func newSchemas(parsers []feature.Parser) schemas {
	s := schemas{policies: map[schema.Version]policy{}, all: map[place]*used{}}
	for _, p := range parsers {
		s.policies[schema.Version(p.Version)] = policyOf(p)
	}
	return s
}

// body counts the schema of a body and all that is in it.
func (s *schemas) body(v schema.View, shape *schema.Shape) {
	s.count(v, shape, "")
	s.all[place{v, shape.Name}].body = true
}

// count counts the uses of named schemas below shape, which is the schema of a
// field with the description doc, or of no field. A named schema is written
// once, and its contents are counted once.
func (s *schemas) count(v schema.View, shape *schema.Shape, doc string) {
	if shape.Name != "" {
		at := place{v, shape.Name}
		if known := s.all[at]; known != nil {
			known.uses++
			known.describe(doc)
			return
		}
		s.all[at] = &used{place: at, shape: shape, doc: doc, uses: 1}
		s.order = append(s.order, s.all[at])
	}
	if shape.Items != nil {
		s.count(v, shape.Items, "")
	}
	for _, f := range shape.Fields {
		if inPlace(f) {
			s.count(v, f.Shape.Items, "")
		} else {
			s.count(v, f.Shape, describe(f))
		}
	}
}

// inPlace reports whether a field's schema is written in the field even if it has a name: a
// reference to an array stands alone, and the field has more to say than its type and description.
func inPlace(f schema.Property) bool {
	return f.Shape.Kind == "array" && f.Shape.Items != nil && (f.Deprecated || strings.Contains(f.Name, " "))
}

// describe drops the schema's description unless doc, that of another use, is the same.
func (u *used) describe(doc string) {
	if u.doc != doc {
		u.doc = ""
	}
}

// name assigns the names of the schemas that are referred to in the document. A
// schema that is the same in both spellings is there once, by the name of the
// first, even where that name is spelled differently: schemas that contain it
// may then be there once, too. When the spellings differ, this project's schema
// keeps its name, as in a document of that spelling alone, and Slurm's gets the
// prefix "slurm_". A document of Slurm's spelling alone has the names that
// clients know.
func (s *schemas) name() {
	type inner struct {
		version schema.Version
		name    string // as tables have it
	}
	taken, ours := map[string]*used{}, map[inner]*used{}
	for _, u := range s.order {
		if !u.body && !s.policies[u.view.Version].names(u.shape, u.uses) {
			continue
		}
		if alike := ours[inner{u.view.Version, u.name}]; !u.body && alike != nil && reflect.DeepEqual(alike.shape, u.shape) {
			u.as = alike.as
			alike.describe(u.doc)
			continue
		}
		ours[inner{u.view.Version, u.name}] = u
		u.as = api.SchemaName(u.name, u.view)
		other := taken[u.as]
		if other != nil && !reflect.DeepEqual(other.shape, u.shape) {
			u.as = "slurm_" + u.as
			other = nil
		}
		if u.first = other == nil; !u.first {
			other.describe(u.doc)
			continue
		}
		taken[u.as] = u
	}
}

// reference returns the name by which shape is referenced, or "" if it is
// written in place.
func (s *schemas) reference(v schema.View, shape *schema.Shape) string {
	if shape.Name == "" {
		return ""
	}
	return s.all[place{v, shape.Name}].as
}
