package schema

// Encoder writes a body in some format, one value after another. In an object,
// a Key precedes each value.
//
// An Encoder stops writing when its connection fails or Fail is called, and
// ignores all further calls. Callers need not check each call: Err returns the
// first error.
type Encoder interface {
	BeginObject()
	EndObject()
	BeginArray()
	EndArray()

	// Key writes the name of the next value. The name must be plain ASCII,
	// without characters that need escaping.
	Key(name string)

	String(s string)
	Int(n int64)
	Uint(n uint64)
	Float(f float64)
	Bool(b bool)
	Null()

	// Fail aborts the body. The err argument says why the remaining values are
	// unavailable.
	Fail(err error)
	// Err returns the first error, or nil.
	Err() error
}
