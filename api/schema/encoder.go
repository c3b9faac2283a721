package schema

// Encoder writes a body in some format, one value after another. In an object,
// a Key precedes each value.
//
// After an error of the connection or a call of Fail, an Encoder keeps the
// first error and ignores all further calls. So code that renders need not
// check each call: Err returns the error.
type Encoder interface {
	BeginObject()
	EndObject()
	BeginArray()
	EndArray()

	// Key writes the name of the next value. Names come from the tables and are
	// plain ASCII.
	Key(name string)

	String(s string)
	Int(n int64)
	Uint(n uint64)
	Float(f float64)
	Bool(b bool)
	Null()

	// Fail aborts the body, because the source of the values failed with err.
	Fail(err error)
	// Err returns the first error, or nil.
	Err() error
}
