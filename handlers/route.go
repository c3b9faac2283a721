package handlers

import "schedrestd/api"

// route combines the declaration of an endpoint with its handler. The function
// prepare parses the parameters, and returns the function that does the work.
type route struct {
	*api.Endpoint
	prepare func(*call) (do func() error, err error)
}

func bind[P any](op api.Operation[P], do func(*call, *P) error) route {
	return route{op.Endpoint, func(c *call) (func() error, error) {
		params, err := readParams(c, op.Params)
		return func() error { return do(c, params) }, err
	}}
}

// page is a path that does not belong to the API. It has no version, and
// supports only reading.
type page struct {
	id       string   // name in the log
	quiet    bool     // requests for this page are logged only at level debug
	media    []string // available media types, preferred one first; nil if any Accept header is ignored
	onlyHTML bool     // whether the path exists only for clients that ask for HTML by name, as browsers do
	do       func(*call) error
}
