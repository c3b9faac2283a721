package schema

// Encoder writes a body in some format, one value after another. In an object,
// a Key precedes each value.
//
// An Encoder keeps its first error, of the connection or of Fail, and then
// ignores all calls. Err returns this error, so rendering code need not check
// each call.
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

	// Fail aborts the body with err, an error of its source of values.
	Fail(err error)
	// Err returns the first error, or nil.
	Err() error
}
