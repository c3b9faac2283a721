package ipc

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// shown is m after its walk was gone, as for writing, with somebody who looks on.
func shown(m Message, look func(field any, what string, least, most int)) Message {
	m.walk(&walker{look: look})
	return m
}

// least is the shortest message of a row: no text, no list, and the least word of each that it must have.
func least(r Row) Message {
	return shown(r.empty(), func(field any, _ string, least, _ int) {
		if v := reflect.ValueOf(field).Elem(); v.Kind() == reflect.Uint8 && least > 0 {
			v.SetUint(uint64(least))
		}
	})
}

// full is a message of a row with something in each field, and in no two the same.
func full(r Row) Message {
	n := 0
	return shown(r.empty(), func(field any, what string, _, most int) {
		n++
		switch v := reflect.ValueOf(field).Elem(); {
		case what == "prefix":
			v.Set(reflect.ValueOf(netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 32)))
		case what == "span":
			v.SetInt(int64(n) * int64(time.Millisecond))
		case what == "list":
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		case what == "blob":
			v.SetBytes([]byte{byte(n)})
		case what == "bytes":
			v.SetUint(uint64(n))
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.Kind() == reflect.String:
			v.SetString(fmt.Sprint("t", n))
		case v.CanInt():
			v.SetInt(int64(n))
		case most > 0:
			v.SetUint(uint64(most))
		default:
			v.SetUint(uint64(n))
		}
	})
}

// frameOf is m as it travels.
func frameOf(t testing.TB, m Message) []byte {
	t.Helper()
	frame, err := encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}
