package main

import (
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
)

// A record is the text form of an object of the REST API. It contains the names
// and values of the object's fields, in the API's order. Therefore schedctl
// shows every field under its name in the API, and needs no list of fields of
// its own.
//
// The name of a field of an inner object is its path, with dots between the
// parts. The elements of an array are joined by commas. A number that may be
// unset or infinite is a single field. Its value is the number, "unlimited", or
// an empty string.
type record []field

type field struct{ name, value string }

// get returns the value of the field with the given name, or "" if there is no
// such field.
func (r record) get(name string) string {
	for _, f := range r {
		if f.name == name {
			return f.value
		}
	}
	return ""
}

// A recorder is a schema.Encoder that makes a record.
type recorder struct {
	record  record
	path    []string // names of the open objects and of the next value
	arrays  int      // number of open arrays
	list    []string // elements of the open array
	failure error
}

// Key sets the name of the next value. Members of objects inside an array are
// shown without their names.
func (r *recorder) Key(name string) {
	if r.arrays == 0 {
		r.path = append(r.path, name)
	}
}

func (r *recorder) BeginObject() {}

// EndObject ends an object. If the object consists of the members "set",
// "infinite" and "number", it becomes a single value.
func (r *recorder) EndObject() {
	if r.arrays > 0 {
		return
	}
	name := strings.Join(r.path, ".")
	if n := len(r.record) - 3; n >= 0 && r.record[n].name == name+".set" {
		set, infinite, number := r.record[n].value, r.record[n+1].value, r.record[n+2].value
		r.record = append(r.record[:n], field{name, numberText(set, infinite, number)})
	}
	r.pop()
}

func numberText(set, infinite, number string) string {
	switch {
	case infinite == "true":
		return "unlimited"
	case set == "true":
		return number
	}
	return ""
}

func (r *recorder) BeginArray() { r.arrays++ }

func (r *recorder) EndArray() {
	if r.arrays--; r.arrays == 0 {
		r.emit(strings.Join(r.list, ","))
		r.list = nil
	}
}

// value adds a scalar.
func (r *recorder) value(s string) {
	if r.arrays > 0 {
		r.list = append(r.list, s)
		return
	}
	r.emit(s)
}

// emit adds the value s of the member whose name Key has set.
func (r *recorder) emit(s string) {
	r.record = append(r.record, field{strings.Join(r.path, "."), s})
	r.pop()
}

func (r *recorder) pop() { r.path = r.path[:max(0, len(r.path)-1)] }

func (r *recorder) String(s string) { r.value(plain(s)) }
func (r *recorder) Int(n int64)     { r.value(strconv.FormatInt(n, 10)) }
func (r *recorder) Uint(n uint64)   { r.value(strconv.FormatUint(n, 10)) }
func (r *recorder) Float(f float64) { r.value(strconv.FormatFloat(f, 'g', -1, 64)) }
func (r *recorder) Bool(b bool)     { r.value(strconv.FormatBool(b)) }
func (r *recorder) Null()           { r.value("") }

func (r *recorder) Fail(err error) {
	if r.failure == nil {
		r.failure = err
	}
}

func (r *recorder) Err() error { return r.failure }

// plain returns s on one line, with control characters escaped. Otherwise the
// name of a job could move the cursor of an administrator who lists other
// users' jobs.
func plain(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// recordOf returns a function that converts an object to a record. The argument
// t lists the fields of the object. The record has the fields of the newest
// version of the REST API.
func recordOf[O any](t *schema.ObjectType[O]) func(*O) (record, error) {
	newest := api.Versions[len(api.Versions)-1]
	render := t.Renderer(schema.View{Version: newest, Spelling: schema.Sched})
	return func(o *O) (record, error) {
		var r recorder
		render(&r, o)
		return r.record, r.failure
	}
}
