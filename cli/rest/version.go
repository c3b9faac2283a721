package rest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
)

// oldestVersion is the oldest version that this client supports.
const oldestVersion = api.V42

// candidates returns the versions that this client supports, in the order of
// preference: the newest first, and previews last.
func candidates() []schema.Version {
	var released, previews []schema.Version
	for _, v := range slices.Backward(api.Versions) {
		switch {
		case v > api.Latest:
			previews = append(previews, v)
		case v >= oldestVersion:
			released = append(released, v)
		}
	}
	return append(released, previews...)
}

// negotiate determines the first of candidates that the server supports, and whether
// the server's paths begin with slurm or sched. It sends pings for one version
// after the other, until the server supports one.
// The OpenAPI document also lists the versions, but it is megabytes long, and
// slurmrestd needs more time for this document than for all of the pings.
func (c *Client) negotiate(ctx context.Context) error {
	var attempted []string
	for _, v := range candidates() {
		c.version = v.String()
		attempted = append(attempted, c.version)
		for _, spelling := range []string{"slurm", "sched"} {
			resp, err := c.send(ctx, http.MethodGet, c.path(spelling, "ping/"), nil, nil, nil)
			if err != nil {
				return err
			}
			found, err := c.checkPing(resp)
			io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)) // so that the connection can be reused
			resp.Body.Close()
			if err != nil {
				return err
			}
			if found {
				c.spelling = spelling
				return nil
			}
		}
	}
	return errs.New(errs.Unsupported, "%s serves none of the API versions %s", c.addr, strings.Join(attempted, ", ")).
		WithHint("check the address: schedrestd and slurmrestd answer GET /openapi/v3; schedctl needs Slurm 24.11 or newer")
}

// checkPing reports whether the answer to a ping shows that the server supports
// the ping's version. If checkPing returns an error, negotiate sends no more
// pings.
func (c *Client) checkPing(resp *http.Response) (bool, error) {
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		return false, nil
	case code >= 300 && code < 400:
		return false, errs.New(errs.BadAnswer, "%s redirects to %s", c.addr, shorten(resp.Header.Get("Location"))).
			WithHint("redirects are not followed; give the final address with --url")
	case kindOf(code) == errs.Unauthenticated || code == http.StatusForbidden:
		return false, c.responseError(resp)
	case code == http.StatusBadRequest:
		return false, c.responseError(resp)
	case !isJSON(resp):
		return false, notJSON(resp)
	}
	return true, nil
}
