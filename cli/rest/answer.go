package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"schedrestd/cli/direct"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// These error numbers of Slurm determine how the client treats an error.
const (
	noChange    = 1900 // nothing has changed since update_time
	invalidNode = 2018
	invalidJob  = 2017
	jobEnded    = 2021
)

// Limits on answers. A server, or another user's process in its place, can send
// an answer of any length, also a short one that is compressed.
//
// A whole job has about 6 kB, and a controller of a large site a few hundred
// thousand of them. Records of a few bytes become much larger in memory, so their
// number has a limit, too.
const (
	maxBody  = 1 << 20  // bytes of an answer that is read into memory
	maxValue = 16 << 20 // bytes of one element of a list, or of another member beside the list
	maxList  = 4 << 30  // bytes of an answer with a list
)

// maxRecords is the maximum number of records in a list or a stream.
var maxRecords = 10_000_000

// A boundedBody is the body of an answer with a list. It limits the length of the
// answer and of each value in it.
type boundedBody struct {
	body  io.Reader
	total int64 // bytes that may still be read
	value int64 // bytes that may still be read for the current value
}

var errTooLong = errors.New("the answer is too long")

// Read reads from the body. It fails when a limit is reached.
func (b *boundedBody) Read(p []byte) (int, error) {
	left := min(b.total, b.value)
	if left <= 0 {
		return 0, errTooLong
	}
	n, err := b.body.Read(p[:min(int64(len(p)), left)])
	b.total -= int64(n)
	b.value -= int64(n)
	return n, err
}

// next begins another value.
func (b *boundedBody) next() { b.value = maxValue }

// A problem is one of the errors or warnings in an answer.
type problem struct {
	Description string `json:"description"`
	Number      int    `json:"error_number"`
	Error       string `json:"error"`
	Source      string `json:"source"`
	Code        string `json:"code"`
}

// String formats p for people. The text begins with the part of the request
// that caused the problem, if that part is known. Next comes the description
// or, if there is none, the name of the error. Only schedrestd sends a code. Its
// descriptions are complete, so the name of the error would say the same again.
func (p problem) String() string {
	text := p.Description
	switch {
	case text == "":
		text = p.Error
	case p.Code != "":
	case p.Error != "" && p.Number != 0 && !strings.EqualFold(p.Error, p.Description):
		text += " (" + p.Error + ")"
	}
	name, ok := strings.CutPrefix(p.Source, "#/")
	last := strings.TrimSuffix(path.Base(name), "s")
	isBody := name == "job" || name == "jobs" // the source is the whole job or the whole list
	if ok && !isBody && !strings.HasPrefix(text, last) {
		text = p.Source + ": " + text
	}
	return printable.Text(text)
}

// listEnvelope contains the members of an answer that the client reads in
// addition to the list.
type listEnvelope struct {
	problems []problem // the member "errors"
	warnings []problem
	updated  Number // the member "last_update"
}

// decodeList decodes an answer that contains a list of any length. The
// arguments key and each are the same as for requestList.
func (c *Client) decodeList(ctx context.Context, resp *http.Response, key string,
	each func(*json.Decoder) error) (l listEnvelope, err error) {
	if !isJSON(resp) {
		return l, notJSON(resp)
	}
	stopped, records := false, 0
	body := &boundedBody{body: resp.Body, total: maxList, value: maxValue}
	err = decodeObject(json.NewDecoder(body), func(d *json.Decoder, name string) error {
		body.next()
		switch name {
		case key:
			return decodeArray(d, func(d *json.Decoder) error {
				body.next()
				if records++; records > maxRecords {
					return errTooLong
				}
				err := each(d)
				stopped = err != nil && !isMalformed(err)
				return err
			})
		case "errors":
			return d.Decode(&l.problems)
		case "warnings":
			return d.Decode(&l.warnings)
		case "last_update":
			return d.Decode(&l.updated)
		}
		var ignored json.RawMessage
		return d.Decode(&ignored)
	})
	switch {
	case stopped:
		return l, err
	case err != nil && ctx.Err() != nil:
		return l, ctx.Err()
	}
	return l, c.unreadable(err, "answer")
}

