package schema

import (
	"fmt"
	"sync"
)

// ObjectType is a table of fields. It is the Type of an O.
type ObjectType[O any] struct {
	name   string
	fields []Field[O]

	mu        sync.Mutex
	renderers map[View]func(Encoder, *O)
	parsers   map[View]func(*Report, *Value, *O) bool
}

// Object declares an object. name is the name of its schema. Its fields are
// shown in the given order.
func Object[O any](name string, fields ...Field[O]) *ObjectType[O] {
	return &ObjectType[O]{name: name, fields: fields}
}

// Type returns t. A field takes it as a function: F("energy", Energy.Type, …).
func (t *ObjectType[O]) Type() Type[O] { return t }

// Renderer returns a function that writes an object in the View v. It compiles
// the table once for each View.
func (t *ObjectType[O]) Renderer(v View) func(Encoder, *O) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renderers == nil {
		t.renderers = make(map[View]func(Encoder, *O))
	}
	if t.renderers[v] == nil {
		t.renderers[v] = renderFields(t.fields, v)
	}
	return t.renderers[v]
}

// Parser returns a function that parses an object in the View v. It compiles
// the table once for each View.
func (t *ObjectType[O]) Parser(v View) func(*Report, *Value, *O) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parsers == nil {
		t.parsers = make(map[View]func(*Report, *Value, *O) bool)
	}
	if t.parsers[v] == nil {
		t.parsers[v] = parseFields(t.fields, v)
	}
	return t.parsers[v]
}

// Shape describes the table in v.
func (t *ObjectType[O]) Shape(v View) *Shape {
	return &Shape{Name: t.name, Kind: "object", Fields: properties(t.fields, v)}
}

func properties[O any](fields []Field[O], v View) []Property {
	var list []Property
	for i := range fields {
		f := &fields[i]
		if f.versions.has(v.Version) {
			list = append(list, Property{
				Name:         f.spelled(v.Spelling),
				Doc:          f.doc,
				Unit:         f.unit,
				Required:     f.required.has(v.Version),
				Deprecated:   f.deprecated.has(v.Version),
				Undocumented: f.undocumented.has(v.Version),
				Ignored:      f.ignored,
				Shape:        f.value.shape(v),
			})
		}
	}
	return list
}

// fieldRenderer is a field in one View, compiled for rendering.
type fieldRenderer[O any] struct {
	key    string
	render func(Encoder, *O)
}

func renderFields[O any](fields []Field[O], v View) func(Encoder, *O) {
	var list []fieldRenderer[O]
	for i := range fields {
		f := &fields[i]
		if !f.versions.has(v.Version) {
			continue
		}
		if render := f.value.renderer(v); render != nil {
			list = append(list, fieldRenderer[O]{f.spelled(v.Spelling), render})
		}
	}
	return func(e Encoder, o *O) {
		e.BeginObject()
		for i := range list {
			e.Key(list[i].key)
			list[i].render(e, o)
		}
		e.EndObject()
	}
}

// fieldParser is a field in one View, compiled for parsing.
type fieldParser[O any] struct {
	name     string
	required bool
	parse    func(*Report, *Value, *O)
}

func parseFields[O any](fields []Field[O], v View) func(*Report, *Value, *O) bool {
	var list []fieldParser[O]
	var names []string
	byName := make(map[string]int) // index in list
	for i := range fields {
		f := &fields[i]
		if f.versions.has(v.Version) {
			name, parse := f.spelled(v.Spelling), f.value.parser(v)
			settable := parse != nil
			if !settable {
				parse = warnNotSettable[O]
			}
			if _, duplicate := byName[name]; duplicate {
				panic(fmt.Sprintf("schema: field %q twice in %v", name, v.Version))
			}
			byName[name] = len(list)
			list = append(list, fieldParser[O]{name, f.required.has(v.Version) && settable, parse})
			names = append(names, name)
		}
	}
	return func(r *Report, doc *Value, o *O) bool { return parseMembers(r, doc, o, list, names, byName) }
}

// warnNotSettable parses a field that can't be set. It only adds a warning, because
// the client may have copied the field from an answer. For an empty value it
// does not even add a warning.
func warnNotSettable[O any](r *Report, doc *Value, _ *O) {
	if len(doc.Items) > 0 || doc.Kind != Map && doc.Kind != Array && doc.Text != "" && doc.Text != "0" && doc.Text != "false" {
		r.Warn(doc, "can't be set, ignored")
	}
}

// parseMembers parses the members of doc into o. A null sets nothing, but
// satisfies Required. A known name that occurs twice is an error, because a
// filter in front of the gateway may have checked the other occurrence.
func parseMembers[O any](r *Report, doc *Value, o *O, list []fieldParser[O], names []string, byName map[string]int) bool {
	if doc.Kind != Map {
		return r.Error(doc, "expected object, got %s", doc.Kind)
	}
	before := len(r.Errors)
	seen := make([]bool, len(list))
	for i := range doc.Items {
		m := &doc.Items[i]
		r.In(m.Key, func() {
			f, known := byName[m.Key]
			switch {
			case !known:
				r.unknown(m, names)
			case seen[f]:
				r.Error(m, "set twice")
			default:
				seen[f] = true
				if m.Kind != Null {
					list[f].parse(r, m, o)
				}
			}
		})
	}
	for i, f := range list {
		if f.required && !seen[i] {
			r.In(f.name, func() { r.Error(doc, "missing") })
		}
	}
	return len(r.Errors) == before // a Lenient report never gets errors; the object then lacks the invalid fields
}
