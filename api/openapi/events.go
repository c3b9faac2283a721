package openapi

import "schedrestd/api"

// eventsDescription describes the stream of events of an operation that has one.
// It is a part of the operation's description, which is in all documents.
func eventsDescription(e *api.Endpoint) string {
	if e.Collection == "" {
		return ""
	}
	return "With `Accept: text/event-stream` the answer is a stream of server-sent events, whose data is JSON. " +
		"First comes the list, in one or several events `snapshot`: {\"" + e.Collection + "\": […], \"more\": true}; in the last one, more is false. " +
		"Then each change of what the list shows is an event: `added` and `changed` contain the record, and `removed` contains its " + keyOf(e) + ". " +
		"After an event with an id, the client knows the whole list. If it comes back with this id in Last-Event-ID, it gets only the changes since then. " +
		"If the gateway no longer knows them, it sends the event `reset` and then the list. " +
		"If the gateway ends the stream, the last event is `end`: {\"reason\": …}."
}

// keyOf returns the name of the field that identifies a record of the list.
func keyOf(e *api.Endpoint) string {
	if e == api.GetJobs.Endpoint {
		return "job_id"
	}
	return "name"
}

// text writes the media types of an answer that is text, of which a document for
// generators lists only the first.
func (d *writer) text() {
	d.Key("content")
	d.BeginObject()
	kinds := []string{"text/plain"}
	if d.Served {
		kinds = append(kinds, "text/event-stream")
	}
	for _, kind := range kinds {
		d.textMedia(kind, "")
	}
	d.EndObject()
}

// textMedia writes a media type whose content is text, and its example unless that
// is "".
func (d *writer) textMedia(kind, example string) {
	d.Key(kind)
	d.BeginObject()
	d.Key("schema")
	d.BeginObject()
	d.pair("type", "string")
	d.EndObject()
	if example != "" {
		d.pair("example", example)
	}
	d.EndObject()
}

// events writes the media type of a stream of events. Generators give the answer
// of an operation the type of all its media types together, so that a program
// could no longer read the list without a check. So only a gateway's own document
// has this media type, and only in the spelling that clients of slurmrestd do not
// use.
func (d *writer) events(collection string) {
	d.textMedia("text/event-stream", "event: snapshot\nid: 9A7LC1KDWaIpLMUj1YABhg\ndata: {\""+collection+"\":[],\"more\":false}\n\n")
}
