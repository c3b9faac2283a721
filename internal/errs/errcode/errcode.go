// Package errcode contains the names by which clients know the kinds of
// failure. The privileged parent does not link this package, because it has no
// clients.
package errcode

import "schedrestd/internal/errs"

var names = [...]string{
	errs.Internal: "internal", errs.Malformed: "malformed", errs.Invalid: "invalid",
	errs.Unauthenticated: "unauthenticated", errs.Denied: "denied", errs.NotFound: "not_found",
	errs.Conflict: "conflict", errs.TooLarge: "too_large", errs.TooMany: "too_many",
	errs.Unavailable: "unavailable", errs.Timeout: "timeout", errs.BadAnswer: "bad_answer",
	errs.Unsupported: "unsupported", errs.MethodNotAllowed: "method_not_allowed",
	errs.UnsupportedMedia: "unsupported_media_type", errs.RequestTimeout: "request_timeout",
	errs.NotAcceptable: "not_acceptable", errs.URITooLong: "uri_too_long", errs.HeaderTooLarge: "header_too_large",
	errs.PreconditionFailed:  "precondition_failed",
	errs.RangeNotSatisfiable: "range_not_satisfiable",
	errs.Unchanged:           "unchanged",
}

// Of returns the name of k. Clients get this name as an error's code, so it
// never changes.
func Of(k errs.Kind) string {
	if int(k) < len(names) {
		return names[k]
	}
	return names[errs.Internal]
}
