package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// loop encodes or decodes the n records that follow their Count. In a
// description, the fields of the records are in a loop, and not in a table of
// their own.
func loop[T any](c *codec.Codec, name string, n int, list *[]T, walk func(*codec.Codec, *T)) {
	records := *list
	if c.Storing() {
		*list = nil
	}
	c.Loop(name, n, func(i int) {
		var record T
		if i < len(records) {
			record = records[i]
		}
		if walk(c, &record); c.Storing() && c.Err() == nil {
			*list = append(*list, record)
		}
	})
}

// flag8, flag16 and flag32 encode or decode a boolean that is sent as the
// number 1 or 0. They decode any other number as true.
func flag8(c *codec.Codec, name string, v *bool)  { flag(c, name, v, c.Uint8) }
func flag16(c *codec.Codec, name string, v *bool) { flag(c, name, v, c.Uint16) }
func flag32(c *codec.Codec, name string, v *bool) { flag(c, name, v, c.Uint32) }

func flag[T uint8 | uint16 | uint32](c *codec.Codec, name string, v *bool, walk func(string, *T)) {
	var n T
	if *v {
		n = 1
	}
	if walk(name, &n); c.Storing() {
		*v = n != 0
	}
}

// text encodes or decodes an element of a list of texts.
func text(c *codec.Codec, s *string) { c.Element(s) }

// texts encodes or decodes a list of texts. nil corresponds to null on the
// wire.
func texts(c *codec.Codec, name string, v *[]string) { codec.List(c, name, "str", v, text) }

// ids encodes or decodes a list of numbers that are sent as texts. The
// accounting daemon inserts them into its SQL statements. Releases of Slurm
// before September 2026 did so without checking that they are numbers.
func ids(c *codec.Codec, name string, v *[]string) {
	codec.List(c, name, "str", v, func(c *codec.Codec, s *string) { c.ElementOf(codec.Digits, s) })
}

// clusters encodes or decodes a list of names of clusters. The accounting daemon
// makes names of tables from them.
func clusters(c *codec.Codec, name string, v *[]string) {
	codec.List(c, name, "str", v, func(c *codec.Codec, s *string) { c.ElementOf(codec.ClusterChars, s) })
}

// optAs encodes or decodes an optional number in which notSet, rather than
// NO_VAL, means "not set".
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

// absent encodes or decodes a flag that says whether a record follows. It
// returns true if there is no record. In that case, the caller does not change
// its own record, because a zero record means the same as no record. This
// project always sends a record.
func absent(c *codec.Codec) bool {
	present := true
	c.Bool("present", &present)
	return c.StopIf("present == 0", !present)
}

// bit16 encodes or decodes one bit of set as a 16-bit number. Older protocols
// send flags this way.
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
