package handlers

import (
	"net/http"
	"strings"

	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
)

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
