package message

import (
	"bytes"
	"reflect"
	"slices"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// restorer is a body with values whose loss changes nothing. The method restore
// copies such values from the body that was encoded to one that was decoded.
type restorer interface{ restore(encoded Body) }

func (m *SubmitRequest) restore(encoded Body) {
	restoreDesc(&m.Desc, &encoded.(*SubmitRequest).Desc)
}

func (m *JobDescs) restore(encoded Body) {
	for i := range m.Jobs {
		restoreDesc(&m.Jobs[i], &encoded.(*JobDescs).Jobs[i])
	}
}

// restoreDesc restores 0 in the fields that let a controller change the memory
// of a job: controllers before 26.05 have no such fields, and never do this. It
// restores trackable resources that only have another name.
func restoreDesc(d, encoded *model.JobDesc) {
	for name, v := range map[string][2]*model.Text{
		"cpus_per_tres": {&d.CPUsPerTRES, &encoded.CPUsPerTRES}, "mem_per_tres": {&d.MemPerTRES, &encoded.MemPerTRES}, "tres_bind": {&d.TRESBind, &encoded.TRESBind},
		"tres_per_job": {&d.TRESPerJob, &encoded.TRESPerJob}, "tres_per_node": {&d.TRESPerNode, &encoded.TRESPerNode},
		"tres_per_socket": {&d.TRESPerSocket, &encoded.TRESPerSocket}, "tres_per_task": {&d.TRESPerTask, &encoded.TRESPerTask},
	} {
		if *v[0] == oldTRES(name, *v[1]) {
			*v[0] = *v[1]
		}
	}
	never := model.Some[uint16](0)
	if encoded.MemUpdateDelay == never {
		d.MemUpdateDelay = never
	}
	if encoded.MemUpdateMargin == never {
		d.MemUpdateMargin = never
	}
}

// restore restores the user who sets the reason. From 23.02 on, controllers
// set it to the user of the request, and the gateway warns of it.
func (m *NodeUpdate) restore(encoded Body) { m.ReasonUID = encoded.(*NodeUpdate).ReasonUID }

// noText contains the parts of the encodings of an empty text and of a null
// text, the length and the byte that ends a text. A daemon without the field
// has no text that could be removed.
var noText = [][]byte{{0, 0, 0, 0}, {0, 0, 0, 1}, {0}}

// noVal contains Slurm's NO_VAL of each size, which leaves a number as it is.
var noVal = [][]byte{{0xfe}, {0xff, 0xfe}, {0xff, 0xff, 0xff, 0xfe}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}}

// asksForNothing reports whether the encoded value of a field, or a part of a
// text's, changes nothing.
func asksForNothing(value []byte, isText bool) bool {
	is := func(other []byte) bool { return bytes.Equal(value, other) }
	return slices.ContainsFunc(noVal, is) || isText && slices.ContainsFunc(noText, is)
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
	if r, ok := carried.(restorer); ok {
		r.restore(body)
	}
	if reflect.DeepEqual(body, carried) {
		return nil, nil
	}
	var names []string
	for _, w := range []codec.Version{codec.Newest, codec.Oldest} {
		fields, before, after, texts := []string(nil), map[string][][]byte{}, map[string][][]byte{}, map[string]bool{}
		err := recode(w, body, fresh(), func(field string, value []byte, text bool) {
			if before[field] == nil {
				fields = append(fields, field)
			}
			before[field], texts[field] = append(before[field], value), text
		})
		if err == nil {
			err = recode(w, carried, fresh(), func(field string, value []byte, _ bool) { after[field] = append(after[field], value) })
		}
		if err != nil {
			return nil, err
		}
		for _, field := range fields {
			sameLength := len(before[field]) == len(after[field]) // otherwise a list was lost, and the positions say nothing
			for i, value := range before[field] {
				if !asksForNothing(value, texts[field]) && (!sameLength || !bytes.Equal(value, after[field][i])) {
					names = append(names, field)
					break
				}
			}
		}
		if len(names) > 0 {
			break
		}
	}
	return names, nil
}

// recode encodes body in protocol version v, and decodes the result into
// another body. If each is not nil, it is called with the bytes of each field, and
// whether they are a part of a text.
func recode(v codec.Version, body, into Body, each func(field string, value []byte, text bool)) error {
	out := codec.NewEncoder(v, nil)
	body.Walk(out)
	if err := out.Finish(); err != nil {
		return err
	}
	encoded := out.Bytes()
	in := codec.NewDecoder(v, encoded)
	if each != nil {
		in.Trace(func(field string, at, n int, text bool) { each(field, encoded[at:at+n], text) })
	}
	into.Walk(in)
	return in.Finish()
}
