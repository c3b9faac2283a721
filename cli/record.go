package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A record is the text form of an object of the REST API. It contains the names
// and values of the object's fields, in the order of the answer. Therefore
// schedctl shows every field under its name in the API, and needs no list of
// fields of its own.
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

// number returns the value of a field that is a number, or 0.
func (r record) number(name string) float64 {
	n, _ := strconv.ParseFloat(r.get(name), 64)
	return n
}

// print prints all fields of r.
func (r record) print(w io.Writer) error {
	for _, f := range r {
		if _, err := fmt.Fprintf(w, "%s=%s\n", f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}

// recordOf returns the record of an object in JSON.
func recordOf(object json.RawMessage) (record, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	var r record
	return r, r.read(d, "")
}

// read reads a value and adds its fields. The name argument is the path of the
// value.
func (r *record) read(d *json.Decoder, name string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('['):
		list, err := elements(d)
		*r = append(*r, field{name, strings.Join(list, ",")})
		return err
	case json.Delim('{'):
		start := len(*r)
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return err
			}
			path := plain(key.(string))
			if name != "" {
				path = name + "." + path
			}
			if err := r.read(d, path); err != nil {
				return err
			}
		}
		_, err := d.Token()
		r.joinNumber(start, name)
		return err
	}
	*r = append(*r, field{name, scalar(t)})
	return nil
}

// elements reads the rest of an array and returns its scalars. Members of
// objects in an array are shown without their names.
func elements(d *json.Decoder) (list []string, err error) {
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t {
		case json.Delim('['):
			depth++
		case json.Delim(']'):
			depth--
		case json.Delim('{'):
			members, err := recordMembers(d)
			if err != nil {
				return nil, err
			}
			list = append(list, members...)
		default:
			list = append(list, scalar(t))
		}
	}
	return list, nil
}

// recordMembers reads the rest of an object and returns the values of its
// fields.
func recordMembers(d *json.Decoder) (values []string, err error) {
	for d.More() {
		var r record
		if _, err := d.Token(); err != nil {
			return nil, err
		}
		if err := r.read(d, ""); err != nil {
			return nil, err
		}
		for _, f := range r {
			values = append(values, f.value)
		}
	}
	_, err = d.Token()
	return values, err
}

// joinNumber replaces the fields from start on with one field if they are the
// members "set", "infinite" and "number" of an object with the given name.
func (r *record) joinNumber(start int, name string) {
	fields := (*r)[start:]
	prefix := ""
	if name != "" {
		prefix = name + "."
	}
	if len(fields) != 3 || fields[0].name != prefix+"set" || fields[1].name != prefix+"infinite" || fields[2].name != prefix+"number" {
		return
	}
	value := ""
	switch {
	case fields[1].value == "true":
		value = "unlimited"
	case fields[0].value == "true":
		value = fields[2].value
	}
	*r = append((*r)[:start], field{name, value})
}

// scalar returns the text of a token.
func scalar(t json.Token) string {
	switch v := t.(type) {
	case nil:
		return ""
	case string:
		return plain(v)
	}
	return fmt.Sprint(t)
}

// plain returns s on one line, with control characters escaped. Otherwise the
// name of a job could move the cursor of an administrator who lists other
// users' jobs.
func plain(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
