package message

import (
	"reflect"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// RecordList describes a list of accounting records that a client can request.
// Each RecordList is declared with the function recordList, in the same file as
// its messages. The client looks it up by the type of the filter.
type RecordList struct {
	Get, Got Type          // request and answer
	Since    codec.Version // the oldest protocol that has these messages; 0 for all

	Request func(filter any) Body
	answer  func(each any, stop func(error) error) (answer Body, code *uint32)
}

// RecordLists maps the type of each filter to the list of accounting records
// that the filter selects from.
var RecordLists = map[reflect.Type]*RecordList{}

// recordList declares the list of records that filters of type F select.
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

// ListSince returns the oldest protocol that has the message type request,
// which requests a list.
func ListSince(request Type) codec.Version {
	for _, l := range RecordLists {
		if l.Get == request && l.Since != 0 {
			return l.Since
		}
	}
	return codec.Oldest
}

// Answer returns a body into which the answer can be decoded, and the address
// of the error number in that body. The argument each is a func(*T) error,
// which is called with every record. If it returns an error err, decoding ends
// with the error stop(err). If each is nil, the records are stored in the body.
func (l *RecordList) Answer(each any, stop func(error) error) (answer Body, code *uint32) {
	return l.answer(each, stop)
}
