package schema

// Encoder writes a body in some format, value by value, in order. In an object,
// each value is preceded by its Key.
//
// An Encoder keeps its first error, either of the connection or from Fail, and
// ignores all later calls. Err returns the error, so that rendering code need
// not check each call.
type Encoder interface {
	BeginObject()
	EndObject()
	BeginArray()
	EndArray()

	// Key writes the name of the next value. Names are those of the tables:
	// plain ASCII.
	Key(name string)

	String(s string)
	Int(n int64)
	Uint(n uint64)
	Float(f float64)
	Bool(b bool)
	Null()

	// Fail aborts the body because its source of values failed with err.
	Fail(err error)
	// Err returns the first error, or nil.
	Err() error
}
