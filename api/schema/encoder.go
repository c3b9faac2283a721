package schema

// Encoder writes a body in some format, one value after another. In an object,
// a Key precedes each value.
//
// The first error comes from the connection or from Fail. An Encoder keeps this
// error and then ignores all calls. Rendering code need not check each call,
// because Err returns the error.
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

	// Fail aborts the body with err, the error of the source of the values.
	Fail(err error)
	// Err returns the first error, or nil.
	Err() error
}
