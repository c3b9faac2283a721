package api

import (
	"math"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// TRES declares the fields of a trackable resource. In some lists, each
// resource also has an amount.
var TRES = schema.Object("tres", func() schema.Fields[model.TRES] {
	return schema.Fields[model.TRES]{
		schema.F("type", schema.String, func(t *model.TRES) *string { return &t.Type }, "Type, such as cpu or gres", schema.Required(0)),
		schema.F("name", schema.String, func(t *model.TRES) *string { return &t.Name }, "Name of the resource, if there are several of the type"),
		schema.F("id", schema.Int32, func(t *model.TRES) *uint32 { return &t.ID }, "Number of the resource", schema.Bare),
		schema.F("count", tresCount, func(t *model.TRES) *uint64 { return &t.Count }, "Number of units (MiB for memory; bytes for what a step has used); 0 in a list of resources. As a limit in a request, -1 or \"infinite\" removes the limit", schema.Count),
	}
})

// tresCount returns the type of a number of units of a trackable resource. As a
// limit, -1 and the word "infinite" mean noLimit.
func tresCount() schema.Type[uint64] {
	return schema.Simple(schema.Int64[int64]().Shape(schema.View{}),
		func(e schema.Encoder, n *uint64) { e.Int(int64(*n)) },
		func(r *schema.Report, doc *schema.Value, into *uint64) bool {
			if isInfinite(doc) {
				*into = noLimit
				return true
			}
			n, ok := schema.ParseInteger(r, doc, -1, math.MaxInt64)
			*into = uint64(n)
			return ok
		})
}

// amounts is the type of a list of amounts of trackable resources. In a
// request, an element without an amount has the count noCount.
var amounts = schema.Named("tres_list", schema.List(withInitial(TRES.Type, func() model.TRES { return model.TRES{Count: noCount} })))

// noCount marks an amount that a client did not send. To take it as 0 would
// permit nothing.
const noCount = noLimit - 1

// TRESAnswer is an answer with trackable resources.
type TRESAnswer struct {
	TRES schema.Stream[model.TRES]
	Envelope
}

// TRESList declares the fields of a TRESAnswer.
var TRESList = enveloped("openapi_tres_resp", func(a *TRESAnswer) *Envelope { return &a.Envelope },
	schema.F("TRES", schema.Named("tres_list", schema.StreamOf(TRES.Type)), func(a *TRESAnswer) *schema.Stream[model.TRES] { return &a.TRES }, "The trackable resources", schema.Required(0)),
)

var GetTRES = declare(scope.SlurmdbRead, noParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "tres/", ID: "get_tres", Paged: true,
	Doc: "List the trackable resources", Answer: TRESList,
	Description: "Returns all trackable resources (TRES), whose use is counted and can be limited. Each has the id by which other records refer to it.",
	AnswerDoc:   "The trackable resources",
})
