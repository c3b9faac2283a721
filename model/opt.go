// Package model has the words of the domain: what a node, a job, a partition is,
// in every process of this project. It imports nothing of ours.
//
// There is one struct for each thing, whatever the protocol or API version: rpc/message
// says which of its fields travel, api which are shown. Field names follow
// Slurm's, spelled for Go; the table in rpc/message gives each one's source.
package model

import "time"

// Unsigned is what an optional number can be made of: the widths that
// Slurm reserves a "not set" and an "unlimited" value of.
type Unsigned interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Opt is a number that may be not set, or unlimited. The zero value is "not set".
// On the wire "not set" is NO_VAL (all ones but the last bit) and "unlimited"
// INFINITE (all ones) of the number's width; in JSON it is {set, infinite, number}.
type Opt[T Unsigned] struct {
	Number   T
	Set      bool // Number counts
	Infinite bool // unlimited; Set is then false
}

// Some is the number n, set.
func Some[T Unsigned](n T) Opt[T] { return Opt[T]{Number: n, Set: true} }

// Infinite is "unlimited".
func Infinite[T Unsigned]() Opt[T] { return Opt[T]{Infinite: true} }

// Or is the number when it is set, else otherwise.
func (o Opt[T]) Or(otherwise T) T {
	if o.Set {
		return o.Number
	}
	return otherwise
}

// Time is seconds since 1970 (UTC), as every message carries it; 0 is "never".
type Time int64

// At is the Time of t, cut to the second.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.Unix())
}

// Go is t as a time.Time; the zero time.Time when t is 0.
func (t Time) Go() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(int64(t), 0)
}

// Bitmap is a set of small numbers, as Slurm's bit strings: bit i of the map is
// bit i%8 of Bits[i/8]. Null (never made) and empty are different on the wire.
type Bitmap struct {
	Len  uint32 // number of bits
	Set  bool   // false: null
	Bits []byte // (Len+7)/8 bytes
}

// Has tells whether bit i is set.
func (b *Bitmap) Has(i int) bool {
	return b.Set && i >= 0 && i < int(b.Len) && b.Bits[i/8]&(1<<(i%8)) != 0
}
