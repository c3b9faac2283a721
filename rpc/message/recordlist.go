package message

import (
	"reflect"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// RecordList describes a list of accounting records that a client can request.
// Each list is declared with recordList, in the file of its walks. The client
// looks up a list by the type of its filter.
type RecordList struct {
	Get, Got Type          // request and answer
	Since    codec.Version // the oldest protocol that has them; 0 for all

	Request func(filter any) Body
	answer  func(each any, stop func(error) error) (answer Body, code *uint32)
}

// RecordLists has all lists of accounting records, by the type of their filter.
var RecordLists = map[reflect.Type]*RecordList{}

// recordList declares the list of records that a filter F selects.
func recordList[F model.Filter[T], T any, A interface {
	Body
	List() *ListResponse[T]
}](l RecordList, request func(F) Body, answer func() A) *RecordList {
	l.Request = func(filter any) Body { return request(filter.(F)) }
	l.answer = func(each any, stop func(error) error) (Body, *uint32) {
		a := answer()
		callback, _ := each.(func(*T) error)
		listed := a.List()
		if callback != nil {
			listed.Records.Each = func(elem *T) error {
				if err := callback(elem); err != nil {
					return stop(err)
				}
				return nil
			}
		}
		return a, &listed.Code
	}
	RecordLists[reflect.TypeFor[F]()] = &l
	return &l
}

// ListSince returns the oldest protocol that has the list with this type of
// request.
func ListSince(request Type) codec.Version {
	for _, l := range RecordLists {
		if l.Get == request && l.Since != 0 {
			return l.Since
		}
	}
	return codec.Oldest
}

// Answer returns a body to decode the answer into, and the address of the
// answer's error number. The argument each must be a func(*T) error, which is
// called with every record, or nil to store the records in the body. If that
// function returns an error err, decoding ends with the error stop(err).
func (l *RecordList) Answer(each any, stop func(error) error) (answer Body, code *uint32) {
	return l.answer(each, stop)
}
