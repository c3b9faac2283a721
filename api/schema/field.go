package schema

// Field is one line in the table of the Go type O. The functions F, Show, Set,
// GetSet, Ignore and Group return a Field.
//
// It has no methods, and nothing is embedded in it: the compiler would generate
// each method for each of the hundreds of types O.
type Field[O any] struct{ untyped field }

// Fields is the table of an O.
type Fields[O any] = []Field[O]

// field is a Field without the type of its object. Its functions receive the
// object's address as an any, so that the code that works on tables need not be
// generic. Generic code would add tens of thousands of functions to package api
// and slow down its compilation.
type field struct {
	name, doc string
	shape     func(View) *Shape
	renderer  func(View) func(Encoder, any)                    // nil: the field is never shown
	parser    func(View, lossCheck) func(*Report, *Value, any) // nil: the field is never parsed
	omit      func(any) bool                                   // reports whether an object is shown without the field; nil for never
	traits
}

// traits are the properties of a field that Options set.
type traits struct {
	slurm        string // name in the Slurm spelling, if that differs
	unit         string
	versions     span
	required     span
	deprecated   span
	undocumented span
	alone        bool
	ignored      bool
}

// Option sets a property of a field. It takes and returns traits by value. With
// a pointer, building the tables would need an allocation for each of their
// thousands of fields.
type Option func(traits) traits

// Since sets the first version that has the field.
func Since(v Version) Option { return func(t traits) traits { t.versions.since = v; return t } }

// Until sets the first version that no longer has the field.
func Until(v Version) Option { return func(t traits) traits { t.versions.until = v; return t } }

// Required marks a field that is always present from version v on. If the field
// is shown, answers contain it. If it is parsed, requests must contain it. A v
// of 0 stands for all versions.
func Required(v Version) Option {
	return func(t traits) traits { t.required = span{since: v}; return t }
}

// Deprecated marks a field that clients should no longer use from version v on,
// although it still works. A v of 0 stands for all versions.
func Deprecated(v Version) Option {
	return func(t traits) traits { t.deprecated = span{since: v}; return t }
}

// Unit sets the unit of a number, such as "MiB", "s" or "min".
func Unit(unit string) Option { return func(t traits) traits { t.unit = unit; return t } }

// The units of numbers that are not measurements.
const (
	CountUnit = "1" // the number counts the things that its description names
	BareUnit  = "0" // the number is an id, a rank or a set of bits
)

// Count marks a number of things.
func Count(t traits) traits { t.unit = CountUnit; return t }

// Bare marks a number that is neither a measurement nor a count, such as an id,
// a priority or a set of bits.
func Bare(t traits) traits { t.unit = BareUnit; return t }

// Extension marks a field that Slurm's API does not have.
func Extension(t traits) traits { t.undocumented = span{}; return t }

// Undocumented marks a field that slurmrestd accepts from version v on, but
// does not document.
func Undocumented(v Version) Option {
	return func(t traits) traits { t.undocumented = span{since: v}; return t }
}

// Alone marks a word that hides others: if an integer has this word, the words
// after it in the table are not shown.
func Alone(t traits) traits { t.alone = true; return t }

// InSlurm sets the name of the field in the Slurm spelling. Without it, the
// field has the same name in both spellings.
func InSlurm(name string) Option { return func(t traits) traits { t.slurm = name; return t } }

func (f *field) spelled(n Spelling) string {
	if n == Slurm && f.slurm != "" {
		return f.slurm
	}
	return f.name
}

// The compiler must not inline newField, group and the functions at the end of
// this file: it would copy them into each of the hundreds of instances of F, Show
// and Set.

//go:noinline
func newField(name, doc string, opts []Option, shape func(View) *Shape, renderer func(View) func(Encoder, any),
	parser func(View, lossCheck) func(*Report, *Value, any)) field {
	f := field{name: name, doc: doc, shape: shape, renderer: renderer, parser: parser}
	f.required, f.deprecated, f.undocumented = never, never, never
	for _, o := range opts {
		f.traits = o(f.traits)
	}
	return f
}

// F returns a field that is both shown and parsed. Its value is stored in the
// model, and at(o) returns the address of the value in the object o.
func F[O, T any](name string, typ func() Type[T], at func(*O) *T, doc string, opts ...Option) Field[O] {
	addr := func(o any) *T { return at(o.(*O)) }
	return Field[O]{newField(name, doc, opts, shapeOf(typ), renderAt(typ, addr), parseAt(typ, addr))}
}

// Show returns a field that is shown, but never parsed. The function get
// computes its value.
func Show[O, T any](name string, typ func() Type[T], get func(*O) T, doc string, opts ...Option) Field[O] {
	value := func(o any) T { return get(o.(*O)) }
	return Field[O]{newField(name, doc, opts, shapeOf(typ), renderComputed(typ, value), nil)}
}

// Set returns a field that is parsed, but never shown. The set function stores
// its value, or returns an error about the value.
func Set[O, T any](name string, typ func() Type[T], set func(*O, T) error, doc string, opts ...Option) Field[O] {
	store := func(o any, value T) error { return set(o.(*O), value) }
	return Field[O]{newField(name, doc, opts, shapeOf(typ), nil, parseWith(typ, store))}
}

// GetSet returns a field that is both shown and parsed. The function get
// computes its value, as in Show. The set function stores its value, as in Set.
func GetSet[O, T any](
	name string, typ func() Type[T], get func(*O) T, set func(*O, T) error, doc string, opts ...Option,
) Field[O] {
	f, store := Show(name, typ, get, doc, opts...), Set(name, typ, set, doc)
	f.untyped.parser = store.untyped.parser
	return f
}

