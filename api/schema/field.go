package schema

// Field is one line of an object's table. F, Show, Take, Both, Ignore and Group
// make Fields.
type Field[O any] struct {
	name, doc string
	value     value[O]
	traits
}

// value describes the value of a field of O: its type, and its place in an O.
type value[O any] interface {
	shape(View) *Shape
	renderer(View) func(Encoder, *O)       // nil: the field is never shown
	parser(View) func(*Report, *Value, *O) // nil: the field is never parsed
}

// traits are the properties of a field that Options set.
type traits struct {
	slurm        string // its name in the Slurm spelling, if that differs
	unit         string
	versions     span
	required     span
	deprecated   span
	undocumented span
	alone        bool
	ignored      bool
}

// Option sets a property of a field. It gets and returns traits by value: with
// a pointer, each of the thousands of fields in the tables would cost an
// allocation when a program starts.
type Option func(traits) traits

// Since sets the first version that has the field.
func Since(v Version) Option { return func(t traits) traits { t.versions.since = v; return t } }

// Until sets the first version that no longer has the field.
func Until(v Version) Option { return func(t traits) traits { t.versions.until = v; return t } }

// Required marks a field that is always present from version v on: in answers
// if the field is shown, and in requests if it is parsed. A v of 0 stands for
// all versions.
func Required(v Version) Option {
	return func(t traits) traits { t.required = span{since: v}; return t }
}

// Deprecated marks a field that still works, but that clients should no longer
// use from version v on. A v of 0 stands for all versions.
func Deprecated(v Version) Option {
	return func(t traits) traits { t.deprecated = span{since: v}; return t }
}

// Unit sets the unit of a number, such as "MiB", "s" or "min".
func Unit(unit string) Option { return func(t traits) traits { t.unit = unit; return t } }

// The units of numbers without a unit of measurement.
const (
	CountUnit = "1" // the number counts things, which its description names
	BareUnit  = "0" // the number is an id, a rank or a set of bits
)

// Count marks a number of things.
func Count(t traits) traits { t.unit = CountUnit; return t }

// Bare marks a number that is neither a measurement nor a count, such as an id,
// a priority or a set of bits.
func Bare(t traits) traits { t.unit = BareUnit; return t }

// Extension marks a field that Slurm's API does not have.
func Extension(t traits) traits { t.undocumented = span{}; return t }

// Undocumented marks a field that slurmrestd accepts from version v on,
// although its documents lack the field.
func Undocumented(v Version) Option {
	return func(t traits) traits { t.undocumented = span{since: v}; return t }
}

// Alone marks a word that excludes all words after it in the table: if the bits
// match the marked word, the words after it are not shown.
func Alone(t traits) traits { t.alone = true; return t }

// InSlurm sets the name of the field in the Slurm spelling, if it differs.
func InSlurm(name string) Option { return func(t traits) traits { t.slurm = name; return t } }

func (f *Field[O]) spelled(n Spelling) string {
	if n == Slurm && f.slurm != "" {
		return f.slurm
	}
	return f.name
}

func field[O any](name, doc string, v value[O], opts []Option) Field[O] {
	f := Field[O]{name: name, doc: doc, value: v}
	f.required, f.deprecated, f.undocumented = never, never, never
	for _, o := range opts {
		f.traits = o(f.traits)
	}
	return f
}

// F returns a field that the model stores. The argument at returns the address
// of its value. The field is both shown and parsed.
func F[O, T any](name string, typ func() Type[T], at func(*O) *T, doc string, opts ...Option) Field[O] {
	return field[O](name, doc, stored[O, T]{typ, at}, opts)
}

type stored[O, T any] struct {
	typ func() Type[T]
	at  func(*O) *T
}

func (s stored[O, T]) shape(v View) *Shape { return s.typ().Shape(v) }

func (s stored[O, T]) renderer(v View) func(Encoder, *O) {
	render, at := s.typ().Renderer(v), s.at
	return func(e Encoder, o *O) { render(e, at(o)) }
}

