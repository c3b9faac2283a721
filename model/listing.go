package model

// Filter selects records of type T of the accounting daemon.
type Filter[T any] interface{ selects(T) }

// Listing is a request for records of the accounting daemon. The function List
// creates it.
type Listing struct {
	Filter any // a Filter of any T
	Each   any // func(*T) error
}

// List returns a Listing of the records that filter selects. When the Listing
// is carried out, each(r) is called with every record. r is valid only during
// the call. If each returns an error, the Listing ends and returns this error
// unchanged.
func List[T any](filter Filter[T], each func(*T) error) Listing { return Listing{filter, each} }
