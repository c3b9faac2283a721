package rest

import (
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// ServeHTTP processes a request step by step.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := s.newCall(w, r)
	defer c.releaseBody()
	defer c.endTokenWatch()
	defer c.logAccess()
	defer c.recover()
	c.begin()
	if err := c.serve(); err != nil {
		c.fail(c.orTokenEnd(err))
	}
}

// begin finds out what the request is for, and sets the fields of the header that
// do not depend on the answer.
func (c *Call) begin() {
	c.closeUnlessRead()
	c.match = c.server.router.find(c.r)
	c.shareWithOrigin()
	c.announceDeprecation()
}

// Find returns what a request is for: an endpoint or a page, with the version and
// spelling of the answer. The endpoint is nil for none, and page, the page's id,
// is "" for none.
func (s *Server) Find(r *http.Request) (endpoint *api.Endpoint, page string, view schema.View) {
	m := s.router.find(r)
	if m.route != nil {
		endpoint = m.route.Endpoint
	}
	if m.page != nil {
		page = m.page.ID
	}
	return endpoint, page, m.view
}

// ServeError answers a request with err. The answer has the negotiated format
// and contains the usual envelope. The request is logged like any other.
func (s *Server) ServeError(w http.ResponseWriter, r *http.Request, err error) {
	c := s.newCall(w, r)
	c.reason = err.Error()
	defer c.logAccess()
	defer c.recover()
	c.begin()
	_ = c.Negotiate(BodyMedia) // if the client accepts none of these types, the answer is JSON
	c.sendError(err, Status(err))
}

func (c *Call) serve() error {
	if c.r.Method == http.MethodOptions && c.isPreflight() {
		c.permitRequest()
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if c.allow != nil && c.r.Method == http.MethodOptions {
		c.setAllow()
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if len(c.r.RequestURI) > maxURI || len(c.r.URL.Path)+len(c.r.URL.RawQuery) > maxURI {
		c.err = errs.New(errs.URITooLong, "the request's path and query are too long").
			WithHint("at most %d bytes are accepted", maxURI)
	}
	if c.page != nil {
		return c.servePage()
	}
	err := c.Negotiate(c.offers())
	if c.err != nil {
		return c.err
	}
	if err != nil {
		return err
	}
	if err := c.checkCause(); err != nil {
		c.claimedUser, c.reason = auth.NewRejection(c.r, c.server.Auth).User, err.Error()
		return err
	}
	if err := c.Authenticate(); err != nil {
		return err
	}
	if c.latest && (c.r.Method == http.MethodGet || c.r.Method == http.MethodHead) {
		c.Header().Set("Content-Location", c.contentLocation())
	}
	do, err := c.route.prepare(c)
	if err != nil {
		return err
	}
	return c.answerLeniently(c.forgetIfRefused(c.carryOut(do)))
}

// contentLocation returns the reference to this answer with the name of its
// version (RFC 9110, 8.7). It begins at the directory of the path of the request,
// which a proxy may have changed.
func (q *request) contentLocation() string {
	segments := slices.DeleteFunc(strings.Split(q.r.URL.EscapedPath(), "/"), func(s string) bool { return s == "." })
	for range 2 { // the product and the version
		i := slices.IndexFunc(segments, func(s string) bool { return s != "" })
		segments = segments[i+1:]
	}
	location := strings.Repeat("../", len(segments)) + q.view.Version.String() + "/" + strings.Join(segments, "/")
	if q.r.URL.RawQuery != "" {
		location += "?" + noDelimiters.Replace(q.r.URL.RawQuery)
	}
	return location
}

// servePage answers a request for a page.
func (c *Call) servePage() error {
	if c.page.Media != nil {
		if err := c.Negotiate(c.page.Media); err != nil {
			return err
		}
	}
	if c.err != nil {
		return c.err
	}
	return c.forgetIfRefused(c.page.Do(c))
}