// Ignore returns a field that has no effect. If a request contains the field,
// a warning is added, whatever the value.
func Ignore[O, T any](name string, typ func() Type[T], doc string, opts ...Option) Field[O] {
	f := Field[O]{newField(name, doc, opts, shapeOf(typ), nil, parseIgnored)}
	f.untyped.ignored = true
	return f
}

// Harmless returns a field like f, which Ignore returned, that causes no warning
// in a quiet report.
func Harmless[O any](f Field[O]) Field[O] { return Field[O]{f.untyped.harmless()} }

func (f field) harmless() field {
	parse := f.parser(View{}, nil)
	f.parser = func(View, lossCheck) func(*Report, *Value, any) {
		return func(r *Report, doc *Value, o any) {
			if r.Quiet {
				r.silenced++
				return
			}
			parse(r, doc, o)
		}
	}
	return f
}

// Warning returns a field like f, but a valid value in a request also causes a
// warning with the given text.
func Warning[O any](f Field[O], text string) Field[O] {
	return Field[O]{f.untyped.warning(text, false)}
}

// HarmlessWarning returns a field like that of Warning, but there is no warning
// in a quiet report.
func HarmlessWarning[O any](f Field[O], text string) Field[O] {
	return Field[O]{f.untyped.warning(text, true)}
}

func (f field) warning(text string, harmless bool) field {
	parser := f.parser
	f.parser = func(v View, lost lossCheck) func(*Report, *Value, any) {
		parse := parser(v, lost)
		return func(r *Report, doc *Value, o any) {
			before := len(r.Errors)
			switch parse(r, doc, o); {
			case len(r.Errors) != before:
			case harmless && r.Quiet:
				r.silenced++
			default:
				r.Warn(doc, "%s", text)
			}
		}
	}
	return f
}

// Marked returns a field like f, after which the writer marks its position (see
// output.Mark).
func Marked[O any](f Field[O]) Field[O] { return Field[O]{f.untyped.marked()} }

//go:noinline
func (f field) marked() field {
	renderer := f.renderer
	f.renderer = func(v View) func(Encoder, any) {
		render := renderer(v)
		return func(e Encoder, o any) {
			render(e, o)
			if m, ok := e.(interface{ Mark() }); ok {
				m.Mark()
			}
		}
	}
	return f
}

// OmitIf returns a field like f that an object o lacks if omit(o) is true.
func OmitIf[O any](f Field[O], omit func(o *O) bool) Field[O] {
	f.untyped.omit = func(o any) bool { return omit(o.(*O)) }
	return f
}

// Name returns the name of f. It does not depend on the spelling, unless the
// field has the option InSlurm.
func Name[O any](f Field[O]) string { return f.untyped.name }

// Group returns a field that is an object in JSON, but not in the model. The
// fields in the group belong to the same O as the group itself.
func Group[O any](name, doc string, fields Fields[O], opts ...Option) Field[O] {
	return Field[O]{group(name, doc, untyped(fields), opts)}
}

//go:noinline
func group(name, doc string, fields []field, opts []Option) field {
	return newField(name, doc, opts,
		func(v View) *Shape { return &Shape{Kind: "object", Fields: properties(fields, v)} },
		func(v View) func(Encoder, any) { return renderFields(fields, v) },
		func(v View, lost lossCheck) func(*Report, *Value, any) {
			parse := parseFields(fields, v, lost)
			return func(r *Report, doc *Value, o any) { parse(r, doc, o) }
		})
}

// untyped returns the fields without the type of their object.
func untyped[O any](fields Fields[O]) []field {
	list := make([]field, len(fields))
	for i := range fields {
		list[i] = fields[i].untyped
	}
	return list
}

//go:noinline
func shapeOf[T any](typ func() Type[T]) func(View) *Shape {
	return func(v View) *Shape { return typ().Shape(v) }
}

//go:noinline
func renderAt[T any](typ func() Type[T], at func(any) *T) func(View) func(Encoder, any) {
	return func(v View) func(Encoder, any) {
		render := typ().Renderer(v)
		return func(e Encoder, o any) { render(e, at(o)) }
	}
}

//go:noinline
func renderComputed[T any](typ func() Type[T], get func(any) T) func(View) func(Encoder, any) {
	return func(v View) func(Encoder, any) {
		render := typ().Renderer(v)
		return func(e Encoder, o any) {
			value := get(o)
			render(e, &value)
		}
	}
}

// parseAt returns a parser that stores a value in *at(o), where o is the object
// that has the field. If the value can't be parsed, *at(o) keeps its previous
// value.
//
//go:noinline
func parseAt[T any](typ func() Type[T], at func(any) *T) func(View, lossCheck) func(*Report, *Value, any) {
	return func(v View, _ lossCheck) func(*Report, *Value, any) {
		parse := typ().Parser(v)
		return func(r *Report, doc *Value, o any) {
			into := at(o)
			old := *into
			if !parse(r, doc, into) {
				*into = old
			}
		}
	}
}

//go:noinline
func parseWith[T any](typ func() Type[T], set func(any, T) error) func(View, lossCheck) func(*Report, *Value, any) {
	return func(v View, _ lossCheck) func(*Report, *Value, any) {
		parse := typ().Parser(v)
		return func(r *Report, doc *Value, o any) {
			var value T
			if !parse(r, doc, &value) {
				return
			}
			if err := set(o, value); err != nil {
				r.Error(doc, "%v", err)
			}
		}
	}
}

// parseIgnored returns the parser of a field that has no effect. It does not
// check the value: a client may have copied one that can't be parsed, such as
// the number for "not set", from an answer.
func parseIgnored(View, lossCheck) func(*Report, *Value, any) {
	return func(r *Report, doc *Value, _ any) { r.Warn(doc, "has no effect") }
}
