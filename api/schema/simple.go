package schema

import "strings"

// simple is a Type that looks the same in every View.
type simple[T any] struct {
	shape  *Shape
	render func(Encoder, *T)
	parse  func(*Report, *Value, *T) bool
}

func (s simple[T]) Renderer(View) func(Encoder, *T)            { return s.render }
func (s simple[T]) Parser(View) func(*Report, *Value, *T) bool { return s.parse }
func (s simple[T]) Shape(View) *Shape                          { return s.shape }

// Simple returns a Type that looks the same in every View. If parse is nil,
// values of this type can't be parsed.
func Simple[T any](shape *Shape, render func(Encoder, *T), parse func(*Report, *Value, *T) bool) Type[T] {
	if parse == nil {
		parse = Refuse[T]
	}
	return simple[T]{shape, render, parse}
}

// Refuse adds an error for every value, and returns false. It is the parser of
// types whose values can't be parsed.
func Refuse[T any](r *Report, v *Value, _ *T) bool { return r.Error(v, "can't be set") }

// String returns the type of a text.
func String() Type[string] {
	return simple[string]{text,
		func(e Encoder, s *string) { e.String(*s) },
		ParseText}
}

// ParseText parses a string. It also accepts a number or a boolean and uses its
// literal text, but adds a warning. It refuses a string with a NUL: the
// scheduler's C code would cut the string there, and a name that has passed a
// check would become another name.
func ParseText(r *Report, v *Value, into *string) bool {
	switch v.Kind {
	case Text:
	case Number, Bool:
		r.Warn(v, "expected string, got %s", v.Kind)
	default:
		return r.Error(v, "expected string, got %s", v.Kind)
	}
	if strings.IndexByte(v.Text, 0) >= 0 {
		return r.Error(v, "contains a NUL")
	}
	*into = v.Text
	return true
}

// Boolean returns the type of true and false.
func Boolean() Type[bool] {
	return simple[bool]{&Shape{Kind: "boolean"},
		func(e Encoder, b *bool) { e.Bool(*b) },
		ParseBool}
}

// boolWords contains the texts that slurmrestd recognizes as booleans, in lower
// case (_convert_data_bool and _convert_data_null in its data.c).
var boolWords = map[string]bool{
	"true": true, "t": true, "yes": true, "y": true, "on": true, "1": true,
	"false": false, "f": false, "no": false, "n": false, "off": false, "0": false, "": false,
}

// ParseBool parses a boolean. It also accepts the numbers 1 and 0, the words in
// boolWords in upper or lower case, and the empty string, which stands for
// false, but adds a warning. slurmrestd takes every other number or string,
// such as "none", as true; ParseBool refuses these.
func ParseBool(r *Report, v *Value, into *bool) bool {
	known := false
	switch v.Kind {
	case Bool, Number, Text:
		if len(v.Text) <= len("false") && (v.Text != "" || !v.Untyped) {
			*into, known = boolWords[strings.ToLower(v.Text)]
		}
	}
	switch {
	case known:
	case v.Kind == Text:
		return r.Error(v, "expected true or false, got string %q", Shorten(v.Text))
	case v.Kind == Number:
		return r.Error(v, "expected true or false, got %s", v.Text)
	default:
		return r.Error(v, "expected boolean, got %s", v.Kind)
	}
	if v.Kind != Bool && !v.Untyped {
		r.Warn(v, "expected boolean, got %s", v.Kind)
	}
	return true
}

// Float returns the type of a floating-point number.
func Float() Type[float64] {
	return simple[float64]{&Shape{Kind: "number", Format: "double"},
		func(e Encoder, f *float64) { e.Float(*f) },
		parseFloat}
}
