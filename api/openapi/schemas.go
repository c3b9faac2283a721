package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// schemas collects the schemas that a document's operations use, and determines
// which of them have a name.
type schemas struct {
	policies map[schema.Version]policy
	byPlace  map[place]*schemaUse
	order    []*schemaUse
}

// place identifies a schema by its View and its name. Within a View, each name
// belongs to one schema.
type place struct {
	view schema.View
	name string
}

// schemaUse is a schema with its name in the document.
type schemaUse struct {
	place
	shape   *schema.Shape
	doc     string // description that all uses of the schema share; "" if the descriptions differ
	bodies  int    // number of operations with the schema as a body
	refName string // name in the document; "" if the schema is written in place
	isFirst bool   // whether this is the first schema with this refName
}

func newSchemas(parsers []feature.Parser) schemas {
	s := schemas{policies: map[schema.Version]policy{}, byPlace: map[place]*schemaUse{}}
	for _, p := range parsers {
		s.policies[schema.Version(p.Version)] = policyOf(p)
	}
	return s
}

// addBody adds the schema of a body of one more operation, and all schemas in it.
func (s *schemas) addBody(v schema.View, shape *schema.Shape) {
	s.add(v, shape, "")
	s.byPlace[place{v, shape.Name}].bodies++
}

// add adds shape, and the schemas in shape. If shape belongs to a field, doc is
// the field's description. If shape has a name, the document contains it only
// once. So the schemas in shape are added only when add first sees shape.
func (s *schemas) add(v schema.View, shape *schema.Shape, doc string) {
	if shape.Name != "" {
		at := place{v, shape.Name}
		if known := s.byPlace[at]; known != nil {
			known.mergeDoc(doc)
			return
		}
		s.byPlace[at] = &schemaUse{place: at, shape: shape, doc: doc}
		s.order = append(s.order, s.byPlace[at])
	}
	if shape.Items != nil {
		s.add(v, shape.Items, "")
	}
	for _, f := range shape.Fields {
		if inPlace(f) {
			s.add(v, f.Shape.Items, "")
		} else {
			s.add(v, f.Shape, describe(f))
		}
	}
}

// inPlace reports whether a field's array is written in place, even if its
// schema could have a name. This is necessary if the field has members other
// than its type and description: they can't be beside a reference to an array
// (see property).
func inPlace(f schema.Property) bool {
	return f.Shape.Kind == "array" && f.Shape.Items != nil && (f.Deprecated || strings.Contains(f.Name, " "))
}

// mergeDoc compares the schema's description with doc, the description of
// another use of the schema. If they differ, the schema gets no description.
func (u *schemaUse) mergeDoc(doc string) {
	if u.doc != doc {
		u.doc = ""
	}
}

// assignNames assigns names to the schemas.
//
// Slurm's schemas have the names that slurmrestd gives them, because the code of
// clients generated from its document contains these names.
//
// A schema that is the same in both spellings is listed once, under Slurm's
// name. A schema that differs between the spellings is listed twice. If it has
// the same name in both, the name in this project's spelling gets the prefix
// "sched_". If the document has only one spelling, no name gets the prefix.
func (s *schemas) assignNames() {
	type inner struct {
		version schema.Version
		name    string // name in the tables
	}
	assigned, seen := map[string]*schemaUse{}, map[inner]*schemaUse{}
	slurmFirst := slices.SortedStableFunc(slices.Values(s.order), func(a, b *schemaUse) int {
		return cmp.Compare(b.view.Spelling, a.view.Spelling)
	})
	for _, u := range slurmFirst {
		if !s.policies[u.view.Version].names(u) {
			continue
		}
		if twin := seen[inner{u.view.Version, u.name}]; u.bodies == 0 && twin != nil && reflect.DeepEqual(twin.shape, u.shape) {
			u.refName = twin.refName
			twin.mergeDoc(u.doc)
			continue
		}
		seen[inner{u.view.Version, u.name}] = u
		u.refName = api.SchemaName(u.name, u.view)
		existing := assigned[u.refName]
		if existing != nil && !reflect.DeepEqual(existing.shape, u.shape) {
			u.refName = "sched_" + u.refName
			existing = nil
		}
		if u.isFirst = existing == nil; !u.isFirst {
			existing.mergeDoc(u.doc)
			continue
		}
		assigned[u.refName] = u
	}
}

// reference returns the name by which the document refers to shape, or "" if
// shape is written in place.
func (s *schemas) reference(v schema.View, shape *schema.Shape) string {
	if shape.Name == "" {
		return ""
	}
	return s.byPlace[place{v, shape.Name}].refName
}
