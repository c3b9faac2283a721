package openapi

import (
	"schedrestd/api"
	"schedrestd/api/schema"
)

// apiDescription is the description of the whole API.
const apiDescription = `Query a cluster's controller and its accounting daemon, and submit jobs.

Every answer, including that of a failed request, has meta, errors and warnings. A number that may be unset or unlimited is an object {set, infinite, number}; requests may contain a plain number instead. If a value in a request is interpreted differently than intended, a warning in the answer names its place.`

func tagDoc(e *api.Endpoint) string {
	if e.Util {
		return "Asks no daemon"
	}
	if e.Accounting {
		return "Requests to the accounting daemon"
	}
	return "Requests to the controller"
}

// describe returns the description of a field, with its unit.
func describe(p schema.Property) string {
	unit, known := units[p.Unit]
	if !known {
		unit = "in " + p.Unit
	}
	if unit == "" {
		return p.Doc
	}
	return p.Doc + ", " + unit
}

// units has the text for each unit. Counts and numbers without a unit have no
// text.
var units = map[string]string{
	"":               "",
	schema.CountUnit: "",
	schema.BareUnit:  "",
	"s":              "in seconds",
	"min":            "in minutes",
	"µs":             "in microseconds",
	"B":              "in bytes",
	"W":              "in watts",
	"J":              "in joules",
	api.UnixTime:     "in seconds since 1970-01-01 00:00 UTC",
}
