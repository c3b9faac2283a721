package rest

import (
	"context"
	"net/http"
	"net/url"

	"schedrestd/internal/errs"
)

// CheckTags makes the caller responsible for the entity tags in If-Match: it must
// call IsCurrent with the path of the object before it changes the object. If
// there are no tags, CheckTags returns false.
func (q *request) CheckTags() bool {
	lines := q.r.Header.Values("If-Match")
	q.checksTags = len(lines) > 0 && !isAny(lines)
	return q.checksTags
}

// IsCurrent reports whether If-Match contains the entity tag of the answer to a
// GET request for the path, which is relative to that of the API's version. The
// answer is rendered in the format that the client accepts, with requests to the
// daemon in ctx. It has to show the same records as the one from which the
// client has the tag.
//
// The gateway's tags are weak, and RFC 9110, 13.1.1 forbids to compare these, for
// the sake of partial bodies. A change of records has none.
func (c *Call) IsCurrent(ctx context.Context, path string, query url.Values) (bool, error) {
	tags := c.r.Header.Values("If-Match")
	if !areTags(tags) {
		return false, nil
	}
	parts, err := pathParts(c.r.URL.EscapedPath()) // "slurmdb", "v0.0.45", …
	if err != nil || len(parts) < 2 {
		return false, err
	}
	target, err := url.Parse("/" + parts[0] + "/" + parts[1] + "/" + path)
	if err != nil {
		return false, err
	}
	target.RawQuery = query.Encode()
	r := c.r.Clone(ctx)
	r.Method, r.URL, r.RequestURI, r.Body, r.ContentLength = http.MethodGet, target, target.RequestURI(), http.NoBody, 0
	r.Header = http.Header{"If-None-Match": tags}
	if accept := c.r.Header["Accept"]; accept != nil {
		r.Header["Accept"] = accept
	}
	inner := c.server.newCall(&discard{http.Header{}}, r)
	defer inner.releaseBody()
	inner.begin()
	if inner.route == nil {
		return false, nil
	}
	inner.client, inner.cred = c.client, c.cred
	if err := inner.Negotiate(inner.offers()); err != nil {
		return false, err
	}
	do, err := inner.route.prepare(inner)
	if err != nil {
		return false, err
	}
	err = inner.carryOut(do)
	if errs.KindOf(err) == errs.NotFound {
		return false, nil
	}
	return inner.w.status == http.StatusNotModified, err
}

// ErrNotCurrent returns the error for a change whose If-Match is false.
func ErrNotCurrent() error {
	return errs.New(errs.PreconditionFailed, "the If-Match condition is false: the record has changed; nothing was changed").
		WithHint("read the record again; the tag must be that of an answer that shows only this record")
}

// discard is the writer of an answer of which only the status is of interest.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
