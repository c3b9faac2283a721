package rest

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/internal/errs/errcode"
	"schedrestd/internal/http1"
)

// Status returns the HTTP status for an error. No other function maps kinds of
// errors to statuses.
func Status(err error) int {
	switch errs.KindOf(err) {
	case errs.Malformed:
		return http.StatusBadRequest
	case errs.Invalid:
		return http.StatusUnprocessableEntity
	case errs.Unauthenticated:
		return http.StatusUnauthorized
	case errs.Denied:
		return http.StatusForbidden
	case errs.NotFound:
		return http.StatusNotFound
	case errs.Conflict:
		return http.StatusConflict
	case errs.TooLarge:
		return http.StatusRequestEntityTooLarge
	case errs.TooMany:
		return http.StatusTooManyRequests
	case errs.Unavailable:
		return http.StatusServiceUnavailable
	case errs.Timeout:
		return http.StatusGatewayTimeout
	case errs.BadAnswer:
		return http.StatusBadGateway
	case errs.Unsupported:
		if e, ok := errors.AsType[*http1.Error](err); ok { // an unsupported expectation or version of HTTP
			return e.Status
		}
		return http.StatusNotImplemented
	case errs.MethodNotAllowed:
		return http.StatusMethodNotAllowed
	case errs.UnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case errs.RequestTimeout:
		return http.StatusRequestTimeout
	case errs.NotAcceptable:
		return http.StatusNotAcceptable
	case errs.URITooLong:
		return http.StatusRequestURITooLong
	case errs.HeaderTooLarge:
		return http.StatusRequestHeaderFieldsTooLarge
	case errs.PreconditionFailed:
		return http.StatusPreconditionFailed
	case errs.RangeNotSatisfiable:
		return http.StatusRequestedRangeNotSatisfiable
	case errs.Unchanged:
		return http.StatusNotModified
	}
	return http.StatusInternalServerError
}

// RetryAfter is the default value of Retry-After for a 503 or 429, in seconds.
const RetryAfter = "5"

// RetryAfterError is an error that says when a retry may succeed.
type RetryAfterError struct {
	Err   error
	After time.Duration
}

// Error returns the text of the wrapped error.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

func (e *RetryAfterError) Unwrap() error { return e.Err }

// retrySeconds returns the value of Retry-After, in seconds, rounded up.
func retrySeconds(err error) string {
	if e, ok := errors.AsType[*RetryAfterError](err); ok {
		return strconv.Itoa(int(max(1, math.Ceil(e.After.Seconds()))))
	}
	return RetryAfter
}

// Problem returns the error entry for err, or the first one of several.
func Problem(err error) api.Error { return problems(err, Status(err))[0] }

// problems returns the error entries for err. For an internal error or a
// refused credential, the client gets a fixed text. For any other *errs.Error
// it gets the Message and the hint, but not the cause.
func problems(err error, code int) []api.Error {
	if report, ok := errors.AsType[*notesError](err); ok {
		return report.problems()
	}
	if several, ok := errors.AsType[MultiError](err); ok {
		var list []api.Error
		for _, e := range several {
			list = append(list, problems(e, code)...)
		}
		return list
	}
	p := api.Error{Name: http.StatusText(code), Code: errcode.Of(errs.KindOf(err)),
		Description: "internal error; the gateway's log has details under the request id"}
	e, ok := errors.AsType[*errs.Error](err)
	switch {
	case !ok || e.Kind == errs.Internal:
	case e.Kind == errs.Unauthenticated:
		p.Description = auth.Refused
	default:
		p.Description, p.Number, p.Source = e.Message, e.Number, e.Source
		if e.Kind == errs.Invalid && e.Number == 0 {
			p.Description = nameField(e.Source, e.Message)
		}
		if hint := errs.HintOf(err); hint != "" {
			p.Description += "; " + hint
		}
		if e.Code != "" {
			p.Code = e.Code
		}
	}
	p.Retryable = retryable(p.Code)
	return []api.Error{p}
}

// Codes of errors about Idempotency-Keys.
const (
	codeInProgress = "in_progress"
	codeKeyReused  = "idempotency_key_reused"
)

func retryable(code string) bool {
	switch code {
	case errcode.Of(errs.Unavailable), errcode.Of(errs.Timeout), errcode.Of(errs.TooMany), errcode.Of(errs.RequestTimeout),
		codeInProgress:
		return true
	}
	return false
}

// notesError is the error for a request whose body or parameters contain values
// that the endpoint's tables don't permit.
type notesError struct {
	subject string
	notes   []schema.Note
}

func (e *notesError) Error() string {
	return fmt.Sprintf("%d errors in the %s", len(e.notes), e.subject)
}

// Unwrap returns an error of kind Invalid.
func (e *notesError) Unwrap() error { return &errs.Error{Kind: errs.Invalid} }

func (e *notesError) problems() []api.Error {
	list := make([]api.Error, len(e.notes))
	for i, n := range e.notes {
		list[i] = api.Error{
			Description: nameField(n.Source, n.Text),
			Source:      n.Source,
			Name:        http.StatusText(http.StatusUnprocessableEntity),
			Number:      slurmerror.InvalidValue,
			Code:        errcode.Of(errs.Invalid),
		}
		if n.Missing {
			list[i].Number = slurmerror.MissingField
		}
		if n.Source == "#" && n.Line > 0 {
			list[i].Description = "the body: " + n.Text
		}
		switch {
		case n.Line > 0 && n.Missing:
			list[i].Description += fmt.Sprintf(" from the object at line %d, column %d", n.Line, n.Column)
		case n.Line > 0:
			list[i].Description += fmt.Sprintf(" (line %d, column %d)", n.Line, n.Column)
		}
	}
	return list
}

// nameField returns text with the name of the field or parameter that it is
// about, because clients often show or log an error without its source. An
// error about a name in the path contains the name itself.
func nameField(source, text string) string {
	for _, prefix := range []string{"#/", InQuery} {
		if name, ok := strings.CutPrefix(source, prefix); ok {
			return name + ": " + text
		}
	}
	return text
}

// MultiError contains the errors about several objects of one request. The
// first error determines the status of the answer.
type MultiError []error

func (s MultiError) Error() string { return errors.Join(s...).Error() }

func (s MultiError) Unwrap() []error { return s }

// The source of an error or warning is the name of a parameter with one of
// these prefixes, such as "query/flags".
const (
	InPath  = "path/"
	InQuery = "query/"
)
