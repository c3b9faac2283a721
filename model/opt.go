// Package model defines types for nodes, jobs, partitions and the other objects
// of a cluster. Every process of this project uses them. The package imports no
// other package of this project.
//
// Each object has one struct for all protocol and API versions. Package
// rpc/message determines which fields are sent and what they are called on the
// wire, and package api determines which fields are shown. The fields here have
// Slurm's names, in Go's spelling.
package model

import "time"

// Unsigned lists the types of optional numbers. For each type, Slurm reserves a
// value that means "not set" and a value that means "unlimited".
type Unsigned interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Opt is a number that may be unset or unlimited. The zero value is unset. On
// the wire, the value for "not set" is NO_VAL (all bits set except the lowest)
// and the value for "unlimited" is INFINITE (all bits set), in the width of the
// number. In JSON an Opt is {set, infinite, number}.
type Opt[T Unsigned] struct {
	Number   T
	Set      bool // whether Number is set
	Infinite bool // unlimited; then Set is false
}

// Some returns an Opt that is set to n.
func Some[T Unsigned](n T) Opt[T] { return Opt[T]{Number: n, Set: true} }

// Infinite returns "unlimited".
func Infinite[T Unsigned]() Opt[T] { return Opt[T]{Infinite: true} }

// Or returns the number if it is set. Otherwise it returns fallback.
func (o Opt[T]) Or(fallback T) T {
	if o.Set {
		return o.Number
	}
	return fallback
}

// Time is a time in seconds since 1970 (UTC), as in all messages. 0 means
// "never".
type Time int64

// At converts t to a Time, truncated to the second.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.Unix())
}

// Go converts t to a time.Time. It converts 0 to the zero time.Time.
func (t Time) Go() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(int64(t), 0)
}

// Bitmap is a set of small numbers, as in Slurm's bit strings. Bit i of the set
// is bit i%8 of Bits[i/8]. On the wire, a null bitmap and an empty bitmap are
// different.
type Bitmap struct {
	Len  uint32 // number of bits
	Set  bool   // false if the bitmap is null
	Bits []byte // (Len+7)/8 bytes
}

// Has reports whether bit i is set.
func (b *Bitmap) Has(i int) bool {
	return b.Set && i >= 0 && i < int(b.Len) && b.Bits[i/8]&(1<<(i%8)) != 0
}
