package api

import (
	"fmt"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// Parameters are declared like the fields of bodies. Every parameter is a
// string in the documents, as clients of slurmrestd expect.

// NoParams is the type of the parameters of an endpoint that has none.
type NoParams struct{}

var noParams = schema.Object[NoParams]("", func() schema.Fields[NoParams] { return nil })

// listFields returns the parameters of lists that are no filters.
func listFields[P any](at func(*P) *model.Query) schema.Fields[P] {
	return schema.Fields[P]{updateTime(at), flags(at)}
}

func updateTime[P any](at func(*P) *model.Query) schema.Field[P] {
	return schema.F("update_time", instant, func(p *P) *model.Time { return &at(p).Since },
		"Return 304 if nothing has changed since this time", schema.Unit(TimeText))
}

func flags[P any](at func(*P) *model.Query) schema.Field[P] {
	return flagsWithDefault("all records", at)
}

// flagsWithDefault returns the parameter "flags", with a description that ends
// with defaultDoc.
func flagsWithDefault[P any](defaultDoc string, at func(*P) *model.Query) schema.Field[P] {
	return schema.F("flags", localFlags, func(p *P) *uint16 { return (*uint16)(&at(p).Flags) },
		"Additional information to show; words separated by commas. Default: "+defaultDoc)
}

// localFlags returns the type of a set of showFlags. A controller has only the
// records of its own cluster: in a federation, a client such as squeue asks each
// controller.
func localFlags() schema.Type[uint16] { return localFlagsType{joinedWords[uint16]{showFlags}} }

type localFlagsType struct{ joinedWords[uint16] }

func (t localFlagsType) Parser(v schema.View) func(*schema.Report, *schema.Value, *uint16) bool {
	parse := t.joinedWords.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *uint16) bool {
		ok := parse(r, doc, into)
		if ok && model.Show(*into)&model.ShowFederation != 0 {
			r.Warn(doc, "FEDERATION has no effect: the answer has no records of other clusters")
		}
		return ok
	}
}

// asList returns the type of a parameter that is a comma-separated list. If a
// client sends the parameter more than once, the lists are joined.
func asList[T any](parse func(string) (T, error)) schema.Type[T] {
	text := asText(parse)
	parseOne := text.Parser(schema.View{})
	return schema.Simple(text.Shape(schema.View{}), text.Renderer(schema.View{}),
		func(r *schema.Report, v *schema.Value, into *T) bool { return parseOne(r, joinValues(v), into) })
}

// joinValues joins the values of a parameter with commas.
func joinValues(v *schema.Value) *schema.Value {
	if v.Kind != schema.Array {
		return v
	}
	var values []string
	for i := range v.Items {
		values = append(values, v.Items[i].Text)
	}
	return &schema.Value{Kind: schema.Text, Key: v.Key, Text: strings.Join(values, ","), Untyped: true}
}

// asText returns the type of a parameter that is parsed from a string. Answers
// never contain such a parameter.
func asText[T any](parse func(string) (T, error)) schema.Type[T] {
	return schema.Simple(&schema.Shape{Kind: "string"}, func(e schema.Encoder, _ *T) { e.Null() }, parseAsText(parse))
}

// parseAsText returns the parser of a parameter that is parsed from a string.
func parseAsText[T any](parse func(string) (T, error)) func(*schema.Report, *schema.Value, *T) bool {
	return func(r *schema.Report, v *schema.Value, into *T) bool {
		if v.Kind == schema.Array {
			return r.Error(v, "set more than once")
		}
		var s string
		if !schema.ParseText(r, v, &s) {
			return false
		}
		value, err := parse(s)
		if err != nil {
			return r.Error(v, "%v", err)
		}
		*into = value
		return true
	}
}

// noSuch returns the error for the name of an object that does not exist.
func noSuch(kind, name string) error {
	return fmt.Errorf("there is no %s %q", kind, schema.Shorten(name))
}

// signalNumber returns the type of a signal. Clients send its name or number.
func signalNumber() schema.Type[model.Opt[uint16]] {
	return asText(func(s string) (model.Opt[uint16], error) {
		n, err := parseSignal(s)
		return model.Some(n), err
	})
}

// oneJob returns the type of a path segment that names a job, a task such as
// "12_3", or a component such as "12+1". "12_*" means all tasks of job 12.
func oneJob() schema.Type[model.JobSelection] {
	return asText(func(s string) (model.JobSelection, error) {
		sel, err := jobSelection(s)
		if err != nil {
			err = noSuch("job", s)
		}
		return sel, err
	})
}

// jobName returns the type of a path segment that names a job, a task such as
// "12_3", several tasks such as "12_[1-3]", or a component such as "12+1".
func jobName() schema.Type[string] {
	return asText(func(s string) (string, error) {
		if s == "" || s[0] < '0' || s[0] > '9' || strings.Trim(s, "0123456789_+[],-") != "" {
			return "", noSuch("job", s)
		}
		return s, nil
	})
}

// joined returns the type of a set of words that a client sends as one
// comma-separated string.
func joined[T schema.Integer](set *schema.WordSet[T]) func() schema.Type[T] {
	return func() schema.Type[T] { return joinedWords[T]{set} }
}

type joinedWords[T schema.Integer] struct{ *schema.WordSet[T] }

func (w joinedWords[T]) Shape(v schema.View) *schema.Shape { return w.WordSet.Shape(v).Items }

func (w joinedWords[T]) Parser(v schema.View) func(*schema.Report, *schema.Value, *T) bool {
	parse := w.WordSet.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *T) bool { return parse(r, joinValues(doc), into) }
}
