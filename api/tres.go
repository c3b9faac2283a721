package api

import (
	"errors"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// TRES declares the fields of a trackable resource. In some lists, each
// resource also has an amount.
var TRES = schema.Object("tres", func() schema.Fields[model.TRES] {
	return schema.Fields[model.TRES]{
		schema.F("type", schema.String, func(t *model.TRES) *string { return &t.Type }, "Type, such as cpu or gres", schema.Required(0)),
		schema.F("name", schema.String, func(t *model.TRES) *string { return &t.Name }, "Name of the resource, if there are several of the type"),
		schema.F("id", schema.Int32, func(t *model.TRES) *uint32 { return &t.ID }, "Number of the resource", schema.Bare),
		schema.GetSet("count", schema.Int64, func(t *model.TRES) int64 { return int64(t.Count) }, setCount, "Number of units (MiB for memory); 0 in a list of resources", schema.Count),
	}
})

// setCount sets the count of a limit. The count -1 removes the limit.
func setCount(t *model.TRES, n int64) error {
	if n < -1 {
		return errors.New("expected a number of units, or -1 for no limit")
	}
	t.Count = uint64(n)
	return nil
}

// amounts is the type of a list of amounts of trackable resources.
var amounts = schema.Named("tres_list", schema.List(TRES.Type))

// TRESAnswer is an answer with trackable resources.
type TRESAnswer struct {
	TRES schema.Stream[model.TRES]
	Envelope
}

// TRESList declares the fields of a TRESAnswer.
var TRESList = enveloped("openapi_tres_resp", func(a *TRESAnswer) *Envelope { return &a.Envelope },
	schema.F("TRES", schema.Named("tres_list", schema.StreamOf(TRES.Type)), func(a *TRESAnswer) *schema.Stream[model.TRES] { return &a.TRES }, "The trackable resources", schema.Required(0)),
)

// GetTRES lists the trackable resources.
var GetTRES = declare(noParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "tres/", ID: "get_tres",
	Doc: "List the trackable resources", Answer: TRESList,
	Description: "Returns all trackable resources (TRES), whose use is counted and can be limited. Each has the id by which other records refer to it.",
	AnswerDoc:   "The trackable resources",
})
