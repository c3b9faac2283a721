package openapi

import (
	"schedrestd/api"
	"schedrestd/api/schema"
)

// about is the document's own description.
const about = `Ask a cluster's controller and its accounting daemon, and submit jobs.

Every answer, of a failure too, has meta, errors and warnings. A number that may be missing or without limit is an object {set, infinite, number}; in requests a plain number is taken for it. A request that is taken differently than it was meant is answered with warnings that name the place.`

func tagDoc(e *api.Endpoint) string {
	if e.Util {
		return "Asks no daemon"
	}
	if e.Accounting {
		return "Asks the accounting daemon"
	}
	return "Asks the controller"
}

// describe is what a field means, with its unit.
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

// units are the words for units. A number of things, or one without a unit, has none.
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
