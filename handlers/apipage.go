package handlers

import (
	"net/http"
	"strings"

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
		pages[path] = rest.Page{ID: "docs", Do: func(c *rest.Call) error { return sendFile(c, path, file) }}
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

// sendFile answers with a file of the pages below /docs.
func sendFile(c *rest.Call, path string, file apipage.File) error {
	if strings.HasSuffix(c.Request().URL.Path, "/") { // the page refers to its other files by relative names
		up := "../" + path[strings.LastIndexByte(path, '/')+1:]
		c.Header().Set("Location", up)
		return c.SendText(http.StatusPermanentRedirect, "see "+up+"\n")
	}
	c.SetContentType(file.Media)
	h := c.Header()
	h.Set("Content-Security-Policy", apipage.Policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	body := file.Body
	if file.Gzipped {
		h.Set("Vary", "Accept-Encoding")
		h.Set("Cache-Control", "public, max-age=3600")
		if c.AcceptsCoding("gzip") {
			h.Set("Content-Encoding", "gzip")
		} else {
			body = file.Plain()
		}
	}
	return c.SendString(body)
}
