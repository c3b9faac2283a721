// Package openapi writes the OpenAPI document of the REST API, for people and
// for programs that generate clients. The contents of the document come from
// the tables in package api. Package openapi contains no code for particular
// endpoints or fields.
//
// The document follows OpenAPI 3.0.3, not 3.1. Clients of slurmrestd are
// generated from 3.0.3 documents, and the generators for Go support only parts
// of 3.1. The document is written piece by piece to a schema.Encoder, so that
// the same code writes JSON and YAML. The same Options always produce the same
// bytes.
//
// A schema that has a name is written once, in the document's components. Other
// schemas are written wherever they are used. Which schemas have names depends
// on the API version and its flags (see policy).
package openapi

import (
	"slices"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
)

// documentVersion is the version of the OpenAPI specification.
const documentVersion = "3.0.3"

// Options select the contents of a document.
type Options struct {
	Parsers    []feature.Parser          // API versions, with their flags
	Names      api.Names                 // spellings
	Content    feature.Content           // groups of paths
	Auth       feature.Auth              // authentication methods
	Deprecated func(schema.Version) bool // whether clients should no longer use a version; nil for none
	Statuses   []string                  // statuses of each operation's responses, such as "200" or "4XX"; nil means feature.DefaultStatuses
	Release    string                    // release of this program
	Served     bool                      // the document lists all media types that a gateway serves, not only JSON
}

// check returns an error if one of the statuses is invalid, or if the document
// would have no paths.
func (o Options) check() error {
	for _, status := range o.Statuses {
		if err := feature.CheckStatus("the document", status); err != nil {
			return err
		}
	}
	if len(o.Parsers) == 0 || len(o.Names.Spellings()) == 0 || o.Content == 0 {
		return errs.New(errs.Invalid, "the document would have no paths")
	}
	return nil
}

// Document is a document that can be written repeatedly.
type Document struct {
	Options
	statuses   []string
	operations []operation
	schemas    schemas
}

// New collects the contents of a document. Most of the work is done here, not
// in Write.
func New(o Options) (*Document, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	d := &Document{Options: o, statuses: statuses(o.Statuses)}
	d.collect()
	return d, nil
}

// Write writes the document to the Encoder e, which keeps the first error.
func (d *Document) Write(e schema.Encoder) { (&writer{e, d}).write() }

// writer writes a document to an Encoder.
type writer struct {
	schema.Encoder
	*Document
}

// operation is an endpoint in one View.
type operation struct {
	*api.Endpoint
	view    schema.View
	preview bool // in a version that is a preview
	params  []schema.Property
	request *schema.Shape // schema of the request's body; nil for none
	answer  *schema.Shape
	failure *schema.Shape // schema of the answer to a failed request
}

// collect collects the operations and their schemas. Within each spelling,
// older versions come first.
func (d *Document) collect() {
	d.schemas = newSchemas(d.Parsers)
	spellings := d.Names.Spellings()
	for i, spelling := range spellings {
		for _, p := range d.Parsers {
			view := schema.View{Version: schema.Version(p.Version), Spelling: spelling}
			failure := api.Empty.Shape(view)
			for _, e := range api.Endpoints {
				if !e.InView(view) || !d.serves(e) {
					continue
				}
				if e.Util && i < len(spellings)-1 {
					continue // its path is the same in all spellings: list it only for the last one
				}
				op := operation{
					Endpoint: e, view: view, preview: p.Preview(),
					params: e.Parameters(view), answer: e.Answer.Shape(view), failure: failure,
				}
				d.schemas.addBody(view, op.answer)
				if e.Request != nil {
					op.request = e.Request.Shape(view)
					d.schemas.addBody(view, op.request)
				}
				if d.lists(func(status string) bool { return !isSuccess(status) }) {
					d.schemas.addBody(view, failure)
				}
				d.operations = append(d.operations, op)
			}
		}
	}
	d.schemas.assignNames()
}

func (d *Document) serves(e *api.Endpoint) bool {
	switch {
	case e.Util:
		return d.Content.Has(feature.Util)
	case e.Accounting:
		return d.Content.Has(feature.Accounting)
	}
	return d.Content.Has(feature.Controller)
}

// lists reports whether the document has a response with a status for which
// match returns true.
func (d *Document) lists(match func(status string) bool) bool {
	return slices.ContainsFunc(d.statuses, match)
}
