package schema

import (
	"fmt"
	"sync"
)

// ObjectType is the Type of the Go type O. It is defined by a table of fields.
type ObjectType[O any] struct{ table }

// Object declares an object. The name argument is the name of the object's
// schema. The fields argument is a function that returns the object's table,
// which lists the fields in the order in which they are shown. Object does not
// call fields: the table is built when it is first used, because building all
// tables would slow down the start of a worker.
func Object[O any](name string, fields func() Fields[O]) *ObjectType[O] {
	return &ObjectType[O]{table{name: name, load: func() []field { return untyped(fields()) }}}
}

// Type returns t as a Type. The functions for fields, such as F, take this
// method as an argument.
func (t *ObjectType[O]) Type() Type[O] { return t }

// Renderer returns a function that writes an object in the View v.
func (t *ObjectType[O]) Renderer(v View) func(Encoder, *O) {
	render := t.renderer(v)
	return func(e Encoder, o *O) { render(e, o) }
}

// Parser returns a function that parses an object in the View v.
func (t *ObjectType[O]) Parser(v View) func(*Report, *Value, *O) bool {
	parse := t.parser(v)
	return func(r *Report, doc *Value, o *O) bool { return parse(r, doc, o) }
}

// table is the part of an ObjectType that does not depend on the object's type.
type table struct {
	name string
	load func() []field

	once   sync.Once
	fields []field // what load returned

	mu        sync.Mutex // guards renderers and parsers
	renderers map[View]func(Encoder, any)
	parsers   map[View]func(*Report, *Value, any) bool
}

func (t *table) loaded() []field {
	t.once.Do(func() { t.fields = t.load() })
	return t.fields
}

// renderer returns the function that renders objects in the View v. It compiles
// the table when it is first called for this View.
func (t *table) renderer(v View) func(Encoder, any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renderers == nil {
		t.renderers = make(map[View]func(Encoder, any))
	}
	if t.renderers[v] == nil {
		t.renderers[v] = renderFields(t.loaded(), v)
	}
	return t.renderers[v]
}

// parser returns the function that parses objects in the View v. It compiles
// the table when it is first called for this View.
func (t *table) parser(v View) func(*Report, *Value, any) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parsers == nil {
		t.parsers = make(map[View]func(*Report, *Value, any) bool)
	}
	if t.parsers[v] == nil {
		t.parsers[v] = parseFields(t.loaded(), v)
	}
	return t.parsers[v]
}

// Shape describes the table in v.
func (t *table) Shape(v View) *Shape {
	return &Shape{Name: t.name, Kind: "object", Fields: properties(t.loaded(), v)}
}

func properties(fields []field, v View) []Property {
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
				Shape:        f.shape(v),
			})
		}
	}
	return list
}

// fieldRenderer is a field in one View, compiled for rendering.
type fieldRenderer struct {
	key    string
	render func(Encoder, any)
}

func renderFields(fields []field, v View) func(Encoder, any) {
	var list []fieldRenderer
	for i := range fields {
		f := &fields[i]
		if f.versions.has(v.Version) && f.renderer != nil {
			list = append(list, fieldRenderer{f.spelled(v.Spelling), f.renderer(v)})
		}
	}
	return func(e Encoder, o any) {
		e.BeginObject()
		for i := range list {
			e.Key(list[i].key)
			list[i].render(e, o)
		}
		e.EndObject()
	}
}

// fieldParser is a field in one View, compiled for parsing.
type fieldParser struct {
	name     string
	required bool
	parse    func(*Report, *Value, any)
}

func parseFields(fields []field, v View) func(*Report, *Value, any) bool {
	var list []fieldParser
	var names []string
	byName := make(map[string]int) // index in list
	for i := range fields {
		f := &fields[i]
		if f.versions.has(v.Version) {
			name, parse, settable := f.spelled(v.Spelling), warnNotSettable, f.parser != nil
			if settable {
				parse = f.parser(v)
			}
			if _, duplicate := byName[name]; duplicate {
				panic(fmt.Sprintf("schema: field %q twice in %v", name, v.Version))
			}
			byName[name] = len(list)
			list = append(list, fieldParser{name, f.required.has(v.Version) && settable, parse})
			names = append(names, name)
		}
	}
	return func(r *Report, doc *Value, o any) bool { return parseMembers(r, doc, o, list, names, byName) }
}

// warnNotSettable parses a field that can't be set. It adds a warning, not an
// error, because the client may have copied the field from an answer. If the
// value is empty, 0 or false, it adds no warning.
func warnNotSettable(r *Report, doc *Value, _ any) {
	if len(doc.Items) > 0 || doc.Kind != Map && doc.Kind != Array && doc.Text != "" && doc.Text != "0" && doc.Text != "false" {
		r.Warn(doc, "can't be set, ignored")
	}
}

// parseMembers parses the members of doc into o. A null member is ignored if
// its field is optional, and is an error if the field is required. A known name
// that occurs twice is also an error, because a filter in front of the gateway
// may have checked the wrong one of the two values.
func parseMembers(r *Report, doc *Value, o any, list []fieldParser, names []string, byName map[string]int) bool {
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
				switch {
				case m.Kind != Null:
					list[f].parse(r, m, o)
				case list[f].required: // for example, a null coordinator would remove all coordinators
					r.Error(m, "must not be null")
				}
			}
		})
	}
	for i, f := range list {
		if f.required && !seen[i] {
			r.In(f.name, func() { r.missing(doc) })
		}
	}
	return len(r.Errors) == before // a Lenient report never gets errors; o just lacks the invalid fields
}
