package api

import (
	"slices"
	"strings"
	"sync"

	"schedrestd/api/schema"
)

// Envelope has the fields that all answers have in common.
type Envelope struct {
	Meta     Meta
	Errors   []Error
	Warnings []Warning
}

// Error describes one failure.
type Error struct {
	Description string // for people
	Number      int    // Slurm's error number, or 0
	Name        string // Slurm's text for Number; if Number is 0, the text of the HTTP status
	Source      string // place in the request, such as "#/job/tasks" or "query/flags"; or the operation that failed
	Code        string // stable identifier for programs
	Retryable   bool   // whether the same request may succeed later
}

// Warning describes a value that the gateway ignored, or did not take
// literally.
type Warning struct {
	Description string
	Source      string
}

// Meta describes the server that sent an answer, and the client that made the
// request.
type Meta struct {
	Accounting bool   // whether the accounting daemon serves the endpoint
	Util       bool   // whether the endpoint needs no daemon
	Version    string // "v0.0.42"
	Storage    bool   // whether accounting is in use
	Source     string // address of the client
	User       string
	Group      string
	Release    string // this program's release, such as "1.2.3"; used in answers in our own spelling
	Controller string // the controller's release, used in answers in Slurm's spelling; "" if unknown
	Cluster    string
	Continue   string // token for the next page of a list; "" for none
}

// metaType declares the fields of Meta. In this project's spelling, some names
// and values differ from those in Slurm's spelling.
var metaType = schema.Object("openapi_meta", func() schema.Fields[Meta] {
	return schema.Fields[Meta]{
		schema.Group("plugin", "Part of the API that served the request", schema.Fields[Meta]{
			schema.Show("type", spelled, (*Meta).content, "Group of operations to which this one belongs"),
			schema.Show("name", schema.String, (*Meta).contentName, "Short name of this group"),
			schema.Show("data_parser", schema.String, func(m *Meta) string { return "data_parser/" + m.Version }, "API version"),
			schema.Show("accounting_storage", spelled, (*Meta).storage, "Kind of accounting in use; empty for none"),
		}),
		schema.Group("client", "The client", schema.Fields[Meta]{
			schema.F("source", schema.String, func(m *Meta) *string { return &m.Source }, "Address of the client"),
			schema.F("user", schema.String, func(m *Meta) *string { return &m.User }, "User of the request"),
			schema.F("group", schema.String, func(m *Meta) *string { return &m.Group }, "Group of the request"),
		}),
		schema.Show("command", stringArray, func(*Meta) []string { return nil }, "Always empty"),
		schema.Group(fieldMetaProduct.sched, "Program that answered: this gateway, or in the Slurm-compatible spelling the controller", schema.Fields[Meta]{
			schema.Group("version", "Parts of the release number", schema.Fields[Meta]{
				schema.Show("major", spelled, func(m *Meta) name { return m.part(0) }, "First part"),
				schema.Show("micro", spelled, func(m *Meta) name { return m.part(2) }, "Third part"),
				schema.Show("minor", spelled, func(m *Meta) name { return m.part(1) }, "Second part"),
			}),
			schema.Show("release", spelled, func(m *Meta) name { return name{m.Release, m.Controller} }, "Release of the program"),
			schema.F("cluster", schema.String, func(m *Meta) *string { return &m.Cluster }, "Name of the cluster"),
		}, schema.InSlurm(fieldMetaProduct.slurm)),
		schema.OmitIf(schema.F("continue", schema.String, func(m *Meta) *string { return &m.Continue }, "Token for the next page of the list; absent if there is none", schema.Extension),
			func(m *Meta) bool { return m.Continue == "" }),
	}
})

func (m *Meta) content() name {
	if m.Util {
		return name{"openapi/util", "openapi/util"}
	}
	if m.Accounting {
		return pluginAccounting
	}
	return pluginController
}

func (m *Meta) contentName() string {
	if m.Util {
		return "util"
	}
	if m.Accounting {
		return "accounting"
	}
	return "controller"
}

func (m *Meta) storage() name {
	if !m.Storage {
		return name{}
	}
	return pluginStorage
}

// part returns part i of a release number, counted from 0. For example, part 1
// of the release 26.05 is 05. Answers in this project's spelling show this
// program's release. Answers in Slurm's spelling show the controller's release.
func (m *Meta) part(i int) name {
	partOf := func(release string) string {
		if parts := strings.SplitN(release, ".", 3); i < len(parts) {
			return parts[i]
		}
		return ""
	}
	return name{partOf(m.Release), partOf(m.Controller)}
}

