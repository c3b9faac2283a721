package handlers

import (
	"net/http"

	"schedrestd/handlers/apipage"
	"schedrestd/handlers/rest"
)

// apiPages returns the page at /docs and the page's other files, keyed by path.
// They are static. Like the OpenAPI document that the page shows, they are
// served without a token.
func (h *handler) apiPages() map[string]rest.Page {
	pages := map[string]rest.Page{}
	if !h.Docs {
		return pages
	}
	for path, file := range apipage.Files() {
		pages[path] = rest.Page{ID: "docs", Do: func(c *rest.Call) error { return c.SendFile(path, file, apipage.Policy) }}
	}
	pages[""] = rest.Page{ID: "docs", OnlyHTML: true, Do: redirectRoot}
	return pages
}

// redirectRoot answers a browser's request for the path / with a redirect to
// the page at /docs. The redirect is relative, because a proxy may serve the
// gateway below another path.
func redirectRoot(c *rest.Call) error {
	c.Header().Set("Vary", "Accept")
	c.Header().Set("Location", "docs")
	return c.SendText(http.StatusFound, "see docs\n")
}
