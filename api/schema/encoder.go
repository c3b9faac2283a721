package schema

// Encoder is where a body goes, value by value, in order: a format's writer.
// Within an object each value follows its Key.
//
// An Encoder keeps its first failure (of the connection, or given to Fail), ignores
// what comes after it, and reports it from Err, so that the code which renders
// runs straight down.
type Encoder interface {
	BeginObject()
	EndObject()
	BeginArray()
	EndArray()

	// Key names the next value. It is one of our own names: plain ASCII.
	Key(name string)

	String(s string)
	Int(n int64)
	Uint(n uint64)
	Float(f float64)
	Bool(b bool)
	Null()

	// Fail gives the body up: err came from where its values come from.
	Fail(err error)
	// Err is the first failure, nil when all went well so far.
	Err() error
}