var errorType = schema.Object("openapi_error", func() schema.Fields[Error] {
	return schema.Fields[Error]{
		schema.F("description", schema.String, func(e *Error) *string { return &e.Description }, "Description of the error"),
		schema.F("error_number", schema.Int32, func(e *Error) *int { return &e.Number }, "Slurm's error number; 0 if there is none", schema.Bare),
		schema.F("error", schema.String, func(e *Error) *string { return &e.Name }, "Short name of the error"),
		schema.F("source", schema.String, func(e *Error) *string { return &e.Source }, "Place in the request, or the operation that failed"),
		schema.F("code", schema.String, func(e *Error) *string { return &e.Code }, "Error code for programs; it does not change between releases", schema.Extension),
		schema.F("retryable", schema.Boolean, func(e *Error) *bool { return &e.Retryable }, "Whether the same request may succeed later", schema.Extension),
	}
})

var warningType = schema.Object("openapi_warning", func() schema.Fields[Warning] {
	return schema.Fields[Warning]{
		schema.F("description", schema.String, func(w *Warning) *string { return &w.Description }, "Description of the warning"),
		schema.F("source", schema.String, func(w *Warning) *string { return &w.Source }, "Place in the request"),
	}
})

// AnswerType declares the fields of an answer: those of its content, then those
// of its Envelope.
type AnswerType[O any] struct {
	*schema.ObjectType[O]
	at       func(*O) *Envelope
	failures sync.Map // by schema.View
	shapes   sync.Map // by schema.View; what Select has needed so far
}

// AnswerTable is the interface of every AnswerType, whatever its content.
type AnswerTable interface {
	Table

	// Failure returns a function that writes an answer without content, for
	// requests that failed or found nothing. If the endpoint's answers contain
	// a list, the function writes an empty list. Clients written in typed
	// languages require the list, and loop over it before they check for
	// errors.
	Failure(schema.View) func(schema.Encoder, *Envelope)

	// Select returns the part of an answer in which the records have only some
	// fields. The fields argument contains their paths, such as "time.limit".
	// The records are the first field of the answer: a list or one object.
	// Everything beside them is selected.
	Select(v schema.View, fields []string) (*schema.Selection, error)
}

// Failure implements AnswerTable.
func (t *AnswerType[O]) Failure(v schema.View) func(schema.Encoder, *Envelope) {
	if f, ok := t.failures.Load(v); ok {
		return f.(func(schema.Encoder, *Envelope))
	}
	f := failure(Empty, v)
	if kind := t.Shape(v).Fields[0].Shape.Kind; kind == "array" || kind == "string" {
		f = failure(t, v)
	}
	t.failures.Store(v, f)
	return f
}

// Select implements AnswerTable.
func (t *AnswerType[O]) Select(v schema.View, fields []string) (*schema.Selection, error) {
	known, ok := t.shapes.Load(v)
	if !ok {
		known, _ = t.shapes.LoadOrStore(v, t.Shape(v))
	}
	shape := known.(*schema.Shape)
	records, err := schema.Select(shape.Fields[0].Shape, fields)
	if err != nil {
		return nil, err
	}
	answer := schema.Whole(shape)
	answer.Replace(shape.Fields[0].Name, records)
	return answer, nil
}

func failure[O any](t *AnswerType[O], v schema.View) func(schema.Encoder, *Envelope) {
	render := t.Renderer(v)
	return func(e schema.Encoder, envelope *Envelope) {
		var zero O
		*t.at(&zero) = *envelope
		render(e, &zero)
	}
}

// enveloped declares an answer: the fields of its content, then the fields of
// its Envelope. The argument at is a function that returns the address of an
// answer's Envelope.
func enveloped[O any](schemaName string, at func(*O) *Envelope, content ...schema.Field[O]) *AnswerType[O] {
	return &AnswerType[O]{ObjectType: schema.Object(schemaName, func() schema.Fields[O] {
		content := slices.Clone(content)
		for i, f := range content {
			if name := schema.Name(f); name != "last_update" && name != "last_backfill" { // the others are what the entity tag is computed from
				content[i] = schema.Marked(f)
			}
		}
		return append(content,
			schema.F("meta", metaType.Type, func(o *O) *Meta { return &at(o).Meta }, "The server and client of this request"),
			schema.F("errors", schema.Named("openapi_errors", schema.List(errorType.Type)), func(o *O) *[]Error { return &at(o).Errors }, "Errors; empty on success"),
			schema.F("warnings", schema.Named("openapi_warnings", schema.List(warningType.Type)), func(o *O) *[]Warning { return &at(o).Warnings }, "Warnings, for example about ignored values of the request"),
		)
	}), at: at}
}

// EmptyAnswer is an answer without content. It answers many requests that
// change something, and requests that fail before the gateway knows their
// endpoint.
type EmptyAnswer struct{ Envelope }

// Empty declares the fields of an EmptyAnswer.
var Empty = enveloped("openapi_resp", func(a *EmptyAnswer) *Envelope { return &a.Envelope })
