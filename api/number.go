package api

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// In JSON, a number that may be unset or infinite has a wrapper: the object
// {set, infinite, number}. A request may contain a plain integer instead of the
// wrapper.

// number returns the type of a model.Opt that has a wrapper in JSON.
func number[T model.Unsigned]() schema.Type[model.Opt[T]] { return wrapper[T]{} }

// rawNumber returns the type of an integer that has a wrapper in JSON, but is a
// plain integer in the model. In the model and in the protocol, the largest
// value means "infinite", and the next smaller value means "not set".
func rawNumber[T model.Unsigned]() schema.Type[T] { return rawWrapper[T]{} }

type rawWrapper[T model.Unsigned] struct{ wrapper[T] }

func (rawWrapper[T]) Renderer(v schema.View) func(schema.Encoder, *T) {
	render := wrapper[T]{}.Renderer(v)
	return func(e schema.Encoder, n *T) {
		o := optOf(*n)
		render(e, &o)
	}
}

func (rawWrapper[T]) Parser(schema.View) func(*schema.Report, *schema.Value, *T) bool {
	return schema.Refuse[T]
}

func optOf[T model.Unsigned](n T) model.Opt[T] {
	switch n {
	case ^T(0):
		return model.Infinite[T]()
	case ^T(0) - 1:
		return model.Opt[T]{}
	}
	return model.Some(n)
}

type wrapper[T model.Unsigned] struct{}

func (wrapper[T]) Shape(v schema.View) *schema.Shape {
	width := bits.Len64(uint64(^T(0)))
	format := "int64"
	if v.Version >= V41 && width <= 32 {
		format = "int32"
	}
	return wrapperShape(v, "uint"+strconv.Itoa(width), &schema.Shape{Kind: "integer", Format: format, Wide: width > 31})
}

// wrapperShape describes the wrapper of a number. The wrapper's schema is named
// after typeName, such as "uint32", with a suffix.
func wrapperShape(v schema.View, typeName string, number *schema.Shape) *schema.Shape {
	name := typeName + "_no_val_struct"
	if v.Version < V41 {
		name = typeName + "_no_val"
	}
	boolean := &schema.Shape{Kind: "boolean"}
	return &schema.Shape{Name: name, Kind: "object", Fields: []schema.Property{
		{Name: "set", Doc: "Whether number is set", Shape: boolean},
		{Name: "infinite", Doc: "Whether the value is unlimited; number is then ignored", Shape: boolean},
		{Name: "number", Doc: "The number; 0 if it is not set", Shape: number},
	}}
}

func (wrapper[T]) Renderer(v schema.View) func(schema.Encoder, *model.Opt[T]) {
	render := wrapperRenderer(v)
	return func(e schema.Encoder, o *model.Opt[T]) { render(e, o.Set, o.Infinite, uint64(o.Number)) }
}

// wrapperRenderer returns a function that writes a wrapper with an integer.
func wrapperRenderer(v schema.View) func(e schema.Encoder, set, infinite bool, n uint64) {
	if v.Only == nil {
		return renderWrapper
	}
	return func(e schema.Encoder, set, infinite bool, n uint64) {
		if !set {
			n = 0
		}
		renderMembers(v, e, set, infinite, func() { e.Uint(n) })
	}
}

// renderMembers writes the members of a wrapper that v shows. The function
// number writes the wrapper's number.
func renderMembers(v schema.View, e schema.Encoder, set, infinite bool, number func()) {
	e.BeginObject()
	if v.Shows("set") {
		e.Key("set")
		e.Bool(set)
	}
	if v.Shows("infinite") {
		e.Key("infinite")
		e.Bool(infinite)
	}
	if v.Shows("number") {
		e.Key("number")
		number()
	}
	e.EndObject()
}

// renderWrapper writes a wrapper. It is optimized for compact JSON, because
// most of the output for a list of jobs consists of wrappers.
func renderWrapper(e schema.Encoder, set, infinite bool, n uint64) {
	if !set {
		n = 0
	}
	if j, ok := e.(*schema.JSONWriter); ok && j.UintBetween(wrapperText(set, infinite), n, "}") {
		return
	}
	renderMembers(schema.View{}, e, set, infinite, func() { e.Uint(n) })
}

// wrapperText returns the text of a wrapper in compact JSON, up to its number.
func wrapperText(set, infinite bool) string {
	switch {
	case set && infinite:
		return `{"set":true,"infinite":true,"number":`
	case set:
		return `{"set":true,"infinite":false,"number":`
	case infinite:
		return `{"set":false,"infinite":true,"number":`
	}
	return `{"set":false,"infinite":false,"number":`
}

// wrapperInput is a wrapper as a client sends it. A nil member is absent.
type wrapperInput struct {
	wrapperFlags
	number *int64
}

// kind returns the kind of value that a wrapper contains.
func (g *wrapperInput) kind(r *schema.Report, doc *schema.Value) (inputKind, bool) {
	return g.wrapperFlags.kind(r, doc, g.number != nil)
}

