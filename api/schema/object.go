package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"sync"
)

// ObjectType is the Type of the Go type O. It is defined by a table of fields,
// which is not embedded, for the same reason as in Field.
type ObjectType[O any] struct{ table table }

// Object declares an object. The name argument is the name of the object's
// schema. The fields argument is a function that returns the object's table,
// which lists the fields in the order in which they are shown. Object does not
// call fields: the table is built when it is first used, because building all
// tables would slow down the start of a worker.
func Object[O any](name string, fields func() Fields[O]) *ObjectType[O] {
	return &ObjectType[O]{table{name: name, load: func() []field { return untyped(fields()) }}}
}

// Change declares an object like Object, for a body that changes a record. In
// the model of such a body, the zero value of a field leaves the record's field
// as it is. So a member that leaves the model as it was gets a warning: the
// client sent a value, such as 0 or an empty list, which would otherwise be lost
// without a word.
func Change[O any](name string, fields func() Fields[O]) *ObjectType[O] {
	t := Object(name, fields)
	t.table.lost = func(parse func(*Report, *Value, any), r *Report, doc *Value, o any) bool {
		object, notes := o.(*O), r.notes()
		before := *object
		parse(r, doc, o)
		if r.notes() != notes || !reflect.DeepEqual(before, *object) {
			return false
		}
		var alone, blank O // another field of the body may have set the same value
		parse(&Report{Lenient: true}, doc, &alone)
		return reflect.DeepEqual(alone, blank)
	}
	return t
}

// lossCheck calls parse with the other arguments, and reports whether the value
// left the object o as it was, without a note.
type lossCheck func(parse func(*Report, *Value, any), r *Report, doc *Value, o any) bool

// warningOfLoss returns a function like parse that adds a warning about a value
// that is lost.
func warningOfLoss(parse func(*Report, *Value, any), lost lossCheck) func(*Report, *Value, any) {
	return func(r *Report, doc *Value, o any) {
		if r.Lenient {
			parse(r, doc, o)
		} else if lost(parse, r, doc, o) {
			r.Warn(doc, "means \"not set\", so it has no effect")
		}
	}
}

// Type returns t as a Type. The functions for fields, such as F, take this
// method as an argument.
func (t *ObjectType[O]) Type() Type[O] { return t }

// Renderer returns a function that writes an object in the View v.
func (t *ObjectType[O]) Renderer(v View) func(Encoder, *O) {
	render := t.table.renderer(v)
	return func(e Encoder, o *O) { render(e, o) }
}

// Parser returns a function that parses an object in the View v.
func (t *ObjectType[O]) Parser(v View) func(*Report, *Value, *O) bool {
	parse := t.table.parser(v)
	return func(r *Report, doc *Value, o *O) bool { return parse(r, doc, o) }
}

// Shape describes the objects.
func (t *ObjectType[O]) Shape(v View) *Shape { return t.table.shape(v) }

// table is the part of an ObjectType that does not depend on the object's type.
type table struct {
	name string
	load func() []field

	lost lossCheck // nil, except in tables of changes

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
// the table when it is first called for this View, or each time if the View has
// a Selection.
func (t *table) renderer(v View) func(Encoder, any) {
	if v.Only != nil {
		return renderFields(t.loaded(), v) // cheap for few fields, and there are too many selections to keep them
	}
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
		t.parsers[v] = parseFields(t.loaded(), v, t.lost)
	}
	return t.parsers[v]
}

func (t *table) shape(v View) *Shape {
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
	text   string // of the key in compact JSON, after a comma
	render func(Encoder, any)
	omit   func(any) bool // nil for never
}

func renderFields(fields []field, v View) func(Encoder, any) {
	var list []fieldRenderer
	for i := range fields {
		f := &fields[i]
		if name := f.spelled(v.Spelling); f.versions.has(v.Version) && f.renderer != nil && v.Shows(name) {
			list = append(list, fieldRenderer{name, `,"` + name + `":`, f.renderer(v.In(name)), f.omit})
		}
	}
	return func(e Encoder, o any) {
		e.BeginObject()
		j, compact := e.(*JSONWriter)
		compact = compact && !j.pretty
		for i := range list {
			f := &list[i]
			if f.omit != nil && f.omit(o) {
				continue
			}
			if compact {
				j.keyText(f.text)
			} else {
				e.Key(f.key)
			}
			f.render(e, o)
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

// parseFields returns a function that parses the fields in v. The lost argument
// is that of the table; see table.lost.
func parseFields(fields []field, v View, lost lossCheck) func(*Report, *Value, any) bool {
	var list []fieldParser
	var names []string
	byName := make(map[string]int) // index in list
	for i := range fields {
		f := &fields[i]
		if f.versions.has(v.Version) {
			name, parse, settable := f.spelled(v.Spelling), warnNotSettable, f.parser != nil
			if settable {
				parse = f.parser(v, lost)
				if lost != nil {
					parse = warningOfLoss(parse, lost)
				}
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
// value is blank, it adds no warning.
func warnNotSettable(r *Report, doc *Value, _ any) {
	if !doc.Blank() {
		r.Warn(doc, "can't be set, ignored")
	}
}

// parseMembers parses the members of doc into o. A null member is ignored if
// its field is optional. It is an error if the field is required, or if the
// members are conditions. A known name
// that occurs twice is also an error, because a filter in front of the gateway
// may have checked the wrong one of the two values.
//
// The members are parsed in the order of the table, which is that of slurmrestd.
// So their order in the document has no effect if two fields set the same, such
// as nodes and minimum_nodes.
func parseMembers(r *Report, doc *Value, o any, list []fieldParser, names []string, byName map[string]int) bool {
	if doc.Kind != Map {
		return r.Error(doc, "expected object, got %s", doc.Kind)
	}
	warnings, errors := len(r.Warnings), len(r.Errors)
	members := make([]*Value, len(list))
	for i := range doc.Items {
		m := &doc.Items[i]
		f, known := byName[m.Key]
		switch {
		case !known:
			r.In(m.Key, func() { r.unknown(m, names) })
		case members[f] != nil:
			r.In(m.Key, func() { r.Error(m, "set twice") })
		default:
			members[f] = m
		}
	}
	for i, m := range members {
		switch f := &list[i]; {
		case m == nil:
		case m.Kind != Null:
			r.In(m.Key, func() { f.parse(r, m, o) })
		case f.required, r.Conditions: // for example, a null coordinator would remove all coordinators
			r.In(m.Key, func() { r.Error(m, "must not be null") })
		}
	}
	sortNotes(r.Warnings, warnings, doc)
	sortNotes(r.Errors, errors, doc)
	for i, f := range list {
		if f.required && members[i] == nil {
			r.In(f.name, func() { r.missing(doc) })
		}
	}
	return len(r.Errors) == errors // a Lenient report never gets errors; o just lacks the invalid fields
}

// sortNotes puts the notes from the given index on into the order of the members
// of doc that they are about.
func sortNotes(notes []Note, from int, doc *Value) {
	notes = notes[:min(len(notes), maxNotes)] // the note after these says that there are more
	if len(notes)-from < 2 {
		return
	}
	member := func(n Note) int { // index of the first member after the note's
		return sort.Search(len(doc.Items), func(i int) bool {
			m := &doc.Items[i]
			return int(m.Line) > n.Line || int(m.Line) == n.Line && int(m.Column) > n.Column
		})
	}
	slices.SortStableFunc(notes[from:], func(a, b Note) int { return cmp.Compare(member(a), member(b)) })
}
