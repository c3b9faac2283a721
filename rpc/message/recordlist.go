package message

import (
	"reflect"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// RecordList is a list of accounting records that a daemon can be asked for.
// recordList declares it, in the file of its walks; the client and the tests of
// this package find it by its filter.
type RecordList struct {
	Get, Got Type          // question and answer
	Since    codec.Version // the oldest protocol that has them; 0: all have

	Request func(filter any) Body
	answer  func(each any, stop func(error) error) (answer Body, code *uint32)

	names  [3]string // names in the protocol's tables: the request, its walk, and the walk of a record
	record func(*codec.Codec)
	stream any
}

// RecordLists are all lists of accounting records, by the type of their filter.
var RecordLists = map[reflect.Type]*RecordList{}

// recordList declares the list that a filter F selects from.
func recordList[F model.Filter[T], T any, A interface {
	Body
	List() *Listed[T]
}](l RecordList, request func(F) Body, answer func() A, record func(*codec.Codec, *T)) *RecordList {
	l.Request = func(filter any) Body { return request(filter.(F)) }
	l.answer = func(each any, stop func(error) error) (Body, *uint32) {
		a := answer()
		pass, _ := each.(func(*T) error)
		listed := a.List()
		if pass != nil {
			listed.Records.Each = func(one *T) error {
				if err := pass(one); err != nil {
					return stop(err)
				}
				return nil
			}
		}
		return a, &listed.Code
	}
	l.record = func(c *codec.Codec) { record(c, new(T)) }
	l.stream = codec.Stream[T]{}
	RecordLists[reflect.TypeFor[F]()] = &l
	return &l
}

// ListSince returns the oldest protocol that has a list, by its question.
func ListSince(question Type) codec.Version {
	for _, l := range RecordLists {
		if l.Get == question && l.Since != 0 {
			return l.Since
		}
	}
	return codec.Oldest
}

// Answer returns the answer's body, which passes each record to each, a
// func(*T) error, and the place of its error number. An error of each ends the
// decoding with the error that stop makes of it.
func (l *RecordList) Answer(each any, stop func(error) error) (answer Body, code *uint32) {
	return l.answer(each, stop)
}
