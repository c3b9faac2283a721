// Package openapi writes the document that describes the REST surface, for people and for the
// programs that generate clients. Everything in it comes from the tables of package api; this
// package knows no endpoint and no field.
//
// The document is OpenAPI 3.0.3, not 3.1: clients of slurmrestd are generated from 3.0.3, and the
// generators for Go support only parts of 3.1. It is written piece by piece to a schema.Encoder, so
// JSON and YAML have the same code. The same Options give the same bytes.
//
// The flags of an API version determine which schemas have a name, and which are written where
// they are used: see policy.
package openapi

import (
	"slices"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/errs"
	"schedrestd/feature"
)

// Version is that of the OpenAPI specification.
const Version = "3.0.3"

// Options say what a document describes.
type Options struct {
	Parsers  []feature.Parser // API versions, with their flags
	Names    api.Names        // spellings
	Content  feature.Content  // which paths
	Auth     feature.Auth     // ways to authenticate
	Statuses []string         // responses that each operation lists, "200", "4XX", "default"; nil: feature.DefaultStatuses
	Release  string           // of this program
	YAML     bool             // bodies may be YAML too, not JSON alone
}

// Check refuses options of which no sound document can be made.
func (o Options) Check() error {
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

// Document is a document ready to be written, any number of times.
type Document struct {
	Options
	statuses   []string
	operations []operation
	schemas    schemas
}

// New collects what a document describes, which is most of the work.
func New(o Options) (*Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	d := &Document{Options: o, statuses: statuses(o.Statuses)}
	d.collect()
	return d, nil
}

// Write writes the document to e. Whether that went well is e's to tell.
func (d *Document) Write(e schema.Encoder) { (&writer{e, d}).write() }

// writer is a document on its way.
type writer struct {
	schema.Encoder
	*Document
}

// operation is an endpoint in one View.
type operation struct {
	*api.Endpoint
	view    schema.View
	params  *schema.Shape
	request *schema.Shape // nil: none
	answer  *schema.Shape
	failed  *schema.Shape // schema of the answer to a failed request
}

// collect lists the operations, oldest version first within each spelling, and their schemas.
func (d *Document) collect() {
	d.schemas = newSchemas(d.Parsers)
	for i, names := range d.Names.Spellings() {
		for _, p := range d.Parsers {
			view := schema.View{Version: schema.Version(p.Version), Names: names}
			failed := api.Empty.Shape(view)
			for _, e := range api.Endpoints {
				if !e.In(view.Version) || !d.serves(e) || e.Util && i < len(d.Names.Spellings())-1 { // one path in both spellings: Slurm's, where it is served
					continue
				}
				op := operation{Endpoint: e, view: view, params: e.Params.Shape(view), answer: e.Answer.Shape(view), failed: failed}
				d.schemas.body(view, op.answer)
				if e.Request != nil {
					op.request = e.Request.Shape(view)
					d.schemas.body(view, op.request)
				}
				d.operations = append(d.operations, op)
			}
			if d.lists(func(status string) bool { return !good(status) }) {
				d.schemas.body(view, failed)
			}
		}
	}
	d.schemas.name()
}

func (d *Document) serves(e *api.Endpoint) bool {
	if e.Accounting {
		return d.Content.Has(feature.Accounting)
	}
	return d.Content.Has(feature.Controller)
}

// lists reports whether each operation lists such a response.
func (d *Document) lists(such func(status string) bool) bool {
	return slices.ContainsFunc(d.statuses, such)
}
