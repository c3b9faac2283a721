// Package schema is the engine under the REST surface: from one table of fields per
// object it renders a body, parses a body and describes both.
//
// A table names each field once, with its type, where it sits in the model, what it
// means and the API versions that have it:
//
//	var Node = schema.Object("node",
//		schema.F("name", schema.String, func(n *model.Node) *string { return &n.Name }, "Name of the node"),
//		schema.F("topology", schema.String, func(n *model.Node) *string { return &n.Topology }, "Place in the network", schema.Since(V43)),
//	)
//
// For each View (API version and spelling) a table is compiled once into a list of
// closures; no request uses reflection. Rendering goes to an Encoder piece by
// piece, so that a list of any length is never held as a tree (see Stream). Parsing
// starts from a Value, which JSON is read into here and other formats may be;
// what is odd in it becomes a warning, what can't be understood an error, both with
// the place they are about, as "#/job/tasks" (see Report).
//
// The package knows nothing of HTTP, of schedulers, or of which versions exist.
package schema

import "strconv"

// Version is the last number of an API version: 42 is v0.0.42.
type Version uint8

// String returns v as in a path, "v0.0.42".
func (v Version) String() string { return "v0.0." + strconv.Itoa(int(v)) }

// Spelling chooses between the two sets of names that one declaration has.
type Spelling uint8

// The spellings. Their words are declared by package api.
const (
	Sched Spelling = iota // this project's own: schedd_start_time
	Slurm                 // the names clients of slurmrestd know: slurmd_start_time
)

// View is what one client sees: an API version in one spelling.
type View struct {
	Version Version
	Names   Spelling
}

// span is a range of versions: since <= v < until; until 0 has no end.
type span struct{ since, until Version }

func (s span) has(v Version) bool { return v >= s.since && (s.until == 0 || v < s.until) }

// never is the span of a field that is in no version.
var never = span{since: 1, until: 1}

// Type is how values of the Go type T look outside. Each of its methods is asked
// once per View; what they return is kept and used for every request.
type Type[T any] interface {
	// Renderer writes one value.
	Renderer(View) func(Encoder, *T)
	// Parser returns a function that reads one value into *T and records
	// problems in the Report. It reports whether *T now has the intended value.
	Parser(View) func(*Report, *Value, *T) bool
	// Shape describes the values.
	Shape(View) *Shape
}

// Shape describes a type in one View, in the terms of JSON Schema.
type Shape struct {
	Name     string   // name of the schema; "" when it is written in place
	Kind     string   // "object", "array", "string", "integer", "number", "boolean"
	Format   string   // "int32", "int64", "double" or ""
	Wide     bool     // its numbers can be beyond Format, which is what Slurm's documents say
	Enum     []string // the values a string can have; nil: any
	Nullable bool     // may be null
	Items    *Shape   // of an array; nil: anything
	Fields   []Property
}

// Property is one field of an object's Shape.
type Property struct {
	Name       string
	Doc        string
	Unit       string // "MiB", "s", "min"…; "" when it has none
	Required   bool
	Deprecated bool
	Ours       bool // not in Slurm's documents of this version
	Ignored    bool // taken, and makes no difference
	Shape      *Shape
}

// text describes any string.
var text = &Shape{Kind: "string"}
