package message

import "schedrestd/rpc/codec"

// ListResponse is the accounting daemon's answer to a request for a list of
// records. Records either holds the whole list or passes the records on one by
// one.
type ListResponse[T any] struct {
	Records codec.Stream[T]
	Code    uint32 // 0, or one of Slurm's error numbers
}

// List returns m. A type that embeds ListResponse gets this method.
func (m *ListResponse[T]) List() *ListResponse[T] { return m }

func (m *ListResponse[T]) walk(c *codec.Codec, element string, record func(*codec.Codec, *T)) {
	codec.StreamList(c, "list", element, &m.Records, record)
	c.Uint32("return_code", &m.Code)
}
