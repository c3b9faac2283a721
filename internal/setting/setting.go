// Package setting declares what the administrator can choose for the parts of
// a worker that know nothing of its messages, such as the REST server. Package
// plan sets the fields, the worker's setup carries the structs as they are, and
// each part embeds its own struct in its configuration. So a new setting is a
// field here, a row among plan's variables, and the code that heeds it.
//
// A field is a flag, a number, a time, a text or a list of these: package work
// encodes the structs by the types of their fields.
package setting

import "time"

// REST holds the settings of the REST server.
type REST struct {
	Strict        bool          // a body with an unknown field is refused, even with +fast
	Origins       []string      // origins whose web pages may read the answers; nil for none
	MaxAge        time.Duration // age of lists that is accepted if a request does not say; 0 for none
	MaxWait       time.Duration // maximum time for which a request waits for a change; 0 if none waits
	WatchInterval time.Duration // minimum time between two requests to the controller for all that wait; 0 for a second
}

// Pages holds the settings of what is served besides the endpoints.
type Pages struct {
	Docs     bool     // the page at /docs is served
	Status   bool     // the page at /status is served
	Statuses []string // responses that the OpenAPI document lists, such as "200" or "default"; nil for feature.DefaultStatuses
}
