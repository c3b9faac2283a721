package rest

import (
	"schedrestd/api"
	"schedrestd/api/scope"
)

// Route combines the declaration of an endpoint with the function that answers
// its requests.
type Route struct {
	*api.Endpoint
	prepare func(*Call) (do func() error, err error) // parses the parameters, and returns the function that does the work
}

// Bind returns the Route of an operation. The function do answers a request of an
// authenticated client. Its second argument contains the parameters in the path
// and the query. If do returns an error, the server sends it.
func Bind[P any](op api.Operation[P], do func(*Call, *P) error) Route {
	return Route{op.Endpoint, func(c *Call) (func() error, error) {
		params, err := readParams(c, op.Params)
		return func() error { return do(c, params) }, err
	}}
}

// Page is a path that does not belong to the API. It has no version, and
// supports only reading.
type Page struct {
	ID       string    // name in the log
	Scope    scope.Set // what an authenticated client needs
	Quiet    bool      // requests for this page are logged only at level debug
	Media    []string  // available media types, preferred one first; nil if any Accept header is ignored
	OnlyHTML bool      // whether the path exists only for clients that ask for HTML by name, as browsers do
	Do       func(*Call) error
}
