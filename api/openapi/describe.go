package openapi

import (
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// generalDescription is the description of both spellings.
const generalDescription = `Query a cluster's controller and its accounting daemon, and submit jobs.

Every answer, including that of a failed request, has meta, errors and warnings. A number that may be unset or unlimited is an object {set, infinite, number}; requests may contain a plain number instead. If the gateway ignores a value of a request or interprets it differently than written, a warning in the answer names its place.`

// apiDescription returns the description of the whole API, which names the
// previews among the versions, and includes the exceptions that name no
// operation.
func (d *writer) apiDescription() string {
	spellings := d.Names.Spellings()
	text := generalDescription
	for _, p := range d.Parsers {
		if p.Preview() {
			text += " " + p.Name() + " is a preview of Slurm " + feature.PreviewOf + " and may change until that release."
		}
	}
	for _, l := range api.Leniencies {
		if l.Operations != nil {
			continue
		}
		for _, s := range spellings {
			text += " "
			if len(spellings) > 1 {
				text += "In paths under /" + new(api.Endpoint).Segment(s) + "/: "
			}
			text += l.Sentence(s)
		}
	}
	return text
}

func tagDoc(e *api.Endpoint) string {
	if e.Util {
		return "Requests that need no daemon"
	}
	if e.Accounting {
		return "Requests to the accounting daemon"
	}
	return "Requests to the controller"
}

// describe returns the description of a field, including the unit. The unit is
// inserted before the first semicolon, or appended if there is none. An example
// is "Memory of each node, in MiB; 0 for no limit".
func describe(p schema.Property) string {
	unit, known := units[p.Unit]
	if !known {
		unit = "in " + p.Unit
	}
	if unit == "" || p.Ignored {
		return p.Doc
	}
	subject, remark, remarked := strings.Cut(p.Doc, ";")
	if remarked {
		return subject + ", " + unit + ";" + remark
	}
	return subject + ", " + unit
}

// units maps each unit to its text in descriptions. For counts and numbers
// without a unit, the text is empty.
var units = map[string]string{
	"":               "",
	schema.CountUnit: "",
	schema.BareUnit:  "",
	"h":              "in hours",
	"d":              "in days",
	"%":              "in percent",
	"s":              "in seconds",
	"min":            "in minutes",
	"µs":             "in microseconds",
	"B":              "in bytes",
	"W":              "in watts",
	"J":              "in joules",
	api.UnixTime:     "in seconds since 1970-01-01 00:00 UTC",
}