// wrapperFlags are the members of a wrapper that say what its number means. A
// nil member is absent.
type wrapperFlags struct{ set, infinite *bool }

// inputKind is the kind of value that a wrapper contains.
type inputKind int

// The kinds of values in wrappers.
const (
	inputUnset inputKind = iota
	inputInfinite
	inputNumber
)

// kind returns the kind of value. The hasNumber argument reports whether the
// wrapper has a number. If set is absent, a number is set. If set is true, the
// number must not be absent: to guess a number would change a value that the
// client did not name.
func (g *wrapperFlags) kind(r *schema.Report, doc *schema.Value, hasNumber bool) (inputKind, bool) {
	switch {
	case g.infinite != nil && *g.infinite:
		return inputInfinite, true
	case g.set != nil && *g.set && !hasNumber:
		return inputUnset, r.Error(doc, "set is true, but number is missing")
	case g.set != nil && !*g.set || !hasNumber:
		return inputUnset, true
	}
	return inputNumber, true
}

var wrapperInputType = schema.Object("", func() schema.Fields[wrapperInput] {
	return schema.Fields[wrapperInput]{
		schema.Set("set", schema.Boolean, func(g *wrapperInput, b bool) error { g.set = &b; return nil }, ""),
		schema.Set("infinite", schema.Boolean, func(g *wrapperInput, b bool) error { g.infinite = &b; return nil }, ""),
		schema.Set("number", schema.Int64, func(g *wrapperInput, n int64) error { g.number = &n; return nil }, ""),
	}
})

func (wrapper[T]) Parser(v schema.View) func(*schema.Report, *schema.Value, *model.Opt[T]) bool {
	object := wrapperInputType.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *model.Opt[T]) bool {
		var g wrapperInput
		if doc.Kind == schema.Map {
			if !object(r, doc, &g) {
				return false
			}
		} else if isInfinite(doc) {
			*into = model.Infinite[T]()
			return true
		} else {
			n, ok := schema.ParseInteger(r, doc, -1, greatest[T]())
			if !ok {
				return false
			}
			g.number = &n
		}
		switch kind, ok := g.kind(r, doc); {
		case !ok:
			return false
		case kind == inputInfinite, kind == inputNumber && *g.number == -1:
			*into = model.Infinite[T]()
		case kind == inputUnset:
			*into = model.Opt[T]{}
		case *g.number < 0 || *g.number > greatest[T]():
			return r.Error(doc, "%d is out of range, 0 to %d", *g.number, greatest[T]())
		default:
			*into = model.Some(T(*g.number))
		}
		return true
	}
}

// isInfinite reports whether a value is the word "infinite". Like -1, it means
// the same as the wrapper {"infinite": true}.
func isInfinite(v *schema.Value) bool {
	return v.Kind == schema.Text && strings.EqualFold(v.Text, "infinite")
}

// limitNumber returns the type of a number in the records of the accounting
// daemon. The daemon ignores numbers above maxLimit.
func limitNumber() schema.Type[model.Opt[uint32]] { return limitWrapper{} }

// maxLimit is the largest number that the accounting daemon stores.
const maxLimit = math.MaxInt32

type limitWrapper struct{ wrapper[uint32] }

func (w limitWrapper) Parser(v schema.View) func(*schema.Report, *schema.Value, *model.Opt[uint32]) bool {
	parse := w.wrapper.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *model.Opt[uint32]) bool {
		return parse(r, doc, into) && (into.Number <= maxLimit || r.Error(doc, "%d is out of range, 0 to %d", into.Number, maxLimit))
	}
}

// plainLimit returns the type of a plain integer in the records of the
// accounting daemon. As in slurmrestd, 4294967295 restores the default.
func plainLimit() schema.Type[uint32] {
	plain := schema.Int32[uint32]()
	return schema.Simple(plain.Shape(schema.View{}), plain.Renderer(schema.View{}),
		func(r *schema.Report, doc *schema.Value, into *uint32) bool {
			n, ok := schema.ParseInteger(r, doc, 0, math.MaxUint32)
			if ok && n > maxLimit && n != math.MaxUint32 {
				return r.Error(doc, "%d is out of range, 0 to %d", n, maxLimit)
			}
			*into = uint32(n)
			return ok
		})
}

// factor returns the type of a floating-point number in the records of the
// accounting daemon, which ignores negative numbers.
func factor() schema.Type[float64] {
	return wrapped[float64]{shaped[float64]{schema.Simple(nil, nil,
		func(r *schema.Report, doc *schema.Value, into *float64) bool {
			return parseDouble(r, doc, into) && (*into >= 0 || r.Error(doc, "expected a number of at least 0, got %v", *into))
		}), doubleShape}, double().Renderer}
}

// greatest returns the largest value of T that a client may send. This value is
// smaller than the special values for "infinite" and "not set", and at most the
// largest int64.
func greatest[T model.Unsigned]() int64 {
	return int64(min(uint64(^T(0)-2), math.MaxInt64))
}

// plain returns the type of a model.Opt that is shown as a plain integer, or as
// 0 if it is unset.
func plain[T model.Unsigned]() schema.Type[model.Opt[T]] { return plainFrom[T](0) }

