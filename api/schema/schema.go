// Package schema renders, parses and describes the bodies of the REST API. The
// code for each object comes from one table of its fields.
//
// A table lists each field once, with its name, its type, its place in the
// model, its description, and the API versions that have it:
//
//	var Node = schema.Object("node", func() schema.Fields[model.Node] {
//		return schema.Fields[model.Node]{
//			schema.F("name", schema.String, func(n *model.Node) *string { return &n.Name }, "Name of the node"),
//			schema.F("topology", schema.String, func(n *model.Node) *string { return &n.Topology }, "Place in the network", schema.Since(V43)),
//		}
//	})
//
// A View is an API version in one spelling. When a table is first used in a
// View, it is compiled into a list of closures, so no request uses reflection.
//
// Rendering writes to an Encoder piece by piece, so that no list is held in
// memory as a whole (see Stream). Parsing starts from a Value, which this
// package reads from JSON or YAML. An unexpected value causes a warning, and a
// value that can't be understood causes an error. Warnings and errors name the
// place in the document, such as "#/job/tasks" (see Report).
//
// The package does not depend on HTTP, on the scheduler, or on which API
// versions exist.
package schema

import "strconv"

// Version is the last number in the name of an API version: 42 for v0.0.42.
type Version uint8

// String returns v as it appears in paths, such as "v0.0.42".
func (v Version) String() string { return "v0.0." + strconv.Itoa(int(v)) }

// Spelling selects this project's names or Slurm's names, where they differ.
type Spelling uint8

// The spellings. Package api declares their names.
const (
	Sched Spelling = iota // this project's own names: schedd_start_time
	Slurm                 // the names that clients of slurmrestd know: slurmd_start_time
)

// View is an API version in one spelling, as a client sees it.
type View struct {
	Version  Version
	Spelling Spelling
	Only     *Selection // the part that a client asked for; nil for everything
}

// span is a range of versions: since <= v < until. If until is 0, the range has
// no end.
type span struct{ since, until Version }

func (s span) has(v Version) bool { return v >= s.since && (s.until == 0 || v < s.until) }

// never is a span that contains no version.
var never = span{since: 1, until: 1}

// Type defines how values of the Go type T are written, parsed and described.
// Its methods are called once for each View without a Selection, and their
// results are used for all requests.
type Type[T any] interface {
	// Renderer returns a function that writes a value.
	Renderer(View) func(Encoder, *T)
	// Parser returns a function that parses a value into *T and records
	// problems in the Report. The function returns false if *T does not contain
	// the client's value.
	Parser(View) func(*Report, *Value, *T) bool
	// Shape describes the values.
	Shape(View) *Shape
}

// Shape describes a type in one View, in terms of JSON Schema.
type Shape struct {
	Name     string   // name of the schema; "" for a schema that is written in place
	Kind     string   // "object", "array", "string", "integer", "number", "boolean"
	Format   string   // "int32", "int64", "double" or ""
	Wide     bool     // numbers may exceed the range of Format, which Slurm's documents declare
	Enum     []string // values that a string may have; nil for any
	Nullable bool     // whether null is allowed
	Items    *Shape   // type of an array's elements; nil for any
	Fields   []Property
}

// Property is one field of an object's Shape.
type Property struct {
	Name         string
	Doc          string
	Unit         string // "MiB", "s", "min", …; "" for none
	Required     bool
	Deprecated   bool
	Undocumented bool // absent from Slurm's documents of this version
	Ignored      bool // accepted without effect
	Shape        *Shape
}

// text describes a string with any content.
var text = &Shape{Kind: "string"}