// unreadable returns the error of a command that could not read what the server
// sent to its end.
func (c *Client) unreadable(err error, what string) error {
	e := &errs.Error{Kind: errs.BadAnswer, Message: fmt.Sprintf("read the %s of %s", what, c.addr), Err: err}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooLong):
		e.Kind = errs.TooLarge // a repetition would not help
		e.Hint = "check that --url or SCHED_URL names a gateway; if it does, select fewer records, for example with --user"
	case errors.Is(err, errStalled), errors.Is(err, errEndless):
		e.Kind, e.Hint = errs.Timeout, "check the server and the proxies in front of it; --debug shows the requests"
	}
	return e
}

// isMalformed reports whether err means that an answer is malformed or has no
// end.
func isMalformed(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, errTooLong) || errors.Is(err, errStalled) || errors.Is(err, errEndless)
}

// decodeObject reads a JSON object. For each name in the object it calls the
// function member, which must read the value.
func decodeObject(d *json.Decoder, member func(*json.Decoder, string) error) error {
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return orUnexpected(err, "no object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return orUnexpected(err, "")
		}
		if err := member(d, name.(string)); err != nil {
			return orUnexpected(err, "")
		}
	}
	_, err := d.Token()
	return orUnexpected(err, "")
}

// decodeArray reads a JSON array or null. For each element it calls the
// function element, which must read the element.
func decodeArray(d *json.Decoder, element func(*json.Decoder) error) error {
	start, err := d.Token()
	switch {
	case err == nil && start == nil:
		return nil
	case err != nil || start != json.Delim('['):
		return orUnexpected(err, "no array")
	}
	for d.More() {
		if err := element(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// orUnexpected returns err, with io.EOF replaced by io.ErrUnexpectedEOF. If err
// is nil and text is not empty, it returns an error with that text.
func orUnexpected(err error, text string) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err == nil && text != "":
		return errors.New(text)
	}
	return err
}

// decodeAnswer decodes the body of resp into v and returns the warnings in the
// body. It fails if the body is longer than maxBody, so it must not be used for
// lists.
func (c *Client) decodeAnswer(resp *http.Response, v any) (warnings []string, err error) {
	if !isJSON(resp) {
		return nil, notJSON(resp)
	}
	body, err := io.ReadAll(&boundedBody{body: resp.Body, total: maxBody, value: maxBody})
	if err != nil {
		return nil, c.unreadable(err, "answer")
	}
	var envelope struct {
		Errors   []problem `json:"errors"`
		Warnings []problem `json:"warnings"`
	}
	if err = json.Unmarshal(body, &envelope); err == nil && v != nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		return nil, errs.Wrap(err, errs.BadAnswer, "read the answer of %s", c.addr)
	}
	for i, w := range envelope.Warnings {
		saidLater := slices.ContainsFunc(envelope.Warnings[i+1:], func(later problem) bool {
			return strings.HasSuffix(w.Description, ": "+later.Description)
		})
		if !saidLater { // slurmrestd sends a warning of the controller twice
			warnings = append(warnings, w.String())
		}
	}
	if len(envelope.Errors) > 0 {
		err = problemsError(resp.StatusCode, envelope.Errors)
	}
	return warnings, err
}

