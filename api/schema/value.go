package schema

import (
	"fmt"
	"slices"
)

// Kind is the kind of a Value.
type Kind uint8

const (
	Null Kind = iota
	Bool
	Number
	Text
	Array
	Map
)

var kindNames = [...]string{Null: "null", Bool: "boolean", Number: "number", Text: "string", Array: "array", Map: "object"}

// String returns the name of k in JSON Schema.
func (k Kind) String() string { return kindNames[k] }

// Value is one value of a parsed document, with its position. The document may
// have any format.
type Value struct {
	Kind   Kind
	Line   int32   // starting at 1
	Column int32   // in characters, starting at 1
	Key    string  // name of the value, if it is a member of a Map
	Text   string  // content of a Text; literal of a Number; "true" or "false" for a Bool
	Items  []Value // elements of an Array or members of a Map, in order

	// Untyped marks a value that was sent as plain text, such as a query
	// parameter. The text may stand for a value of any type, so parsing it as
	// another type causes no warning.
	Untyped bool
	// Bare marks a query parameter that was sent without "=". Its Text is empty.
	Bare bool
}

// Blank reports whether v is null, empty, 0 or false, or contains only such
// values. Generated clients send these for fields that are not set.
func (v *Value) Blank() bool {
	switch v.Kind {
	case Null:
		return true
	case Array, Map:
		return !slices.ContainsFunc(v.Items, func(item Value) bool { return !item.Blank() })
	}
	return v.Text == "" || v.Text == "0" || v.Text == "false"
}

// Limits restrict the syntax of a document, and the memory and time for reading
// it. They apply before the contents of the document are interpreted.
type Limits struct {
	Depth  int  // maximum nesting of arrays and objects; limits the stack
	Values int  // maximum number of values; limits the memory, since a text like "[0,0,0…" needs many times its length
	Loose  bool // JSON may have a comma before a closing bracket, and line breaks and tabs in strings
}

// DefaultLimits are sufficient for every meaningful request.
var DefaultLimits = Limits{Depth: 64, Values: 500_000}

// SyntaxError describes an error in a document and gives its position.
type SyntaxError struct {
	Line, Column int
	Problem      string // lower case, no full stop
	TooLarge     bool   // the document exceeds a limit, but may be valid
	Hint         string // names the limit, if any
}

// Error returns the problem with its position.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// valuesHint returns the hint for a document that has too many values.
func valuesHint(lim Limits) string {
	return fmt.Sprintf("a document may have at most %d values", lim.Values)
}

// depthHint returns the hint for a document that is nested too deeply.
func depthHint(lim Limits) string {
	return fmt.Sprintf("a document may have at most %d levels", lim.Depth)
}
