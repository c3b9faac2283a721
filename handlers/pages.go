package handlers

import (
	"maps"
	"net/http"
	"strings"

	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
)

// pages returns the pages outside of the API. The keys are their paths, without
// the leading slash.
func (h *handler) pages() map[string]rest.Page {
	pages := map[string]rest.Page{
		"healthz": {ID: "healthz", Quiet: true, Do: h.getHealth},
		"livez":   {ID: "livez", Quiet: true, Do: h.getHealth},
		"readyz":  {ID: "readyz", Quiet: true, Do: h.getReadiness},
	}
	maps.Copy(pages, h.documentPages())
	maps.Copy(pages, h.apiPages())
	maps.Copy(pages, h.clusterPages())
	return pages
}

// Pages returns the names of all pages, as the log and the metrics use them.
func Pages() (names []string) {
	for _, p := range newHandler(Config{}).pages() {
		names = append(names, p.ID)
	}
	return names
}

// getHealth answers "ok" if this process can answer. Clients poll it often and
// without a token, so it calls no daemon and reveals nothing.
func (h *handler) getHealth(c *rest.Call) error { return c.SendText(http.StatusOK, "ok\n") }

// unready is the answer to /readyz while new requests should go to another
// gateway.
const unready = "unready\n"

// getReadiness answers with 503 while new requests should go to another
// gateway. Only authenticated clients get the reasons, because the reasons
// reveal details of the site.
func (h *handler) getReadiness(c *rest.Call) error {
	var reasons []string
	if h.Ready != nil {
		reasons = h.Ready(c.Context())
	}
	if len(reasons) == 0 {
		return c.SendText(http.StatusOK, "ok\n")
	}
	text := unready
	switch err := c.Authenticate(); {
	case err == nil:
		text += strings.Join(reasons, "\n") + "\n"
	case errs.KindOf(err) == errs.Unavailable || errs.KindOf(err) == errs.Timeout:
		// If there is no key, or the daemon does not answer, the credential
		// can't be verified.
	case errs.KindOf(err) != errs.Unauthenticated || auth.HasCredential(c.Request().Header):
		return err // an invalid credential gets the usual refusal
	}
	c.Header().Set("Retry-After", rest.RetryAfter)
	return c.SendText(http.StatusServiceUnavailable, text)
}
