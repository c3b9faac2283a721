package schema

// Field is one line of an object's table. Make one with F, Show, Take or Group.
type Field[O any] struct {
	name, doc string
	shape     func(View) *Shape
	renderer  func(View) func(Encoder, *O)         // nil: never shown
	parser    func(View) func(*Report, *Value, *O) // nil: never taken
	traits
}

// traits is what Options say of a field.
type traits struct {
	slurm      string // its name in the Slurm spelling, when that is another
	unit       string
	in         span
	required   span
	deprecated span
	ours       span
	alone      bool
	ignored    bool
}

// Option says more about a field.
type Option func(*traits)

// Since: the field exists from version v on.
func Since(v Version) Option { return func(t *traits) { t.in.since = v } }

// Until: the field is gone from version v on.
func Until(v Version) Option { return func(t *traits) { t.in.until = v } }

// Required: the field is always there, from version v on; 0 is all versions.
func Required(v Version) Option { return func(t *traits) { t.required = span{since: v} } }

// Deprecated: the field still works, but from version v on another should be used;
// 0 is all versions.
func Deprecated(v Version) Option { return func(t *traits) { t.deprecated = span{since: v} } }

// Unit sets what a number counts: "MiB", "s", "min".
func Unit(unit string) Option { return func(t *traits) { t.unit = unit } }

// Units of numbers that have none.
const (
	CountUnit = "1" // it counts things, which its description names
	BareUnit  = "0" // it identifies, ranks or holds bits
)

// Count: the field is a number of things.
func Count(t *traits) { t.unit = CountUnit }

// Bare: the field is a number that measures and counts nothing: it identifies, ranks or holds bits.
func Bare(t *traits) { t.unit = BareUnit }

// Ours marks a field that Slurm's API does not have.
func Ours(t *traits) { t.ours = span{} }

// Undocumented: Slurm's gateway takes the field from version v on, but its
// documents don't have it.
func Undocumented(v Version) Option { return func(t *traits) { t.ours = span{since: v} } }

// Alone: when this word of a set is there, no later one is looked for.
func Alone(t *traits) { t.alone = true }

// InSlurm gives the field's name in the Slurm spelling, when it is another.
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

// F returns a field of the model; at returns its address. The field is shown
// and parsed.
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

// Show returns a field whose value get computes. It is never parsed.
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

// Take returns a field that only affects parsing: set is called with its value.
// An error of set refers to that value.
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

// Both returns a field that is rendered like Show's and parsed like Take's.
func Both[O, T any](name string, typ func() Type[T], get func(*O) T, set func(*O, T) error, doc string, opts ...Option) Field[O] {
	f := Show(name, typ, get, doc, opts...)
	f.parser = Take(name, typ, set, doc, opts...).parser
	return f
}

// Ignore returns a field that is checked and then ignored with a warning.
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

// Group returns an object inside the object, whose fields belong to the same O.
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
