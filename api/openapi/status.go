package openapi

import (
	"slices"

	"schedrestd/internal/feature"
)

// statuses returns the requested statuses, or the default ones, without
// duplicates. Linters recommend ranges such as 4XX, but statuses adds none:
// from a document with a range, the generators orval and oazapfts produce code
// that does not compile.
func statuses(requested []string) []string {
	if len(requested) == 0 {
		requested = feature.DefaultStatuses
	}
	var list []string
	for _, s := range requested {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// isSuccess reports whether s is a success status.
func isSuccess(s string) bool { return s[0] == '2' }

func (d *writer) responses(op operation) {
	d.BeginObject()
	for _, status := range d.statuses {
		d.Key(status)
		d.BeginObject()
		switch {
		case isSuccess(status):
			d.pair("description", op.AnswerDoc)
			if op.Text {
				d.text()
				break
			}
			d.contentWith(op.view, "", op.Collection, op.CSV, op.answer)
		case status == "default" && !d.lists(isSuccess):
			d.pair("description", op.AnswerDoc+"; otherwise see errors")
			d.contentWith(op.view, "", op.Collection, op.CSV, op.answer, op.failure)
		case status[0] == '1' || status == "304":
			d.pair("description", statusDoc(status)) // has no body
		default:
			d.pair("description", statusDoc(status))
			d.content(op.view, "", "", op.failure)
		}
		d.EndObject()
	}
	d.EndObject()
}

// statusDoc returns the description of a status.
func statusDoc(status string) string {
	if doc := statusDocs[status]; doc != "" {
		return doc
	}
	return "An error occurred; see errors"
}

var statusDocs = map[string]string{
	"304":     "Nothing has changed since update_time, or since the answer with the entity tag in If-None-Match; the response has no body",
	"400":     "The request is malformed; see errors",
	"401":     "The credential is missing or invalid",
	"403":     "The daemon denies permission",
	"404":     "The path or the requested object does not exist",
	"405":     "The path does not support this method; the Allow header lists the supported ones",
	"406":     "None of the formats in the Accept header is supported",
	"408":     "The client did not send the request in time",
	"409":     "The request conflicts with the current state",
	"413":     "The body is too large",
	"414":     "The request line is too long",
	"415":     "The format of the body is not supported",
	"422":     "A value in the request is invalid; source names the field",
	"429":     "Too many requests; the Retry-After header says when to retry",
	"431":     "The headers are too large",
	"4XX":     "The request is invalid; see errors",
	"500":     "Internal error of the gateway",
	"501":     "The daemon does not support this operation",
	"502":     "The daemon's answer is invalid",
	"503":     "The daemon is unavailable; the Retry-After header says when to retry",
	"504":     "The daemon did not answer in time",
	"5XX":     "The request failed; errors say whether to retry",
	"default": "An error occurred; see errors",
}
