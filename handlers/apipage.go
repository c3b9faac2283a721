package handlers

import (
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
	return pages
}
