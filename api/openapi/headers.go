package openapi

import (
	"net/http"

	"schedrestd/api"
)

// header is a parameter in the header of a request.
type header struct {
	name, doc string
	maxLength int64 // 0 for no limit
}

// headers returns the headers that an operation accepts, beside those that
// authenticate the client.
func headers(e *api.Endpoint) (list []header) {
	if e.Keyed {
		list = append(list, header{api.HeaderKey, "A unique name for this request, such as a random UUID. If a client repeats the request with the same key within 24 hours, " +
			"the gateway repeats the first answer, with the header " + api.HeaderReplayed + ", and submits nothing. " +
			"A different request with the same key is answered with 422. If the gateway stores no keys, every request with a key is answered with 501", api.MaxKey})
	}
	if e.Waits() && e.Method == http.MethodGet {
		list = append(list, header{name: "If-None-Match",
			doc: "The ETag of an earlier answer. If the records are still the same, the answer is 304; with wait, only after this time"})
	}
	if e.Collection != "" {
		list = append(list, header{name: "Last-Event-ID",
			doc: "The last id in an earlier stream of events. The new stream then begins with the changes since this event"})
	}
	return list
}

func (d *writer) header(h header) {
	d.BeginObject()
	d.pair("name", h.name)
	d.pair("in", "header")
	d.pair("description", h.doc)
	d.Key("schema")
	d.BeginObject()
	d.pair("type", "string")
	if h.maxLength > 0 {
		d.Key("minLength")
		d.Int(1)
		d.Key("maxLength")
		d.Int(h.maxLength)
	}
	d.EndObject()
	d.EndObject()
}
