package handlers

import (
	"net/http"

	"schedrestd/api/openapi"
	"schedrestd/plugin"
)

// documentPages are the paths of the OpenAPI document. It is served without a token: it is read off the
// tables of this program, tells nothing of the site but which paths, versions and ways to
// authenticate there are, and the tools that fetch it have no token yet. In the paths with
// a suffix that decides the format, in the others Accept.
func (h *handler) documentPages() map[string]page {
	as := func(media ...string) page { return page{id: "openapi", media: media, do: h.getDocument} }
	return map[string]page{
		"openapi":      as(bodyMedia...),
		"openapi/v3":   as(bodyMedia...),
		"openapi.json": as(mediaJSON),
		"openapi.yaml": as(mediaYAML, mediaXYAML),
	}
}

// getDocument writes the document. What there is to write is collected when it is first asked for,
// not when a worker starts, and kept: anybody can ask, and collecting it takes ten times what
// writing does.
func (h *handler) getDocument(c *call) error {
	doc, err := h.document()
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, doc.Write)
}

// described says what is served here.
func (h *handler) described() openapi.Options {
	o := openapi.Options{
		Parsers: h.Parsers, Names: h.Names, Content: h.Content,
		Statuses: h.Statuses, Release: h.Release, YAML: true,
	}
	if h.Accounting == nil {
		o.Content &^= plugin.Accounting
	}
	if h.Auth.JWT {
		o.Auth |= plugin.JWT
	}
	if h.Auth.Local {
		o.Auth |= plugin.Local
	}
	return o
}
