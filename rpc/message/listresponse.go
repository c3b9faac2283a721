package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// ListResponse is an answer of the accounting daemon with a list of records. Records
// either holds the whole list or passes the records on one at a time.
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

// optAs walks a number in which notSet, not NO_VAL, means "not set".
func optAs[T ~uint32](c *codec.Codec, name string, v *model.Opt[T], notSet T) {
	n := uint32(v.Or(notSet))
	if c.Uint32(name, &n); !c.Storing() {
		return
	}
	*v = model.Some(T(n))
	if T(n) == notSet {
		*v = model.Opt[T]{}
	}
}

// absent walks a flag that says whether a record follows, and returns true if
// none follows. The caller then leaves its record at the zero value, which
// means the same as no record. This project always sends a record.
func absent(c *codec.Codec) bool {
	present := true
	c.Bool("present", &present)
	return c.StopIf("present == 0", !present)
}

// bit16 walks one bit of a set. Older protocols send the bit as a number of its
// own.
func bit16[T ~uint16 | ~uint32](c *codec.Codec, name string, set *T, bit T) {
	on := *set&bit != 0
	if flag16(c, name, &on); !c.Storing() {
		return
	}
	*set &^= bit
	if on {
		*set |= bit
	}
}
