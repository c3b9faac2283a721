package handlers

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/errs"
)

// mediaError is a body of a kind that is not read here.
type mediaError struct{ status int }

func (e *mediaError) Error() string { return "unsupported media type" }

// Unwrap gives it its kind and its words.
func (e *mediaError) Unwrap() error {
	return &errs.Error{Kind: errs.Unsupported, Code: "unsupported_media_type", Message: "the body must be application/json"}
}

// readBody reads and parses a request's body into *T, after authenticate alone. What is
// odd in it joins the call's warnings.
func readBody[T any](c *call, table *schema.ObjectType[T]) (*T, error) {
	if err := checkMedia(c.r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	text, err := readText(http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, c.h.MaxBody), c.r.ContentLength)
	if err != nil {
		return nil, err
	}
	doc, err := schema.ReadJSON(text, schema.DefaultLimits)
	if err != nil {
		return nil, syntaxError(err)
	}
	var report schema.Report
	body := new(T)
	table.Parser(c.view)(&report, doc, body)
	for _, n := range report.Warnings {
		c.warnings = append(c.warnings, api.Warning{Description: n.Text, Source: n.Source})
	}
	if !report.OK() {
		return nil, &bodyError{report.Errors}
	}
	return body, nil
}

// checkMedia takes JSON, said or not said. JSON is UTF-8; a body that says otherwise is refused,
// not misread.
func checkMedia(contentType string) error {
	if contentType == "" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	charset, said := params["charset"]
	if err != nil || kind != "application/json" || said && !strings.EqualFold(charset, "utf-8") {
		return &mediaError{http.StatusUnsupportedMediaType}
	}
	return nil
}

// readText reads a body of at most as many bytes as body lets through. What the client announces
// is a hint for the buffer only, and a small one: memory is spent on what arrives.
func readText(body io.Reader, announced int64) (string, error) {
	var b strings.Builder
	b.Grow(int(min(max(announced, 0), 1<<20)))
	if _, err := io.Copy(&b, body); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return "", errs.Wrap(err, errs.TooLarge, "the body is too large")
		}
		return "", errs.Wrap(err, errs.Malformed, "the body did not arrive whole")
	}
	return b.String(), nil
}

func syntaxError(err error) error {
	e, ok := errors.AsType[*schema.SyntaxError](err)
	switch {
	case !ok:
		return err
	case e.TooLarge:
		return errs.New(errs.TooLarge, "the body: %v", e).WithSource("#")
	}
	return errs.New(errs.Malformed, "the body is not JSON: %v", e).WithSource("#")
}
