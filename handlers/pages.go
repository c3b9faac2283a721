package handlers

import (
	"maps"
	"net/http"
	"strings"

	"schedrestd/auth"
	"schedrestd/errs"
)

// page is a path outside of the API. It has no version, and clients can only
// read it.
type page struct {
	id    string   // name in the log
	quiet bool     // its requests are logged only at level debug
	media []string // available media types, preferred one first; nil if any Accept header is ignored
	do    func(*call) error
}

// pages returns the paths outside of the API, without the leading slash.
func (h *handler) pages() map[string]page {
	pages := map[string]page{
		"healthz": {id: "healthz", quiet: true, do: h.getHealth},
		"livez":   {id: "livez", quiet: true, do: h.getHealth},
		"readyz":  {id: "readyz", quiet: true, do: h.getReadiness},
	}
	maps.Copy(pages, h.documentPages())
	maps.Copy(pages, h.apiPages())
	maps.Copy(pages, h.clusterPages())
	return pages
}

// Pages returns the names of all pages in the log and in metrics.
func Pages() (names []string) {
	for _, p := range newHandler(Config{}).pages() {
		names = append(names, p.id)
	}
	return names
}

// servePage answers a request for a page.
func (c *call) servePage() error {
	if c.page.media != nil {
		if err := c.negotiate(c.page.media); err != nil {
			return err
		}
	}
	if c.err != nil {
		return c.err
	}
	return c.page.do(c)
}

// getHealth reports that this process answers. Clients poll it often and
// without a token, so it asks no daemon and reveals nothing.
func (h *handler) getHealth(c *call) error { return c.sendText(http.StatusOK, "ok\n") }

// unready is the answer to /readyz while new requests should go to another
// gateway.
const unready = "unready\n"

// getReadiness returns 503 while new requests should go to another gateway.
// Only authenticated clients get the reasons, because these reveal details
// about the site.
func (h *handler) getReadiness(c *call) error {
	var reasons []string
	if h.Ready != nil {
		reasons = h.Ready(c.ctx)
	}
	if len(reasons) == 0 {
		return c.sendText(http.StatusOK, "ok\n")
	}
	text := unready
	switch err := c.authenticate(); {
	case err == nil:
		text += strings.Join(reasons, "\n") + "\n"
	case errs.KindOf(err) == errs.Unavailable || errs.KindOf(err) == errs.Timeout:
		// Without a key or a daemon, the credential can't be verified.
	case errs.KindOf(err) != errs.Unauthenticated || auth.HasCredential(c.r.Header):
		return err // an invalid credential gets the usual refusal
	}
	c.w.Header().Set("Retry-After", retryAfter)
	return c.sendText(http.StatusServiceUnavailable, text)
}
