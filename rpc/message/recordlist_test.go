package message

import (
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/rpc/codec"
)

// addRecordLists adds the lists of accounting records to the messages that the
// tests use. It adds missing answers at the end of the list fuzzed, so that the
// indexes in the corpus of FuzzDecode stay valid.
func addRecordLists() {
	var more []string
	for filter, l := range RecordLists {
		question := func() Body { return l.Request(reflect.Zero(filter).Interface()) }
		answer := func() Body { body, _ := l.Answer(nil, nil); return body }
		add(walks, map[string]func(*codec.Codec){l.names[1]: question().Walk, l.names[2]: l.record})
		add(numbers, map[string]Type{l.names[0]: l.Get, "answer to " + l.names[0]: l.Got})
		add(messages, map[string]func() Body{named(question()): question, named(answer()): answer})
		comparable = append(comparable, cmpopts.IgnoreUnexported(l.stream))
		if !slices.Contains(fuzzed, named(answer())) {
			more = append(more, named(answer()))
		}
	}
	slices.Sort(more)
	fuzzed = append(fuzzed, more...)
}

// named returns the name of a body's type.
func named(b Body) string { return reflect.TypeOf(b).Elem().Name() }
