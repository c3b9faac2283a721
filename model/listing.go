package model

// A Filter selects some of the accounting daemon's records of type T.
type Filter[T any] interface{ selects(T) }

// Listing is a request for records of the accounting daemon. The function List
// creates it.
type Listing struct {
	Filter any // a Filter of any T
	Each   any // func(*T) error
}

// List returns a request for the records that filter selects. When the request
// is carried out, each(r) is called for every record r. The record is valid
// only during that call. If a call returns an error, the request fails with
// that error, unchanged.
func List[T any](filter Filter[T], each func(*T) error) Listing { return Listing{filter, each} }
