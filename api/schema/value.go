package schema

import "fmt"

// Kind is what a Value is.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	Text
	Array
	Map
)

var kindNames = [...]string{Null: "null", Bool: "boolean", Number: "number", Text: "string", Array: "array", Map: "object"}

// String names k as JSON Schema does.
func (k Kind) String() string { return kindNames[k] }

// Value is one value of a decoded document, whatever its format, with its place.
type Value struct {
	Kind   Kind
	Line   int32   // 1 is the first
	Column int32   // in characters; 1 is the first
	Key    string  // its name, when it is a member of a Map
	Text   string  // of Text; the literal of a Number; "true" or "false" of a Bool
	Items  []Value // elements of an Array, members of a Map, in order

	// Untyped: a Text that may stand for any type, as in a query, which has
	// only text. It is accepted for the expected type without a warning.
	Untyped bool
}

// Limits bound what a document may cost before any of it is understood.
type Limits struct {
	Depth  int // nesting of arrays and objects; bounds the stack
	Values int // how many values; bounds memory, which is many times the text of "[0,0,0…"
}

// DefaultLimits admit any request body that makes sense.
var DefaultLimits = Limits{Depth: 64, Values: 500_000}

// SyntaxError says what is wrong with a document and where.
type SyntaxError struct {
	Line, Column int
	Problem      string // lower case, no full stop
	TooLarge     bool   // over a limit, not wrong
	Hint         string // names the limit; may be empty
}

// Error returns the problem with its place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// valuesHint names the limit of a document with too many values.
func valuesHint(lim Limits) string {
	return fmt.Sprintf("a document may have at most %d values", lim.Values)
}

// depthHint names the limit of a document that is nested too deeply.
func depthHint(lim Limits) string {
	return fmt.Sprintf("a document may have at most %d levels", lim.Depth)
}
