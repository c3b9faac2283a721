package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
)

// Cross-origin resource sharing (the CORS protocol of the Fetch standard) lets
// web pages of chosen origins read the gateway's answers. Browsers enforce it. It
// gives a page no authority over a UNIX socket: the page must have a token,
// because the gateway does not use the connection's user for a page (package
// auth). The gateway never allows credentials that a browser would add by itself,
// but this keeps only the answer from the page: behind a proxy that authenticates
// users, a page of a chosen origin may cause changes.

// The fields of a request that a page may set, apart from those that all pages
// may set, and the fields of an answer that it may read.
var (
	allowedFields = strings.Join([]string{
		"Authorization", "X-Slurm-User-Token", "X-Slurm-User-Name", "X-Sched-User-Token", "X-Sched-User-Name",
		"Accept", "Content-Type", "Content-Encoding", "Cache-Control", "If-Match", "If-None-Match",
		"Idempotency-Key", "Last-Event-ID", "Prefer", "Range", "Traceparent",
	}, ", ")
	exposedFields = strings.Join([]string{
		"Accept-Post", "Accept-Ranges", "Age", "Allow", "Content-Location", "Content-Range", "Deprecation", "ETag",
		api.HeaderReplayed, "Link", "Location", "Preference-Applied", "Retry-After", "Sunset", "WWW-Authenticate", scopesField, "X-Request-Id",
	}, ", ")
)

// preflightAge is how long a browser may remember the answer to a preflight
// request, in seconds. It is the most that Chromium accepts.
const preflightAge = "7200"

// shareWithOrigin adds the fields that let a page of an allowed origin read the
// answer. All answers depend on the origin, so caches must keep them apart.
func (c *Call) shareWithOrigin() {
	if len(c.server.Origins) == 0 {
		return
	}
	c.w.variesByOrigin = true
	values := c.r.Header["Origin"]
	if len(values) != 1 || !slices.Contains(c.server.Origins, values[0]) {
		return
	}
	c.origin = values[0]
	c.Header().Set("Access-Control-Allow-Origin", c.origin)
	c.Header().Set("Access-Control-Expose-Headers", exposedFields)
}

// isPreflight reports whether an OPTIONS request is the question of a browser
// whether it may send the request of a page of an allowed origin. Browsers send no
// credential with this question.
func (q *request) isPreflight() bool {
	return q.origin != "" && q.r.Header.Get("Access-Control-Request-Method") != ""
}

// permitRequest adds the fields of the answer to a preflight request. If the path
// does not exist, any request is permitted, because only the answer to the request
// itself tells the page what is wrong.
func (c *Call) permitRequest() {
	h := c.Header()
	h.Del("Access-Control-Expose-Headers")
	h.Set("Access-Control-Allow-Methods", cmp.Or(strings.Join(c.allow, ", "), "*"))
	h.Set("Access-Control-Allow-Headers", allowedFields)
	h.Set("Access-Control-Max-Age", preflightAge)
}

// vary completes the field Vary of an answer's header.
func (w *response) vary(h http.Header) {
	if w.variesByOrigin {
		w.variesByOrigin = false
		h.Add("Vary", "Origin")
	}
}
