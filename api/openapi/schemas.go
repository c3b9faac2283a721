package openapi

import (
	"reflect"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/feature"
)

// schemas collects all schemas that a document's operations use, and determines
// which of them get a name.
type schemas struct {
	policies map[schema.Version]policy
	all      map[place]*used
	order    []*used
}

// place identifies a schema: within a View, each name belongs to one schema.
type place struct {
	view schema.View
	name string
}

// used is a schema with its number of uses and its name in the document.
type used struct {
	place
	shape *schema.Shape
	doc   string // description shared by all fields that use it, otherwise ""
	uses  int
	body  bool
	as    string // name in the document; "" if the schema is written in place
	first bool   // whether it is the first schema with that name
}

func newSchemas(parsers []feature.Parser) schemas {
	s := schemas{policies: map[schema.Version]policy{}, all: map[place]*used{}}
	for _, p := range parsers {
		s.policies[schema.Version(p.Version)] = policyOf(p)
	}
	return s
}

// body counts the schema of a body, and all schemas in it.
func (s *schemas) body(v schema.View, shape *schema.Shape) {
	s.count(v, shape, "")
	s.all[place{v, shape.Name}].body = true
}

// count counts a use of shape, and the uses of the named schemas in it. If
// shape is the schema of a field, doc is the field's description. The contents
// of a named schema are counted only once, because they are written only once.
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

// inPlace reports whether a field's array is written in place although its
// schema has a name. This is the case for a field that has properties in
// addition to its type and description, because a reference to an array must
// stand alone (see property).
func inPlace(f schema.Property) bool {
	return f.Shape.Kind == "array" && f.Shape.Items != nil && (f.Deprecated || strings.Contains(f.Name, " "))
}

// describe records that one use of the schema has the description doc. If the
// descriptions of two uses differ, the schema gets none.
func (u *used) describe(doc string) {
	if u.doc != doc {
		u.doc = ""
	}
}

// name assigns names to the schemas to which the document refers.
//
// A schema that is the same in both spellings is listed once, under its name in
// the first spelling.
//
// If a schema differs between the spellings, it is listed twice. The schema in
// this project's spelling keeps its name, and the one in Slurm's spelling gets
// the prefix "slurm_". A document that has only Slurm's spelling needs no
// prefix, so its schemas have the names that clients know.
func (s *schemas) name() {
	type inner struct {
		version schema.Version
		name    string // name in the tables
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

// reference returns the name by which the document refers to shape, or "" if
// shape is written in place.
func (s *schemas) reference(v schema.View, shape *schema.Shape) string {
	if shape.Name == "" {
		return ""
	}
	return s.all[place{v, shape.Name}].as
}
