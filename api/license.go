package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// License declares the fields of a license.
var License = schema.Object("license", func() schema.Fields[model.License] {
	return schema.Fields[model.License]{
		schema.F("LicenseName", schema.String, func(l *model.License) *string { return &l.Name }, "Name of the license"),
		schema.F("Total", schema.Int32, func(l *model.License) *uint32 { return &l.Total }, "Total number of licenses", schema.Count),
		schema.F("Used", schema.Int32, func(l *model.License) *uint32 { return &l.InUse }, "Number of licenses in use by jobs", schema.Count),
		schema.Show("Free", schema.Int32, freeLicenses, "Number of free licenses", schema.Count),
		schema.F("Remote", schema.Boolean, func(l *model.License) *bool { return &l.Remote }, "Whether the accounting daemon manages the license"),
		schema.F("Reserved", schema.Int32, func(l *model.License) *uint32 { return &l.Reserved }, "Number of licenses that reservations hold", schema.Count),
		schema.F("LastConsumed", schema.Int32, func(l *model.License) *uint32 { return &l.LastConsumed }, "Number of licenses in use anywhere, according to the last report of the license server", schema.Count),
		schema.F("LastDeficit", schema.Int32, func(l *model.License) *uint32 { return &l.LastDeficit }, "Number of licenses in use by others, computed from the last report of the license server", schema.Count),
		schema.F("LastUpdate", seconds, func(l *model.License) *model.Time { return &l.LastUpdate }, "Time of the license server's last report", schema.Unit(UnixTime)),
		schema.F("Nodes", schema.String, func(l *model.License) *string { return &l.Nodes }, "Nodes on which the licenses can be used, as a host list; empty for all", schema.Since(V44)),
	}
})

// freeLicenses returns the number of free licenses. It returns 0 if the total
// has shrunk below the number in use.
func freeLicenses(l *model.License) uint64 {
	used := uint64(l.InUse) + uint64(l.LastDeficit)
	return uint64(l.Total) - min(used, uint64(l.Total))
}

// LicensesAnswer is an answer with licenses. LastUpdate is valid only after all
// licenses have been read from the stream.
type LicensesAnswer struct {
	Licenses   schema.Stream[model.License]
	LastUpdate model.Time
	Envelope
}

// Licenses declares the fields of a LicensesAnswer.
var Licenses = enveloped("openapi_licenses_resp", func(a *LicensesAnswer) *Envelope { return &a.Envelope },
	schema.F("licenses", schema.Named("licenses", schema.StreamOf(License.Type)), func(a *LicensesAnswer) *schema.Stream[model.License] { return &a.Licenses }, "The licenses", schema.Required(0)),
	schema.F("last_update", moment, func(a *LicensesAnswer) *model.Time { return &a.LastUpdate }, "Time of the last change of any object in the list", schema.Unit(UnixTime), schema.Required(0)),
)

var GetLicenses = declare(scope.ComputeRead, noParams, Endpoint{
	Method: http.MethodGet, Path: "licenses/", ID: "get_licenses", Paged: true,
	Doc: "List the licenses", Answer: Licenses,
	Description: "Returns all licenses that the controller counts, and how many of each are free.",
	AnswerDoc:   "The licenses",
})
