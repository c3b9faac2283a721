package api

import (
	"slices"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// text returns the type of a text in a change. An empty text in a request
// removes the value of the field.
func text() schema.Type[model.Text] { return textOf(schema.String)() }

// textOf returns the type of a model.Text that has the form of typ in requests,
// such as an array.
func textOf(typ func() schema.Type[string]) func() schema.Type[model.Text] {
	return func() schema.Type[model.Text] { return textType{typ()} }
}

type textType struct{ typ schema.Type[string] }

func (t textType) Shape(v schema.View) *schema.Shape { return t.typ.Shape(v) }

func (t textType) Renderer(v schema.View) func(schema.Encoder, *model.Text) {
	render := t.typ.Renderer(v)
	return func(e schema.Encoder, value *model.Text) {
		s := value.String()
		render(e, &s)
	}
}

func (t textType) Parser(v schema.View) func(*schema.Report, *schema.Value, *model.Text) bool {
	parse := t.typ.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *model.Text) bool {
		var s string
		if !parse(r, doc, &s) {
			return false
		}
		*into = model.SetText(s)
		return true
	}
}

// present returns a type like typ, but an empty list in a request is ignored
// with a warning, as slurmrestd ignores it: many clients send empty lists for
// the fields that they do not mean to change.
func present[T any](typ func() schema.Type[T]) func() schema.Type[T] {
	return ignoring(typ, func(v *schema.Value) bool { return v.Kind == schema.Array && len(v.Items) == 0 })
}

// nonempty returns a type like typ, but a value in a request is ignored with a
// warning if it is an empty text, object or list, or a list of empty texts.
func nonempty[T any](typ func() schema.Type[T]) func() schema.Type[T] { return ignoring(typ, isEmpty) }

func isEmpty(v *schema.Value) bool {
	switch v.Kind {
	case schema.Text:
		return v.Text == ""
	case schema.Map:
		return len(v.Items) == 0
	case schema.Array:
		return !slices.ContainsFunc(v.Items, func(item schema.Value) bool { return item.Kind != schema.Text || item.Text != "" })
	}
	return false
}

// ignoring returns a type like typ, but a value that is empty in a request is
// ignored with a warning.
func ignoring[T any](typ func() schema.Type[T], empty func(*schema.Value) bool) func() schema.Type[T] {
	return func() schema.Type[T] { return ignoringType[T]{typ(), empty} }
}

type ignoringType[T any] struct {
	schema.Type[T]
	empty func(*schema.Value) bool
}

func (t ignoringType[T]) Parser(v schema.View) func(*schema.Report, *schema.Value, *T) bool {
	parse := t.Type.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *T) bool {
		if t.empty(doc) {
			r.Warn(doc, "empty, ignored")
			return false
		}
		return parse(r, doc, into)
	}
}