func (s stored[O, T]) parser(v View) func(*Report, *Value, *O) {
	parse, at := s.typ().Parser(v), s.at
	return func(r *Report, doc *Value, o *O) {
		into := at(o)
		old := *into
		if !parse(r, doc, into) {
			*into = old
		}
	}
}

// Show returns a field whose value is computed by get. It is shown, but never
// parsed.
func Show[O, T any](name string, typ func() Type[T], get func(*O) T, doc string, opts ...Option) Field[O] {
	return field[O](name, doc, computed[O, T]{typ, get}, opts)
}

type computed[O, T any] struct {
	typ func() Type[T]
	get func(*O) T
}

func (c computed[O, T]) shape(v View) *Shape { return c.typ().Shape(v) }

func (c computed[O, T]) renderer(v View) func(Encoder, *O) {
	render, get := c.typ().Renderer(v), c.get
	return func(e Encoder, o *O) {
		value := get(o)
		render(e, &value)
	}
}

func (c computed[O, T]) parser(View) func(*Report, *Value, *O) { return nil }

// Set returns a field that is parsed but never shown. set stores its value. If
// set fails, the error refers to that value.
func Set[O, T any](name string, typ func() Type[T], set func(*O, T) error, doc string, opts ...Option) Field[O] {
	return field[O](name, doc, setter[O, T]{typ, set}, opts)
}

type setter[O, T any] struct {
	typ func() Type[T]
	set func(*O, T) error
}

func (g setter[O, T]) shape(v View) *Shape { return g.typ().Shape(v) }

func (g setter[O, T]) renderer(View) func(Encoder, *O) { return nil }

func (g setter[O, T]) parser(v View) func(*Report, *Value, *O) {
	parse, set := g.typ().Parser(v), g.set
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

// GetSet returns a field that is both shown and parsed. It shows the value that
// get returns, as Show does, and stores a parsed value with set, as Take does.
func GetSet[O, T any](name string, typ func() Type[T], get func(*O) T, set func(*O, T) error, doc string, opts ...Option) Field[O] {
	return field[O](name, doc, getSetter[O, T]{computed[O, T]{typ, get}, set}, opts)
}

type getSetter[O, T any] struct {
	computed[O, T]
	set func(*O, T) error
}

func (b getSetter[O, T]) parser(v View) func(*Report, *Value, *O) {
	return setter[O, T]{b.typ, b.set}.parser(v)
}

// Ignore returns a field that has no effect. Its value is checked, and then
// causes a warning.
func Ignore[O, T any](name string, typ func() Type[T], doc string, opts ...Option) Field[O] {
	f := field[O](name, doc, ignored[O, T]{typ}, opts)
	f.ignored = true
	return f
}

type ignored[O, T any] struct{ typ func() Type[T] }

func (i ignored[O, T]) shape(v View) *Shape { return i.typ().Shape(v) }

func (i ignored[O, T]) renderer(View) func(Encoder, *O) { return nil }

func (i ignored[O, T]) parser(v View) func(*Report, *Value, *O) {
	parse := i.typ().Parser(v)
	return func(r *Report, doc *Value, _ *O) {
		var value T
		if parse(r, doc, &value) {
			r.Warn(doc, "has no effect")
		}
	}
}

// Group returns a field that is an object of its own in JSON. In the model, the
// fields in it belong to the same O as the group.
func Group[O any](name, doc string, fields []Field[O], opts ...Option) Field[O] {
	return field[O](name, doc, group[O](fields), opts)
}

type group[O any] []Field[O]

func (g group[O]) shape(v View) *Shape { return &Shape{Kind: "object", Fields: properties(g, v)} }

func (g group[O]) renderer(v View) func(Encoder, *O) { return renderFields(g, v) }

func (g group[O]) parser(v View) func(*Report, *Value, *O) {
	parse := parseFields(g, v)
	return func(r *Report, doc *Value, o *O) { parse(r, doc, o) }
}
