package schema

// Field is one line of an object's table. F, Show, Take, Both, Ignore and Group
// make Fields.
type Field[O any] struct {
	name, doc string
	shape     func(View) *Shape
	renderer  func(View) func(Encoder, *O)         // nil: the field is never shown
	parser    func(View) func(*Report, *Value, *O) // nil: the field is never parsed
	traits
}

// traits are the properties of a field that Options set.
type traits struct {
	slurm      string // its name in the Slurm spelling, if that differs
	unit       string
	in         span
	required   span
	deprecated span
	ours       span
	alone      bool
	ignored    bool
}

// Option sets a property of a field.
type Option func(*traits)

// Since sets the first version that has the field.
func Since(v Version) Option { return func(t *traits) { t.in.since = v } }

// Until sets the first version that no longer has the field.
func Until(v Version) Option { return func(t *traits) { t.in.until = v } }

// Required marks a field that from version v on every answer contains and every
// request must contain. A v of 0 stands for all versions.
func Required(v Version) Option { return func(t *traits) { t.required = span{since: v} } }

// Deprecated marks a field that still works, but that clients should no longer
// use from version v on. A v of 0 stands for all versions.
func Deprecated(v Version) Option { return func(t *traits) { t.deprecated = span{since: v} } }

// Unit sets the unit of a number, such as "MiB", "s" or "min".
func Unit(unit string) Option { return func(t *traits) { t.unit = unit } }

// The units of numbers without a unit of measurement.
const (
	CountUnit = "1" // the number counts things, which its description names
	BareUnit  = "0" // the number is an id, a rank or a set of bits
)

// Count marks a number of things.
func Count(t *traits) { t.unit = CountUnit }

// Bare marks a number that is neither a measurement nor a count, such as an id,
// a priority or a set of bits.
func Bare(t *traits) { t.unit = BareUnit }

// Ours marks a field that Slurm's API does not have.
func Ours(t *traits) { t.ours = span{} }

// Undocumented marks a field that slurmrestd accepts from version v on,
// although its documents lack the field.
func Undocumented(v Version) Option { return func(t *traits) { t.ours = span{since: v} } }

// Alone marks a word that excludes all words after it in the table: if the bits
// match the marked word, the words after it are not shown.
func Alone(t *traits) { t.alone = true }

// InSlurm sets the name of the field in the Slurm spelling, if it differs.
func InSlurm(name string) Option { return func(t *traits) { t.slurm = name } }

func (f *Field[O]) spelled(n Spelling) string {
	if n == Slurm && f.slurm != "" {
		return f.slurm
	}
	return f.name
}

func field[O any](name, doc string, opts []Option) Field[O] {
	f := Field[O]{name: name, doc: doc}
	f.required, f.deprecated, f.ours = never, never, never
	for _, o := range opts {
		o(&f.traits)
	}
	return f
}

// F returns a field that the model stores. at returns the address of its value.
// The field is both shown and parsed.
func F[O, T any](name string, typ func() Type[T], at func(*O) *T, doc string, opts ...Option) Field[O] {
	f := field[O](name, doc, opts)
	f.shape = func(v View) *Shape { return typ().Shape(v) }
	f.renderer = func(v View) func(Encoder, *O) {
		render := typ().Renderer(v)
		return func(e Encoder, o *O) { render(e, at(o)) }
	}
	f.parser = func(v View) func(*Report, *Value, *O) {
		parse := typ().Parser(v)
		return func(r *Report, doc *Value, o *O) {
			into := at(o)
			was := *into
			if !parse(r, doc, into) {
				*into = was
			}
		}
	}
	return f
}

// Show returns a field whose value is computed by get. It is shown, but never
// parsed.
func Show[O, T any](name string, typ func() Type[T], get func(*O) T, doc string, opts ...Option) Field[O] {
	f := field[O](name, doc, opts)
	f.shape = func(v View) *Shape { return typ().Shape(v) }
	f.renderer = func(v View) func(Encoder, *O) {
		render := typ().Renderer(v)
		return func(e Encoder, o *O) {
			value := get(o)
			render(e, &value)
		}
	}
	return f
}

// Take returns a field that is parsed but never shown. set stores its value. If
// set fails, the error refers to that value.
func Take[O, T any](name string, typ func() Type[T], set func(*O, T) error, doc string, opts ...Option) Field[O] {
	f := field[O](name, doc, opts)
	f.shape = func(v View) *Shape { return typ().Shape(v) }
	f.parser = func(v View) func(*Report, *Value, *O) {
		parse := typ().Parser(v)
		return func(r *Report, doc *Value, o *O) {
			var value T
			if !parse(r, doc, &value) {
				return
			}
			if err := set(o, value); err != nil {
				r.Error(doc, "%v", err)
			}
		}
	}
	return f
}

// Both returns a field that is shown like one of Show, and parsed like one of
// Take.
func Both[O, T any](name string, typ func() Type[T], get func(*O) T, set func(*O, T) error, doc string, opts ...Option) Field[O] {
	f := Show(name, typ, get, doc, opts...)
	f.parser = Take(name, typ, set, doc, opts...).parser
	return f
}

// Ignore returns a field that has no effect. Its value is checked, and then
// causes a warning.
func Ignore[O, T any](name string, typ func() Type[T], doc string, opts ...Option) Field[O] {
	f := field[O](name, doc, opts)
	f.ignored = true
	f.shape = func(v View) *Shape { return typ().Shape(v) }
	f.parser = func(v View) func(*Report, *Value, *O) {
		parse := typ().Parser(v)
		return func(r *Report, doc *Value, _ *O) {
			var value T
			if parse(r, doc, &value) {
				r.Warn(doc, "has no effect")
			}
		}
	}
	return f
}

// Group returns a field that is an object of its own in JSON. In the model, the
// fields in it belong to the same O as the group.
func Group[O any](name, doc string, fields []Field[O], opts ...Option) Field[O] {
	f := field[O](name, doc, opts)
	f.shape = func(v View) *Shape { return &Shape{Kind: "object", Fields: properties(fields, v)} }
	f.renderer = func(v View) func(Encoder, *O) { return renderFields(fields, v) }
	f.parser = func(v View) func(*Report, *Value, *O) {
		parse := parseFields(fields, v)
		return func(r *Report, doc *Value, o *O) { parse(r, doc, o) }
	}
	return f
}
