// Package variant generates request bodies from the tables that describe them:
// for each field of a body, each form of value that a client might send.
package variant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"schedrestd/api/schema"
)

// Case gives one field of a body one value.
type Case struct {
	Field string // path of the field, such as "qos[].limits.factor"
	Form  string // name of the value's form, such as "text number"
	Value string // the value, as JSON
}

func (c Case) String() string { return fmt.Sprintf("%s = %s (%s)", c.Field, c.Value, c.Form) }

// Hint names values that make sense in some fields. Without a hint, a text is
// "word" and a number is 12.
type Hint struct {
	Field   *regexp.Regexp // matches the paths of the fields
	Known   []string       // one or two values, as JSON, that exist in the cluster
	Unknown string         // a name, as JSON, that does not exist in the cluster; "" if the field is no reference
	Element string         // for a list of objects: an element, as JSON, to which a case adds one field
}

// Cases returns every case for a body of the given shape, in the order of the
// shape's fields. A case for a list of objects is about the list itself, and
// the cases for the fields of its objects are about a list of one object. Cases
// omits the fields that are part of answers only.
func Cases(shape *schema.Shape, hints []Hint) []Case {
	w := &walk{hints: hints}
	for _, p := range shape.Fields {
		if p.Name != "meta" && p.Name != "errors" && p.Name != "warnings" {
			w.visit(p.Name, p.Shape)
		}
	}
	return w.cases
}

type walk struct {
	hints []Hint
	cases []Case
}

func (w *walk) visit(field string, s *schema.Shape) {
	h := w.hint(field, isRecordList(s))
	add := func(list []form) {
		for _, f := range list {
			w.cases = append(w.cases, Case{field, f.name, f.value})
		}
	}
	switch {
	case isRecordList(s):
		add(recordListForms(h))
		for _, p := range s.Items.Fields {
			w.visit(field+"[]."+p.Name, p.Shape)
		}
	case s.Kind == "array":
		add(listForms(s.Items, h))
	case isRecord(s):
		add(objectForms)
		for _, p := range s.Fields {
			w.visit(field+"."+p.Name, p.Shape)
		}
	case len(s.Fields) > 0:
		add(wrapperForms(s, h))
	case len(s.Enum) > 0:
		add(wordForms(s.Enum))
	case s.Kind == "boolean":
		add(booleanForms)
	case s.Kind == "integer" || s.Kind == "number":
		add(numberForms(s.Kind, h))
	case s.Kind == "object":
		add(objectForms)
	default:
		add(textForms(h))
	}
}

// hint returns the first hint for a field. Only lists of objects have hints
// with elements.
func (w *walk) hint(field string, elements bool) Hint {
	for _, h := range w.hints {
		if (h.Element != "") == elements && h.Field.MatchString(field) {
			return h
		}
	}
	return Hint{}
}

func isRecordList(s *schema.Shape) bool {
	return s.Kind == "array" && s.Items != nil && isRecord(s.Items)
}

// isRecord reports whether a shape is an object with fields, and not the
// wrapper of a number that may be unset.
func isRecord(s *schema.Shape) bool {
	return s.Kind == "object" && len(s.Fields) > 0 && !strings.Contains(s.Name, "_no_val")
}

// form is a value with the name of its form.
type form struct{ name, value string }

// known returns the i-th value that exists in the cluster, or the value
// without.
func (h Hint) known(i int, without string) string {
	if i < len(h.Known) {
		return h.Known[i]
	}
	return without
}

// numbers returns two numbers that exist in the cluster. Without them, it
// returns any numbers.
func (h Hint) numbers() (one, other string) {
	if len(h.Known) == 0 || strings.HasPrefix(h.Known[0], `"`) {
		return `12`, `7`
	}
	return h.Known[0], h.known(1, `7`)
}

