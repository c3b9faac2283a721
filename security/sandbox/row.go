package sandbox

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// row is one line of a table. It gives a system call its verdict if all tests
// of the call's arguments hold. Rows of one call are tried in order. A call
// that matches none of them is treated like a call without rows.
type row struct {
	call    call
	verdict verdict
	tests   []test
	reason  string
}

// call is a system call, with a readable name and its number on this
// architecture.
type call struct {
	name   string
	number uintptr
}

// test is a condition on one argument of a call: the argument, without the bits
// outside mask, must be one of the values. The kernel reads only the lower 32
// bits of an int. Tests made by is() compare all 64 bits even for an int, so
// that a caller can't deceive the filter by setting an upper bit.
type test struct {
	arg    int
	mask   uint64
	values []uint64
	name   string // readable name of the values; if it is empty, they are shown as numbers
}

// is returns a test that holds when the argument is one of the values.
func is(arg int, values ...uint64) test { return test{arg: arg, mask: ^uint64(0), values: values} }

// without returns a test that holds when the argument has none of the bits.
func without(arg int, bits uint64) test { return test{arg: arg, mask: bits, values: []uint64{0}} }

// isInt returns a test that holds when the lower half of the argument is one of
// the values. The kernel reads only that half of an int. Rows that kill need
// isInt, because a caller could otherwise avoid the row by setting an upper
// bit.
func isInt(arg int, values ...uint64) test { return test{arg: arg, mask: 1<<32 - 1, values: values} }

// named names the values of a test.
func (t test) named(name string) test { t.name = name; return t }

// verdict is the filter's decision about a call.
type verdict uint8

const (
	kill verdict = iota // kill the process with SIGSYS; also the verdict on every call without a matching row
	allow
	eperm  // for operations that runProbes tries, and for calls that Go's libraries make but do not need
	enosys // for calls that Go's runtime and libraries try first, before they fall back to others
)

// action returns the kernel's value of the verdict.
func (v verdict) action(audit bool) uint32 {
	switch v {
	case allow:
		return unix.SECCOMP_RET_ALLOW
	case eperm:
		return unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	case enosys:
		return unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	}
	if audit {
		return unix.SECCOMP_RET_LOG
	}
	return unix.SECCOMP_RET_KILL_PROCESS
}

// compile builds the filter for a table, which it sorts by the calls' numbers.
// The filter first tests the architecture, because the numbers of calls depend
// on it. Then it does a binary search for the call's number, and evaluates the
// rows of that number in order. If a call is allowed whatever its arguments
// are, the kernel remembers this and does not run the filter.
func compile(table []row, audit bool) ([]unix.SockFilter, error) {
	slices.SortStableFunc(table, func(a, b row) int { return cmp.Compare(a.call.number, b.call.number) })
	var calls [][]row
	for begin, i := 0, 1; i <= len(table); i++ {
		if i == len(table) || table[i].call.number != table[begin].call.number {
			calls = append(calls, table[begin:i])
			begin = i
		}
	}
	a := &assembler{list: make([]instruction, 0, 8*len(table))}
	known, native := a.newLabel(), a.newLabel()
	a.load(atArch)
	a.equal(auditArch, known, next)
	a.ret(unix.SECCOMP_RET_KILL_PROCESS) // also in audit mode: our programs make no such calls
	a.place(known)
	a.load(atNumber)
	a.atLeast(firstForeign, next, native) // rejects x32 on amd64
	a.ret(unix.SECCOMP_RET_KILL_PROCESS)
	a.place(native)
	if err := a.emitSearch(calls, audit); err != nil {
		return nil, err
	}
	return a.link()
}

// emitSearch emits a binary search for the call's number in a sorted list: a
// comparison with the first number in the second half of the list, and then
// code for both halves.
func (a *assembler) emitSearch(calls [][]row, audit bool) error {
	if len(calls) == 1 {
		found := a.newLabel()
		a.equal(uint32(calls[0][0].call.number), found, next)
		a.ret(kill.action(audit))
		a.place(found)
		return a.emitRows(calls[0], audit)
	}
	half := len(calls) / 2
	lower, upper := a.newLabel(), a.newLabel()
	a.atLeast(uint32(calls[half][0].call.number), next, lower)
	a.jump(upper)
	a.place(lower)
	if err := a.emitSearch(calls[:half], audit); err != nil {
		return err
	}
	a.place(upper)
	return a.emitSearch(calls[half:], audit)
}

// emitRows emits the rows of one call.
func (a *assembler) emitRows(rows []row, audit bool) error {
	for i, r := range rows {
		if len(r.tests) == 0 {
			if i+1 < len(rows) {
				return fmt.Errorf("%s: rows follow one that fits always", r.call.name)
			}
			a.ret(r.verdict.action(audit))
			return nil
		}
		differs := a.newLabel()
		for _, t := range r.tests {
			if err := a.emitTest(t, differs); err != nil {
				return fmt.Errorf("%s: %w", r.call.name, err)
			}
		}
		a.ret(r.verdict.action(audit))
		a.place(differs)
	}
	a.ret(kill.action(audit))
	return nil
}

// emitTest emits code that checks t. If t holds, this code continues with the
// next instruction. If not, it jumps to the given label.
func (a *assembler) emitTest(t test, differs label) error {
	if len(t.values) == 0 || t.arg < 0 || t.arg > 5 {
		return fmt.Errorf("test of argument %d for %d values", t.arg, len(t.values))
	}
	upper := uint32(t.values[0] >> 32)
	for _, v := range t.values {
		if uint32(v>>32) != upper || v&^t.mask != 0 {
			return fmt.Errorf("value %#x of argument %d: upper halves must be equal and within the mask", v, t.arg)
		}
	}
	at := uint32(atArgs + 8*t.arg)
	if mask := uint32(t.mask >> 32); mask != 0 {
		a.load(at + 4)
		a.and(mask)
		a.equal(upper, next, differs)
	}
	if mask := uint32(t.mask); mask != 0 {
		holds := a.newLabel()
		a.load(at)
		a.and(mask)
		for _, v := range t.values[:len(t.values)-1] {
			a.equal(uint32(v), holds, next)
		}
		a.equal(uint32(t.values[len(t.values)-1]), next, differs)
		a.place(holds)
	}
	return nil
}
