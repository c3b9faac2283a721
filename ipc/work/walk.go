package work

import (
	"net/netip"
	"reflect"

	"schedrestd/ipc"
)

// Bounds of what a Setup contains. A Setup that reached all of them would exceed
// ipc.MaxMessage, so Pack would refuse it.
const (
	maxList = 2 * MaxHosts // elements
	maxBlob = 8 << 10      // bytes; as much as zone.MaxSize, and more than tlsconn.MaxCA
)

// walk encodes or decodes the fields of a struct in their order, each by its
// type, so that a new setting needs no line for its encoding. A text has at most
// maxName bytes. A type with other bounds has a Walk of its own.
func walk(w *ipc.Walker, s reflect.Value) {
	for i := range s.NumField() {
		switch field := s.Field(i).Addr().Interface().(type) {
		case *ipc.Setup: // the part that the parent decodes is sent beside the settings
		case *string:
			w.Text(maxName, field)
		case *[]byte:
			w.Blob(field, maxBlob)
		case *[]string:
			ipc.List(w, field, maxList, 2, func(t *string) { w.Text(maxName, t) })
		case *[]uint32:
			ipc.List(w, field, maxList, 4, func(n *uint32) { w.Fields(n) })
		case *[]netip.Prefix:
			ipc.List(w, field, maxList, 2, func(p *netip.Prefix) { w.Fields(p) })
		case *[]netip.Addr:
			walkAddrs(w, field, MaxAddresses)
		case *[]Address:
			walkList(w, field)
		case *[]Parser:
			walkList(w, field)
		case *[]Deprecation:
			walkList(w, field)
		case ipc.Message:
			field.Walk(w)
		default:
			if s.Field(i).Kind() == reflect.Struct {
				walk(w, s.Field(i))
			} else {
				w.Fields(field)
			}
		}
	}
}

// walkList encodes or decodes a list of structs.
func walkList[T any](w *ipc.Walker, list *[]T) {
	ipc.List(w, list, maxList, 2, func(e *T) { walk(w, reflect.ValueOf(e).Elem()) })
}