var objectForms = []form{
	{"null", `null`}, {"empty object", `{}`}, {"wrong type, empty text", `""`}, {"wrong type, word", `"word"`}, {"wrong type, number", `12`}, {"wrong type, empty list", `[]`}, {"unknown field", `{"nosuchfield": 1}`},
}

var booleanForms = []form{
	{"true", `true`}, {"false", `false`}, {"word true", `"true"`}, {"word FALSE", `"FALSE"`}, {"word yes", `"yes"`}, {"word off", `"off"`}, {"one", `1`}, {"zero", `0`}, {"number", `12`}, {"negative", `-1`}, {"text number", `"1"`},
	{"wrong type, word", `"word"`}, {"empty text", `""`}, {"null", `null`}, {"wrong type, list", `[true]`}, {"wrong type, empty list", `[]`}, {"wrong type, empty object", `{}`},
}

func numberForms(kind string, h Hint) []form {
	n, other := h.numbers()
	list := []form{
		{"number", n}, {"another number", other}, {"zero", `0`}, {"negative", `-1`}, {"less than -1", `-2`}, {"2^32-2", `4294967294`}, {"2^32-1", `4294967295`}, {"very large", `1099511627776`},
		{"fraction", `1.5`}, {"whole fraction", `12.0`}, {"text number", `"` + n + `"`}, {"wrong type, word", `"word"`}, {"word infinite", `"infinite"`}, {"word UNLIMITED", `"UNLIMITED"`},
		{"empty text", `""`}, {"null", `null`}, {"wrong type, boolean", `true`}, {"wrong type, list", `[` + n + `]`}, {"wrong type, empty list", `[]`}, {"wrong type, empty object", `{}`},
	}
	if kind == "number" {
		list = slices.Insert(list, 0, form{"text fraction", `"1.5"`}, form{"exponent", `1e3`})
	}
	return list
}

// wrapperForms returns the forms of a number that may be unset or infinite.
func wrapperForms(s *schema.Shape, h Hint) []form {
	kind := s.Fields[len(s.Fields)-1].Shape.Kind
	list := numberForms(kind, h)
	list[len(list)-1].name = "empty object" // which is no wrong type here
	n, _ := h.numbers()
	for _, set := range []string{"", "true", "false"} {
		for _, infinite := range []string{"", "true", "false"} {
			for _, number := range []string{"", n} {
				var members, names []string
				for _, m := range []struct{ name, value, shown string }{{"set", set, set}, {"infinite", infinite, infinite}, {"number", number, "n"}} {
					if m.value != "" {
						members = append(members, fmt.Sprintf("%q: %s", m.name, m.value))
						names = append(names, m.name+" "+m.shown)
					}
				}
				if len(members) > 0 { // the empty object is in numberForms
					list = append(list, form{"{" + strings.Join(names, ", ") + "}", "{" + strings.Join(members, ", ") + "}"})
				}
			}
		}
	}
	return append(list,
		form{"{set true, number 0}", `{"set": true, "number": 0}`},
		form{"{set true, number -1}", `{"set": true, "number": -1}`},
		form{"{set true, number text}", `{"set": true, "number": "` + n + `"}`},
		form{"{set true, number null}", `{"set": true, "number": null}`},
		form{"{set word, number n}", `{"set": "yes", "number": ` + n + `}`},
		form{"{set true, number 2^32-1}", `{"set": true, "number": 4294967295}`})
}

func textForms(h Hint) []form {
	known := h.known(0, `"word"`)
	list := []form{
		{"text", known}, {"another text", h.known(1, `"Two words"`)}, {"text number", `"12"`}, {"number", `12`}, {"zero", `0`}, {"negative", `-1`}, {"fraction", `1.5`}, {"empty text", `""`}, {"null", `null`}, {"boolean", `true`},
		{"wrong type, list", `[` + known + `]`}, {"wrong type, empty list", `[]`}, {"wrong type, empty object", `{}`}, {"wrong type, object", `{"set": true, "number": 12}`}, {"quotes", `"it's \"odd\""`},
	}
	if h.Unknown != "" {
		list = append(list, form{"unknown reference", h.Unknown}, form{"known and unknown reference", joinTexts(known, h.Unknown)})
	}
	return list
}