// responseError returns the error for an answer with a status of 400 or more.
// A server in this process also sends the cause of the error.
func (c *Client) responseError(resp *http.Response) error {
	e := errorOf(resp)
	if cause, _ := url.QueryUnescape(resp.Header.Get(direct.Cause)); c.IsDirect() && cause != "" {
		e.Message, e.Hint = printable.Text(strings.ReplaceAll(cause, "\n", "; ")), "" // several failures have a line each
	}
	if c.IsDirect() && e.Kind == errs.Unavailable {
		e.Hint = "this is " + c.addr.String() + "; --url or SCHED_URL selects a gateway instead"
	}
	switch {
	case e.Kind != errs.Unauthenticated || c.IsDirect():
	case c.config.Token == "":
		e.Message, e.Hint = "no token is set, and the server needs one", "get one with schedctl token or scontrol token, and set SCHED_JWT"
	case c.addr.socket != "":
		e.Hint = "get a new token; if the socket is that for local users, unset SCHED_JWT, because they need no token"
	}
	return e
}

func errorOf(resp *http.Response) *errs.Error {
	var envelope struct {
		Errors []problem `json:"errors"`
	}
	if isJSON(resp) {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody))
		if json.Unmarshal(body, &envelope) == nil && len(envelope.Errors) > 0 {
			return problemsError(resp.StatusCode, envelope.Errors)
		}
	} else if resp.StatusCode == http.StatusBadRequest {
		start := make([]byte, 256)
		n, _ := io.ReadFull(resp.Body, start)
		if strings.Contains(string(start[:n]), "HTTPS") {
			return errs.New(errs.BadAnswer, "the server expects TLS").WithHint("use https:// instead of http://")
		}
	}
	return problemsError(resp.StatusCode, nil)
}

// problemsError returns the error for an answer with the given status and
// problems. Some error numbers determine the kind of the error. If no problem
// has such a number, the status determines the kind.
func problemsError(status int, problems []problem) *errs.Error {
	e := &errs.Error{Kind: kindOf(status)}
	var texts []string
	for _, p := range problems {
		if text := p.String(); len(texts) == 0 || texts[len(texts)-1] != text {
			texts = append(texts, text)
		}
		switch p.Number {
		case invalidJob, invalidNode:
			e.Kind, e.Number = errs.NotFound, p.Number
		case jobEnded:
			e.Kind, e.Number = errs.Conflict, p.Number
		}
		if e.Code == "" {
			e.Code = p.Code
		}
	}
	e.Message = strings.Join(texts, "; ")
	if e.Message == "" {
		e.Message = fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))
	}
	switch e.Kind {
	case errs.Unauthenticated:
		e.Hint = "the token is missing or not accepted: get one with schedctl token or scontrol token, and set SCHED_JWT"
	case errs.TooMany, errs.Unavailable:
		e.Hint = "try again later"
	}
	return e
}

// kindOf returns the kind of error for an HTTP status.
func kindOf(status int) errs.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusNetworkAuthenticationRequired: // slurmrestd answers 511
		return errs.Unauthenticated
	case http.StatusForbidden:
		return errs.Denied
	case http.StatusNotFound:
		return errs.NotFound
	case http.StatusConflict:
		return errs.Conflict
	case http.StatusRequestEntityTooLarge:
		return errs.TooLarge
	case http.StatusTooManyRequests:
		return errs.TooMany
	case http.StatusNotImplemented:
		return errs.Unsupported
	case http.StatusBadGateway:
		return errs.BadAnswer
	case http.StatusServiceUnavailable:
		return errs.Unavailable
	case http.StatusGatewayTimeout:
		return errs.Timeout
	}
	if status < 500 {
		return errs.Invalid
	}
	return errs.Internal
}

func isJSON(resp *http.Response) bool {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return media == "application/json"
}

func notJSON(resp *http.Response) error {
	kind := shorten(resp.Header.Get("Content-Type"))
	if kind == "" {
		kind = "no content type"
	}
	return errs.New(errs.BadAnswer, "the answer is not JSON: status %d, %s", resp.StatusCode, kind).
		WithHint("check the address: the server may not be slurmrestd, or a proxy in front of it may have answered")
}

// shorten truncates and escapes a text from the server or the user, so that it
// fits on one line.
func shorten(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return printable.Text(s)
}
