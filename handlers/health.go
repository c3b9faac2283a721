package handlers

import (
	"net/http"

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
// reveal details of the site. With the parameter verbose, root and SchedUser
// also get the results of the other checks, as in Slurm 26.11, and the scopes of
// the listeners.
func (h *handler) getReadiness(c *rest.Call) error {
	if c.Request().URL.Query().Has("verbose") {
		return h.getChecks(c)
	}
	_, problems := h.checks(c)
	if problems == "" {
		return c.SendText(http.StatusOK, "ok\n")
	}
	text := unready
	switch err := c.Authenticate(); {
	case err == nil:
		text += problems
	case errs.KindOf(err) == errs.Unavailable || errs.KindOf(err) == errs.Timeout:
		// If there is no key, or the daemon does not answer, the credential
		// can't be verified.
	case errs.KindOf(err) != errs.Unauthenticated || auth.HasCredential(c.Request().Header):
		return err // an invalid credential gets the usual refusal
	}
	return sendUnready(c, text)
}

// getChecks answers with the results of all checks.
func (h *handler) getChecks(c *rest.Call) error {
	if err := c.Authenticate(); err != nil {
		return err
	}
	if h.Administers == nil || !h.Administers(c.Client()) {
		return errs.New(errs.Denied, "only root and SlurmUser may see the checks of the gateway")
	}
	lines, problems := h.checks(c)
	for _, scopes := range h.Scopes {
		lines += "scopes: " + scopes + "\n"
	}
	if h.TokenDigests != nil {
		lines += h.TokenDigests(c.Context()) + "\n"
	}
	if problems == "" {
		return c.SendText(http.StatusOK, "ok\n"+lines)
	}
	return sendUnready(c, unready+lines)
}

// checks runs the checks. It returns a line for each, and the lines of those
// that have a problem.
func (h *handler) checks(c *rest.Call) (lines, problems string) {
	if h.Ready == nil {
		return "", ""
	}
	for _, check := range h.Ready(c.Context()) {
		line := check.String() + "\n"
		if lines += line; check.Problem != "" {
			problems += line
		}
	}
	return lines, problems
}

func sendUnready(c *rest.Call, text string) error {
	c.Header().Set("Retry-After", rest.RetryAfter)
	return c.SendText(http.StatusServiceUnavailable, text)
}