// joinTexts returns a JSON string with two JSON strings and a comma between
// them.
func joinTexts(a, b string) string {
	return strings.TrimSuffix(a, `"`) + "," + strings.TrimPrefix(b, `"`)
}

func wordForms(words []string) []form {
	var list []form
	for _, w := range words {
		list = append(list, form{"word " + w, quote(w)})
	}
	return append(list, form{"lower case", quote(strings.ToLower(words[0]))}, form{"unknown word", `"NOSUCHWORD"`}, form{"word with blanks", quote(" " + words[0])},
		form{"number", `1`}, form{"text number", `"1"`}, form{"empty text", `""`}, form{"null", `null`}, form{"wrong type, boolean", `true`}, form{"wrong type, list", `[` + quote(words[0]) + `]`}, form{"wrong type, empty list", `[]`}, form{"wrong type, empty object", `{}`})
}

// listForms returns the forms of a list of texts, words or numbers. The shape
// elem is nil for any elements.
func listForms(elem *schema.Shape, h Hint) []form {
	one, two := h.known(0, `"word"`), h.known(1, `"other"`)
	if elem != nil && (elem.Kind == "integer" || elem.Kind == "number") {
		one, two = h.numbers()
	}
	list := []form{{"empty list", `[]`}, {"null", `null`}}
	if elem != nil && len(elem.Enum) > 0 {
		for _, w := range elem.Enum {
			list = append(list, form{"list of " + w, `[` + quote(w) + `]`})
		}
		one, two = quote(elem.Enum[0]), quote(elem.Enum[len(elem.Enum)-1])
		list = append(list, form{"lower case", `[` + strings.ToLower(one) + `]`}, form{"unknown word", `["NOSUCHWORD"]`}, form{"known and unknown word", `[` + one + `, "NOSUCHWORD"]`})
	} else {
		list = append(list, form{"list of one", `[` + one + `]`})
	}
	list = append(list, form{"list of two", `[` + one + `, ` + two + `]`}, form{"list of the same twice", `[` + one + `, ` + one + `]`},
		form{"text", one}, form{"number", `12`}, form{"wrong type, boolean", `true`}, form{"empty text", `""`}, form{"wrong type, empty object", `{}`},
		form{"wrong type, list of null", `[null]`}, form{"list of empty text", `[""]`}, form{"list of number", `[12]`}, form{"wrong type, list of list", `[[` + one + `]]`}, form{"wrong type, list of object", `[{}]`},
		form{"one and empty text", `[` + one + `, ""]`}, form{"wrong type, object", `{"0": ` + one + `}`})
	if strings.HasPrefix(one, `"`) {
		list = append(list, form{"texts with a comma", joinTexts(one, two)}, form{"list of texts with a comma", `[` + joinTexts(one, two) + `]`})
	}
	if h.Unknown != "" {
		list = append(list, form{"unknown reference", `[` + h.Unknown + `]`}, form{"known and unknown reference", `[` + one + `, ` + h.Unknown + `]`})
	}
	return list
}

// recordListForms returns the forms of a list of objects.
func recordListForms(h Hint) []form {
	list := []form{{"empty list", `[]`}, {"null", `null`}, {"wrong type, empty text", `""`}, {"wrong type, word", `"word"`}, {"wrong type, number", `12`}, {"wrong type, boolean", `true`}, {"wrong type, empty object", `{}`},
		{"wrong type, list of null", `[null]`}, {"wrong type, list of number", `[12]`}, {"wrong type, list of word", `["word"]`}, {"list of empty object", `[{}]`}, {"wrong type, list of list", `[[]]`}}
	if h.Element != "" {
		list = append(list, form{"list of one", `[` + h.Element + `]`}, form{"list of the same twice", `[` + h.Element + `, ` + h.Element + `]`}, form{"object", h.Element})
		for _, k := range h.Known {
			list = append(list, form{"list of two", `[` + h.Element + `, ` + k + `]`})
		}
		if h.Unknown != "" {
			list = append(list, form{"unknown reference", `[` + h.Unknown + `]`}, form{"known and unknown reference", `[` + h.Element + `, ` + h.Unknown + `]`})
		}
	}
	return list
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return string(text)
}

