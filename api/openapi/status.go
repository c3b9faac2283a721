package openapi

import (
	"slices"

	"schedrestd/plugin"
)

// statuses returns the responses to list, each once. None is added to those that were asked for:
// a range such as 4XX, which linters recommend, makes code that does not compile in orval and oazapfts.
func statuses(asked []string) []string {
	if len(asked) == 0 {
		asked = plugin.DefaultStatuses
	}
	var list []string
	for _, s := range asked {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// good tells whether s is the response to what went well.
func good(s string) bool { return s[0] == '2' }

// responses writes what is answered, by status.
func (d *writer) responses(op operation) {
	d.BeginObject()
	for _, status := range d.statuses {
		d.Key(status)
		d.BeginObject()
		switch {
		case good(status):
			d.pair("description", op.Returns)
			d.content(op.view, op.answer)
		case status == "default" && !d.lists(good):
			d.pair("description", op.Returns+"; or what went wrong, in errors")
			d.content(op.view, op.answer, op.failed)
		case status[0] == '1' || status == "304":
			d.pair("description", statusDoc(status)) // has no body
		default:
			d.pair("description", statusDoc(status))
			d.content(op.view, op.failed)
		}
		d.EndObject()
	}
	d.EndObject()
}

// statusDoc says what a status stands for here.
func statusDoc(status string) string {
	if doc := statusDocs[status]; doc != "" {
		return doc
	}
	return "What went wrong, in errors"
}

var statusDocs = map[string]string{
	"304":     "Nothing changed since update_time; there is no body",
	"400":     "The request can't be read; errors say where",
	"401":     "No credential, or none that is good",
	"403":     "The daemon does not allow it",
	"404":     "There is no such path, node or job",
	"405":     "The path does not have this method; the Allow header lists those it has",
	"406":     "No format that the client accepts can be written",
	"408":     "The request did not come in time",
	"409":     "It does not go together with the state things are in",
	"413":     "The body is too large",
	"414":     "The request line is too long",
	"415":     "The body is in a format that can't be read",
	"422":     "What is asked was understood and is not acceptable; source names the field",
	"429":     "Too much at once; the Retry-After header says when to come again",
	"431":     "The headers are too large",
	"4XX":     "The request can't be done as it is; errors say why",
	"500":     "A fault of the gateway",
	"501":     "The daemon does not know how",
	"502":     "The daemon's answer can't be understood",
	"503":     "The daemon can't be reached; the Retry-After header says when to come again",
	"504":     "The daemon does not answer in time",
	"5XX":     "It can't be done now; errors say whether to try again",
	"default": "What went wrong, in errors",
}