// divisor returns a type like plain, but 0 is out of range. With 0 tasks per
// socket, slurmctld divides by zero (_socks_per_node in select/cons_tres), and
// ends when it tries to start the job.
func divisor[T model.Unsigned]() schema.Type[model.Opt[T]] { return plainFrom[T](1) }

func plainFrom[T model.Unsigned](least int64) schema.Type[model.Opt[T]] {
	return schema.Simple(&schema.Shape{Kind: "integer", Format: "int32", Wide: greatest[T]() > math.MaxInt32},
		func(e schema.Encoder, o *model.Opt[T]) { e.Uint(uint64(o.Or(0))) },
		func(r *schema.Report, doc *schema.Value, into *model.Opt[T]) bool {
			n, ok := schema.ParseInteger(r, doc, least, greatest[T]())
			*into = model.Some(T(n))
			return ok
		})
}

// intBool returns the type of a number that is shown as a boolean: 0 as false,
// any other number as true.
func intBool[T schema.Integer]() schema.Type[T] {
	return schema.Simple(&schema.Shape{Kind: "boolean"},
		func(e schema.Encoder, n *T) { e.Bool(*n != 0) },
		func(r *schema.Report, doc *schema.Value, into *T) bool {
			var b bool
			ok := schema.ParseBool(r, doc, &b)
			*into = 0
			if b {
				*into = 1
			}
			return ok
		})
}

// optBool returns the type of a number that may be unset and is shown as a
// boolean. An unset number and 0 are shown as false, any other number as true.
func optBool[T model.Unsigned]() schema.Type[model.Opt[T]] {
	parse := intBool[T]().Parser(schema.View{})
	return schema.Simple(&schema.Shape{Kind: "boolean"},
		func(e schema.Encoder, o *model.Opt[T]) { e.Bool(o.Set && o.Number != 0) },
		func(r *schema.Report, doc *schema.Value, into *model.Opt[T]) bool {
			into.Set = parse(r, doc, &into.Number)
			return into.Set
		})
}

// double returns the type of a floating-point number that has a wrapper in
// JSON. NaN and Slurm's value for "not set" are shown as unset. Infinities and
// Slurm's value for "infinite" are shown as infinite.
func double() schema.Type[float64] {
	return wrapped[float64]{shaped[float64]{schema.Simple(nil, nil, parseDouble), doubleShape}, func(v schema.View) func(schema.Encoder, *float64) {
		return func(e schema.Encoder, f *float64) {
			infinite := *f == math.MaxUint32 || math.IsInf(*f, 0)
			n, set := *f, !infinite && *f != math.MaxUint32-1 && !math.IsNaN(*f)
			if !set {
				n = 0
			}
			renderMembers(v, e, set, infinite, func() { e.Float(n) })
		}
	}}
}

func doubleShape(v schema.View) *schema.Shape {
	return wrapperShape(v, "float64", &schema.Shape{Kind: "number", Format: "double"})
}

// doubleInput is the wrapper of a floating-point number as a client sends it. A
// nil member is absent.
type doubleInput struct {
	wrapperFlags
	number *float64
}

var doubleInputType = schema.Object("", func() schema.Fields[doubleInput] {
	return schema.Fields[doubleInput]{
		schema.Set("set", schema.Boolean, func(g *doubleInput, b bool) error { g.set = &b; return nil }, ""),
		schema.Set("infinite", schema.Boolean, func(g *doubleInput, b bool) error { g.infinite = &b; return nil }, ""),
		schema.Set("number", schema.Float, func(g *doubleInput, f float64) error { g.number = &f; return nil }, ""),
	}
})

// parseDouble parses a floating-point number with or without a wrapper.
func parseDouble(r *schema.Report, doc *schema.Value, into *float64) bool {
	if isInfinite(doc) {
		*into = model.FloatInfinite
		return true
	}
	if doc.Kind != schema.Map {
		return schema.Float().Parser(schema.View{})(r, doc, into)
	}
	var g doubleInput
	if !doubleInputType.Parser(schema.View{})(r, doc, &g) {
		return false
	}
	switch kind, ok := g.kind(r, doc, g.number != nil); {
	case !ok:
		return false
	case kind == inputInfinite:
		*into = model.FloatInfinite
	case kind == inputNumber:
		*into = *g.number
	}
	return true
}

// wrapped is a type whose values have a wrapper in JSON, but are no model.Opt.
type wrapped[T any] struct {
	shaped[T]
	renderer func(schema.View) func(schema.Encoder, *T)
}

// Renderer returns a function that writes a value.
func (w wrapped[T]) Renderer(v schema.View) func(schema.Encoder, *T) { return w.renderer(v) }

// shaped is a type whose description may differ between versions. The function
// shape describes it. The parser and the renderer are the same in all versions.
type shaped[T any] struct {
	schema.Type[T]
	shape func(schema.View) *schema.Shape
}

func (s shaped[T]) Shape(v schema.View) *schema.Shape { return s.shape(v) }
