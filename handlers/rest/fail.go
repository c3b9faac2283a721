package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// fail sends err as the answer, and logs any error that may interest an
// administrator. It must be called before any part of the answer is sent.
func (c *Call) fail(err error) {
	code := Status(err)
	noLine := code == http.StatusForbidden || code == http.StatusTooManyRequests || code == http.StatusNotImplemented // nothing is broken
	if code >= http.StatusInternalServerError && !noLine || code == http.StatusUnauthorized {
		c.logFailure(err)
	}
	if noLine {
		c.reason = cmp.Or(c.reason, Redact(err.Error()))
	}
	if code == http.StatusUnauthorized && c.claimedUser == "" {
		c.claimedUser = auth.NewRejection(c.r, c.server.Auth).User
	}
	c.sendError(err, code)
}

func (c *Call) sendError(err error, code int) {
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
func (c *Call) sendFailure(code int, problems []api.Error, warnings []api.Warning) error {
	c.warnings = append(c.warnings, warnings...)
	body := c.Envelope()
	for _, p := range problems {
		p.Description, p.Source = Redact(p.Description), Redact(p.Source)
		body.Errors = append(body.Errors, p)
	}
	table := api.AnswerTable(api.Empty)
	if c.route != nil {
		table = c.route.Answer
	}
	return c.render(code, false, func(e schema.Encoder) { table.Failure(c.view)(e, &body) })
}

// RefuseUnread logs that a client is refused whose request is not read, and
// returns the id in the log and the body of the answer, in JSON. The context has
// the auth.Peer.
func (s *Server) RefuseUnread(ctx context.Context, err error) (id string, body []byte) {
	r := (&http.Request{Method: http.MethodGet, URL: new(url.URL)}).WithContext(ctx)
	c := &Call{request: request{server: s, r: r, match: s.router.find(r)}, answer: answer{ctx: ctx}}
	answer := c.Envelope()
	answer.Errors = c.problems(err, Status(err))
	var text bytes.Buffer
	out := s.formats.get(MediaJSON, &text)
	defer s.formats.put(MediaJSON, out)
	api.AnswerTable(api.Empty).Failure(c.view)(out, &answer)
	_ = out.Flush() // writing to a bytes.Buffer can't fail
	a := Access{ID: rand.Text(), Status: Status(err), Bytes: text.Len(), Reason: err.Error()}
	a.Peer, _ = auth.PeerFrom(ctx)
	if c.mayLog(a.Status) {
		a.log(ctx, s.Log, slog.LevelInfo)
	}
	return a.ID, text.Bytes()
}

// answerLeniently handles requests whose path names an object that does not
// exist, or that ask for something that has not changed. slurmrestd answers some
// of these requests with 200 instead of 404 or 304, and in Slurm's spelling
// answerLeniently does the same. It returns every other error.
func (c *Call) answerLeniently(err error) error {
	kind := errs.KindOf(err)
	if kind == errs.Unchanged && c.Lenient(api.UnchangedIsWarning) {
		return c.sendFailure(http.StatusOK, nil, []api.Warning{{Description: "nothing has changed since this time", Source: InQuery + "update_time"}})
	}
	switch {
	case kind != errs.NotFound:
		return err
	case c.Lenient(api.MissingIsError):
		return c.sendFailure(http.StatusOK, c.problems(err, http.StatusNotFound), nil)
	case !c.Lenient(api.MissingIsWarning):
		return err
	}
	list := c.problems(err, http.StatusNotFound)
	var warnings []api.Warning
	for _, p := range list {
		warnings = append(warnings, api.Warning{Description: p.Description, Source: p.Source})
	}
	return c.sendFailure(http.StatusOK, nil, warnings)
}

func (c *Call) setAllow() { c.w.Header().Set("Allow", strings.Join(c.allow, ", ")) }

// Problems returns the entries of an answer's list of errors for err.
func (q *request) Problems(err error) []api.Error { return q.problems(err, Status(err)) }

// problems returns the error entries for err. An entry with one of Slurm's
// error numbers gets Slurm's text for this number as its name, because clients
// of slurmrestd compare the name. If code is 401, problems adds a hint on how
// to authenticate.
func (q *request) problems(err error, code int) []api.Error {
	list := problems(err, code)
	for i, p := range list {
		if p.Number != 0 {
			list[i].Name = q.server.ErrorText(p.Number)
		}
	}
	if code == http.StatusUnauthorized {
		list[0].Description += "; " + q.authHint()
	}
	return list
}

// authHint returns the hint for a 401. The hint depends only on the path and
// the configuration. A client that guesses credentials must not learn why one
// was refused.
func (q *request) authHint() string {
	hint := "this socket accepts local users without a token"
	if q.server.Auth.JWT {
		hint = fmt.Sprintf("send a token in %s or in Authorization: Bearer, and in %s only the name of a user for whom its user may act",
			api.HeaderToken(q.view.Spelling), api.HeaderUser(q.view.Spelling))
	}
	return hint + "; the gateway's log has the reason under X-Request-Id"
}

// recover answers a request whose handler panicked.
func (c *Call) recover() {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		c.server.Log.Error("panic", "id", c.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
	if p == http.ErrAbortHandler || c.w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	c.fail(errors.New("panic"))
}
