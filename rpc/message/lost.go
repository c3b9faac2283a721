package message

import (
	"bytes"
	"reflect"
	"slices"

	"schedrestd/rpc/codec"
)

// harmless contains values whose loss changes nothing, by the name of the
// field; nil stands for all values. Controllers before 26.05 never change the
// memory of a job, which is what 0 requests. Controllers from 23.02 on set
// reason_uid to the user of the request, and the gateway warns of it.
var harmless = map[string][][]byte{"mem_update_delay": noUpdate, "mem_update_margin": noUpdate, "reason_uid": nil}

var (
	noUpdate = [][]byte{{0, 0}, {0xff, 0xfe}}          // 0 and "not set"
	noText   = [][]byte{{0, 0, 0, 1, 0}, {0, 0, 0, 0}} // an empty text and a null text; a controller without the field has no text to remove
)

// isHarmless reports whether the loss of a field's values changes nothing.
func isHarmless(field string, values []byte, texts map[string]bool) bool {
	of, listed := harmless[field]
	switch {
	case listed && of == nil:
		return true
	case texts[field]:
		of = noText
	case !listed:
		return false
	}
	for len(values) > 0 {
		i := slices.IndexFunc(of, func(value []byte) bool { return bytes.HasPrefix(values, value) })
		if i < 0 {
			return false
		}
		values = values[len(of[i]):]
	}
	return true
}

// Lost returns the names of the fields of body whose values protocol version v
// can't carry: the version lacks the field, or the value is too large for it. A
// client must not send such a change, because the daemon would make another
// one.
//
// Lost encodes and decodes body at v, so that it needs no list of fields. The
// result and body are then compared as they look in the newest and the oldest
// version, because some members of a body are never sent.
func Lost(v codec.Version, body Body) ([]string, error) {
	if reflect.TypeOf(body).Kind() != reflect.Pointer {
		return nil, nil // such as Empty, which has no fields
	}
	fresh := func() Body { return reflect.New(reflect.TypeOf(body).Elem()).Interface().(Body) }
	carried := fresh()
	if err := recode(v, body, carried, nil); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(body, carried) {
		return nil, nil
	}
	var names []string
	for _, w := range []codec.Version{codec.Newest, codec.Oldest} {
		fields, before, after := []string(nil), map[string][]byte{}, map[string][]byte{}
		err := recode(w, body, fresh(), func(field string, value []byte) {
			if before[field] == nil {
				fields = append(fields, field)
			}
			before[field] = append(before[field], value...)
		})
		if err == nil {
			err = recode(w, carried, fresh(), func(field string, value []byte) { after[field] = append(after[field], value...) })
		}
		if err != nil {
			return nil, err
		}
		texts := textFields(w, fresh())
		for _, field := range fields {
			if !bytes.Equal(before[field], after[field]) && !isHarmless(field, before[field], texts) {
				names = append(names, field)
			}
		}
		if len(names) > 0 {
			break
		}
	}
	return names, nil
}

// textFields returns the names of the texts of a body.
func textFields(v codec.Version, body Body) map[string]bool {
	c := codec.NewDescriber(v)
	body.Walk(c)
	texts := map[string]bool{}
	for _, row := range c.Rows() {
		texts[row.Field] = row.Type == "str"
	}
	return texts
}

// recode encodes body in protocol version v, and decodes the result into
// another body. If each is not nil, it is called with the bytes of each field.
func recode(v codec.Version, body, into Body, each func(field string, value []byte)) error {
	out := codec.NewEncoder(v, nil)
	body.Walk(out)
	if err := out.Finish(); err != nil {
		return err
	}
	encoded := out.Bytes()
	in := codec.NewDecoder(v, encoded)
	if each != nil {
		in.Trace(func(field string, at, n int) { each(field, encoded[at:at+n]) })
	}
	into.Walk(in)
	return in.Finish()
}
