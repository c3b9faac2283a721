package site

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// version is the version of the API that all requests use.
const version = "v0.0.43"

// Gateway is a minimal client of schedrestd.
type Gateway struct {
	base   string // http://HOST:PORT
	token  string
	client *http.Client
}

// NewGateway returns a client of the gateway at the URL base, which has the
// form "http://HOST:PORT". The client sends the given token.
func NewGateway(base, token string) Gateway {
	// Proxies in the user's environment are not used, because the token must
	// not leave this machine.
	return Gateway{base: base, token: token, client: &http.Client{Transport: &http.Transport{}}}
}

// URL returns the address of a resource. The segments are the parts of the path
// that follow the version.
func (g Gateway) URL(plugin string, segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return g.base + "/" + plugin + "/" + version + "/" + strings.Join(segments, "/")
}

// A problem is an element of the list of errors in an answer.
type problem struct {
	Description string `json:"description"`
	Error       string `json:"error"`
}

// call sends a request and decodes the answer into out. If body is not nil, it
// is sent as JSON.
func (g Gateway) call(ctx context.Context, method, url string, body, out any) error {
	var reqBody io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reqBody = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reqBody)
	if err != nil {
		return err
	}
	req.Header.Set("X-SCHED-USER-TOKEN", g.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return ResponseError(method, url, resp.Status, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return errs.Wrap(err, errs.BadAnswer, "%s %s", method, url)
	}
	return nil
}

// ResponseError returns the error for an answer whose status is not 200. The
// argument text is the body of the answer. The error contains the method, the
// URL, the status, and the errors in the body.
func ResponseError(method, url, status string, text []byte) error {
	var envelope struct {
		Errors []problem `json:"errors"`
	}
	words := []string{status}
	if json.Unmarshal(text, &envelope) == nil {
		for _, p := range envelope.Errors {
			words = append(words, p.Error, p.Description)
		}
	}
	words = slices.DeleteFunc(slices.Compact(words), func(s string) bool { return s == "" })
	return errs.New(errs.BadAnswer, "%s %s: %s", method, url, strings.Join(words, ": "))
}

var errEmpty = errs.New(errs.BadAnswer, "the answer is empty")
