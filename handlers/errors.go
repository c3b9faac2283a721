package handlers

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/internal/errs/errcode"
	"schedrestd/internal/http1"
)

// status returns the HTTP status for an error. No other function maps kinds of
// errors to statuses.
func status(err error) int {
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
	case errs.Unchanged:
		return http.StatusNotModified
	}
	return http.StatusInternalServerError
}

// retryAfter is the default value of Retry-After for a 503 or 429, in seconds.
const retryAfter = "5"

// RetryAfterError is an error that says when a retry may succeed.
type RetryAfterError struct {
	Err   error
	After time.Duration
}

// Error returns the text of the wrapped error.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// retrySeconds returns the value of Retry-After, in seconds, rounded up.
func retrySeconds(err error) string {
	if e, ok := errors.AsType[*RetryAfterError](err); ok {
		return strconv.Itoa(int(max(1, math.Ceil(e.After.Seconds()))))
	}
	return retryAfter
}

// fail sends err as the answer, and logs any error that may interest an
// administrator. It must be called before any part of the answer is sent.
func (c *call) fail(err error) {
	code := status(err)
	if code >= http.StatusInternalServerError || code == http.StatusUnauthorized {
		c.logFailure(err)
	}
	if code == http.StatusUnauthorized && c.claimedUser == "" {
		c.claimedUser = auth.NewRejection(c.r, c.h.Auth).User
	}
	c.sendError(err, code)
}

// sendError answers with err.
func (c *call) sendError(err error, code int) {
	if code == http.StatusNotModified { // a 304 has no body (RFC 9110, 15.4.5)
		c.w.WriteHeader(code)
		return
	}
	h := c.w.Header()
	switch code {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		c.setAllow()
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", retrySeconds(err))
	case http.StatusConflict:
		if _, ok := errors.AsType[*RetryAfterError](err); ok {
			h.Set("Retry-After", retrySeconds(err))
		}
	}
	if err := c.sendFailure(code, c.problems(err, code), nil); err != nil {
		c.logFailure(err)
		panic(http.ErrAbortHandler)
	}
}

// sendFailure answers with errors and warnings. The answer contains the
// endpoint's usual lists, but they are empty.
func (c *call) sendFailure(code int, problems []api.Error, warnings []api.Warning) error {
	c.warnings = append(c.warnings, warnings...)
	body := c.envelope()
	for _, p := range problems {
		p.Description, p.Source = redact(p.Description), redact(p.Source)
		body.Errors = append(body.Errors, p)
	}
	table := api.AnswerTable(api.Empty)
	if c.route != nil {
		table = c.route.Answer
	}
	return c.render(code, func(e schema.Encoder) { table.Failure(c.view)(e, &body) })
}

// answerNotFound handles requests whose path names an object that does not
// exist. slurmrestd answers some of these requests with 200 instead of 404, and
// in Slurm's spelling answerNotFound does the same. It returns every other
// error.
func (c *call) answerNotFound(err error) error {
	if errs.KindOf(err) != errs.NotFound {
		return err
	}
	switch {
	case c.lenient(api.MissingIsError):
		return c.sendFailure(http.StatusOK, c.problems(err, http.StatusNotFound), nil)
	case !c.lenient(api.MissingIsWarning):
		return err
	}
	list := c.problems(err, http.StatusNotFound)
	var warnings []api.Warning
	for _, p := range list {
		warnings = append(warnings, api.Warning{Description: p.Description, Source: p.Source})
	}
	return c.sendFailure(http.StatusOK, nil, warnings)
}

func (c *call) setAllow() { c.w.Header().Set("Allow", strings.Join(c.allow, ", ")) }

// problems returns the error entries for err. For an internal error or a
// refused credential, the client gets a fixed text. For any other *errs.Error
// it gets the Message and the hint, but not the cause.
func problems(err error, code int) []api.Error {
	if report, ok := errors.AsType[*notesError](err); ok {
		return report.problems()
	}
	if several, ok := errors.AsType[multiError](err); ok {
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

// problems returns the error entries for err. An entry with one of Slurm's
// error numbers gets Slurm's text for this number as its name, because clients
// of slurmrestd compare the name. If code is 401, problems adds a hint on how
// to authenticate.
func (c *call) problems(err error, code int) []api.Error {
	list := problems(err, code)
	for i, p := range list {
		if p.Number != 0 {
			list[i].Name = c.h.ErrorText(p.Number)
		}
	}
	if code == http.StatusUnauthorized {
		list[0].Description += "; " + c.authHint()
	}
	return list
}

// authHint returns the hint for a 401. The hint depends only on the path and
// the configuration. A client that guesses credentials must not learn why one
// was refused.
func (c *call) authHint() string {
	hint := "this socket accepts local users without a token"
	if c.h.Auth.JWT {
		hint = fmt.Sprintf("send a token in %s or in Authorization: Bearer", api.HeaderToken(c.view.Spelling))
	}
	return hint + "; the gateway's log has the reason under X-Request-Id"
}

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
			Number:      invalidValue,
			Code:        errcode.Of(errs.Invalid),
		}
		if n.Missing {
			list[i].Number = missingField
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
	for _, prefix := range []string{"#/", inQuery} {
		if name, ok := strings.CutPrefix(source, prefix); ok {
			return name + ": " + text
		}
	}
	return text
}

// recover answers a request whose handler panicked.
func (c *call) recover() {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler || c.w.status != 0:
		if p != http.ErrAbortHandler {
			c.h.Log.Error("panic", "id", c.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler)
	}
	c.h.Log.Error("panic", "id", c.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	c.fail(errors.New("panic"))
}

// logFailure logs the complete error with the request's id. Clients never see
// this text.
func (c *call) logFailure(err error) {
	if c.ctx.Err() != nil {
		return // the client has closed the connection
	}
	if !c.h.Lines.allow(c.ctx, c.h.Log, c.source(), isRefused(status(err))) {
		return
	}
	c.h.Log.LogAttrs(c.ctx, slog.LevelWarn, "request failed", slog.String("id", c.id), slog.String("error", redact(err.Error())))
}

// multiError contains the errors about several objects of one request. The
// first error determines the status of the answer.
type multiError []error

func (s multiError) Error() string { return errors.Join(s...).Error() }

func (s multiError) Unwrap() []error { return s }
