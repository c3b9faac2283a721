package api

import (
	"strings"
	"unicode"

	"schedrestd/api/schema"
)

// Changes is a request to create or change records. A GET of the same path
// returns records in the same form.
type Changes[T any] struct{ Records []T }

// changes declares the fields of a Changes. As in slurmrestd's documents, the
// request has the same schema as the answer to a GET of the same path.
func changes[T any](schemaName, field, list string, elem func() schema.Type[T], doc string) *schema.ObjectType[Changes[T]] {
	return schema.Object(schemaName, func() schema.Fields[Changes[T]] {
		return append(schema.Fields[Changes[T]]{
			schema.F(field, schema.Named(list, schema.List(elem)), func(c *Changes[T]) *[]T { return &c.Records }, doc, schema.Required(0)),
		}, unusedEnvelope[Changes[T]]()...)
	})
}

// unusedEnvelope returns the fields of an answer's envelope, for a request that
// has the same schema as an answer. In the request these fields have no effect.
// Their descriptions are written for the answer.
func unusedEnvelope[O any]() schema.Fields[O] {
	return schema.Fields[O]{
		schema.Show("meta", metaType.Type, func(*O) (none Meta) { return none }, "The server and client of this request"),
		schema.Show("errors", schema.Named("openapi_errors", schema.List(errorType.Type)), func(*O) []Error { return nil }, "Errors; empty on success"),
		schema.Show("warnings", schema.Named("openapi_warnings", schema.List(warningType.Type)), func(*O) []Warning { return nil }, "Warnings, for example about ignored values of the request"),
	}
}

// ignoredEnvelope returns the fields of an answer's envelope, for a request
// that does not share its schema with an answer. In slurmrestd's documents,
// such requests have these fields, too.
func ignoredEnvelope[O any]() schema.Fields[O] {
	const doc = "Ignored in requests; part of answers"
	return schema.Fields[O]{
		schema.Ignore[O]("meta", metaType.Type, doc),
		schema.Ignore[O]("errors", schema.Named("openapi_errors", schema.List(errorType.Type)), doc),
		schema.Ignore[O]("warnings", schema.Named("openapi_warnings", schema.List(warningType.Type)), doc),
	}
}

// withInitial returns a type like typ, but its parser first sets the value to
// initial(). Fields that the request lacks keep their initial values.
func withInitial[T any](typ func() schema.Type[T], initial func() T) func() schema.Type[T] {
	return func() schema.Type[T] { return initialType[T]{typ(), initial} }
}

type initialType[T any] struct {
	schema.Type[T]
	initial func() T
}

func (t initialType[T]) Parser(v schema.View) func(*schema.Report, *schema.Value, *T) bool {
	parse := t.Type.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *T) bool {
		*into = t.initial()
		return parse(r, doc, into)
	}
}

// RemovedAnswer has the accounting daemon's descriptions of the records that a
// request removed.
type RemovedAnswer struct {
	Names []string
	Envelope
}

// stringList is a JSON list of strings, such as the names of removed records.
var stringList = schema.Named("string_list", schema.List(schema.String))

// names returns the type of a list of names in a request. Like slurmrestd, its
// parser also accepts a single text with commas between the names. A name in an
// array must not contain a comma: no command of Slurm can name such a record.
func names(typ func() schema.Type[[]string]) func() schema.Type[[]string] {
	return func() schema.Type[[]string] { return namesType{typ()} }
}

type namesType struct{ schema.Type[[]string] }

// NameFault returns the reason why no new record may have a name, or "". No
// command of Slurm can name a record with a comma, and each line of a command's
// output is a record. slurmdbd would store the beginning of a longer name, which
// may be the name of another record.
func NameFault(name string) string {
	switch {
	case strings.Contains(name, ","):
		return "a name must not contain a comma"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "a name must not contain a control character"
	case len(name) > maxName:
		return "a name may have at most 255 bytes"
	}
	return ""
}

const maxName = 255 // bytes of a TINYTEXT

func (t namesType) Parser(v schema.View) func(*schema.Report, *schema.Value, *[]string) bool {
	parse := t.Type.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *[]string) bool {
		if !parse(r, doc, into) {
			return false
		}
		if doc.Kind != schema.Array && strings.Contains(doc.Text, ",") {
			if *into = words(doc.Text); len(*into) == 0 {
				return r.Error(doc, "expected names, got %q", schema.Shorten(doc.Text))
			}
		}
		for _, name := range *into {
			if fault := NameFault(name); fault != "" {
				return r.Error(doc, "%s", fault)
			}
		}
		return true
	}
}

func removed(schemaName, field, doc string, opts ...schema.Option) *AnswerType[RemovedAnswer] {
	return enveloped(schemaName, func(a *RemovedAnswer) *Envelope { return &a.Envelope },
		schema.F(field, stringList, func(a *RemovedAnswer) *[]string { return &a.Names }, doc, append(opts, schema.Required(0))...))
}

// AddedAnswer has the accounting daemon's description of the records that a
// request added.
type AddedAnswer struct {
	Added string
	Envelope
}

func added(schemaName, field, doc string) *AnswerType[AddedAnswer] {
	return enveloped(schemaName, func(a *AddedAnswer) *Envelope { return &a.Envelope },
		schema.F(field, schema.String, func(a *AddedAnswer) *string { return &a.Added }, doc, schema.Required(0)))
}
