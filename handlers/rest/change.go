package rest

import (
	"errors"
	"net/http"
	"strings"

	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// MakeChange evaluates the client's If-Match and If-None-Match, and then calls the
// function do to make a change. It records the change in the audit log. Every
// call that makes a daemon change something must be inside the function that is
// passed as do. If the request's Idempotency-Key is not free, the error is a
// KeyError.
//
// The object argument is the name of the object, or "" if the name is not known
// before the change. After a successful change, the function describe returns
// the result for the audit log.
func MakeChange[T any](c *Call, object string, do func() (T, error), describe func(T) Result) (done T, err error) {
	if c.route == nil || !c.route.Changing() {
		return done, errors.New("the endpoint is not declared as one that changes something, so checkCause has not seen the request")
	}
	if err := c.precondition(object != ""); err != nil {
		return done, err
	}
	report, err := c.server.Worker.Intend(c.ctx, c.auditChange(object))
	if err != nil {
		return done, err
	}
	result := Result{Status: http.StatusInternalServerError, Code: errs.OutcomeUnknown} // recorded if do panics
	defer func() { report(result) }()
	if done, err = do(); err != nil {
		result = FailureResult(err)
		return done, err
	}
	result = describe(done)
	if result.Status == 0 {
		result.Status = http.StatusOK
	}
	if result.Code == "" {
		result.Code = "ok"
	}
	return done, nil
}

// RecordAccess records in the audit log that a client whose token acts for others reads
// something that only the user may read. If the line can't be written, and the log may
// not be incomplete, the client must not read it.
func (c *Call) RecordAccess(object string) error {
	if c.client.Claims.ActFor == "" {
		return nil
	}
	report, err := c.server.Worker.Intend(c.ctx, c.auditChange(object))
	if err == nil {
		report(Result{Status: http.StatusOK, Code: "ok"})
	}
	return err
}

// checkCause refuses a request that would change something, if a web page of
// another site may have caused it. A credential does not matter: a browser or a
// proxy may have added it. So the check is made before the credential is
// verified, and costs the user no part of a limit.
func (q *request) checkCause() error {
	if !q.route.Changing() {
		return nil
	}
	err := auth.CheckChange(q.r, q.origin != "")
	if err == nil && isFromPage(q.r.Header) && q.r.ContentLength != 0 && q.r.Header["Content-Type"] == nil {
		// A page of another site may send such a body without asking first.
		err = errs.New(errs.UnsupportedMedia, "a body from a browser needs a Content-Type").WithHint("send %s", strings.Join(BodyMedia, " or "))
	}
	return err
}

// isFromPage reports whether a request has a field that browsers add to the
// requests of web pages.
func isFromPage(h http.Header) bool { return h["Sec-Fetch-Site"] != nil || h["Origin"] != nil }

// auditChange returns the Change for the audit log.
func (q *request) auditChange(object string) Change {
	a := Change{Request: q.id, Local: q.client.Local, UID: q.client.UID, ActAs: q.client.ActAs,
		Object: Redact(object), Fields: strings.Join(q.fields, " "), Key: q.keyClaim()}
	if peer, ok := auth.PeerFrom(q.r.Context()); ok {
		a.Forwarded = peer.Forwarded
	}
	if q.fromProxy { // the gateway's own ids contain no colon, so a client can't imitate them
		a.Request = "proxy:" + q.id
	}
	if q.route != nil {
		a.Method, a.Route = q.route.Method, q.route.Path
	}
	if !q.client.Local {
		a.User, a.Token = q.client.Claims.User, q.client.Claims.ID
	}
	return a
}

// A PartialError is the error of a change that has changed some of its objects
// nevertheless.
type PartialError struct {
	Err     error
	Objects string // what was changed, for the audit log
}

func (e *PartialError) Error() string { return e.Err.Error() }
func (e *PartialError) Unwrap() error { return e.Err }

// FailureResult returns the Result of a change that failed with err.
func FailureResult(err error) Result {
	p := Problem(err)
	result := Result{Status: Status(err), Code: p.Code, Number: uint32(max(0, p.Number))}
	if partial, ok := errors.AsType[*PartialError](err); ok {
		result.Objects = partial.Objects
	}
	return result
}
