package model

// Filter selects records of the accounting daemon. T is the type of the
// records.
type Filter[T any] interface{ selects(T) }

// Listing requests records from the accounting daemon. List creates one.
type Listing struct {
	Filter any // a Filter of any T
	Each   any // func(*T) error
}

// List requests the records that filter selects. It calls each(r) with every
// record r, which is valid only during the call. If each returns an error, the
// listing ends and the error is returned unchanged.
func List[T any](filter Filter[T], each func(*T) error) Listing { return Listing{filter, each} }