// Body returns the body base with the values of cases. In a list of objects,
// the values go to the first object. If the list does not exist, Body makes it
// from the hint for it.
func Body(base string, hints []Hint, cases ...Case) (string, error) {
	doc, err := decode(base)
	if err != nil {
		return "", err
	}
	w := &walk{hints: hints}
	for _, c := range cases {
		if doc, err = w.set(doc, "", strings.Split(c.Field, "."), c.Value); err != nil {
			return "", fmt.Errorf("%v: %w", c, err)
		}
	}
	text, err := json.Marshal(doc)
	return string(text), err
}

func decode(text string) (doc any, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	err = d.Decode(&doc)
	return doc, err
}

// set returns doc with value at the path. The path of doc itself is at.
func (w *walk) set(doc any, at string, path []string, value string) (any, error) {
	if len(path) == 0 {
		return json.RawMessage(value), nil
	}
	object, ok := doc.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	field := strings.TrimPrefix(at+"."+name, ".")
	if !isList {
		v, err := w.set(object[name], field, path[1:], value)
		object[name] = v
		return object, err
	}
	list, _ := object[name].([]any)
	if len(list) == 0 {
		var element any
		if h := w.hint(field, true); h.Element != "" {
			var err error
			if element, err = decode(h.Element); err != nil {
				return nil, err
			}
		}
		list = []any{element}
	}
	v, err := w.set(list[0], field+"[]", path[1:], value)
	list[0] = v
	object[name] = list
	return object, err
}

// Pairs returns pairs of cases. Each field is in two pairs, each time with
// another field. The generator random selects the partners and the forms. A
// field is never paired with a field that contains it.
func Pairs(cases []Case, random *rand.Rand) (pairs [][2]Case) {
	byField := map[string][]Case{}
	var fields []string
	for _, c := range cases {
		if byField[c.Field] == nil {
			fields = append(fields, c.Field)
		}
		byField[c.Field] = append(byField[c.Field], c)
	}
	random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	choose := func(field string) Case { return byField[field][random.IntN(len(byField[field]))] }
	for i, field := range fields {
		for n := 1; n < len(fields); n++ {
			partner := fields[(i+n)%len(fields)]
			if !contains(field, partner) && !contains(partner, field) {
				pairs = append(pairs, [2]Case{choose(field), choose(partner)})
				break
			}
		}
	}
	return pairs
}

func contains(outer, inner string) bool {
	return inner == outer || strings.HasPrefix(inner, outer+".") || strings.HasPrefix(inner, outer+"[].")
}

// FieldsWith returns the paths of the fields whose values contain a word or are
// empty texts, with those of the objects and lists around them. In the base of
// an operation, these fields name the object: an association with an empty user
// is that of an account.
func FieldsWith(body, word string) ([]string, error) {
	doc, err := decode(body)
	var fields []string
	fieldsWith("", doc, word, &fields)
	return fields, err
}

// fieldsWith reports whether doc contains the word or an empty text.
func fieldsWith(at string, doc any, word string, fields *[]string) (found bool) {
	switch doc := doc.(type) {
	case map[string]any:
		for name, value := range doc {
			if field := strings.TrimPrefix(at+"."+name, "."); fieldsWith(field, value, word, fields) {
				*fields = append(*fields, field)
				found = true
			}
		}
	case []any:
		for _, value := range doc {
			found = fieldsWith(at+"[]", value, word, fields) || found
		}
	case string:
		found = doc == "" || strings.Contains(doc, word)
	}
	return found
}
