package handlers

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"schedrestd/handlers/apipage"
)

// apiPages returns the page at /docs and the page's other files, keyed by path.
// They are static. Like the OpenAPI document that the page shows, they are
// served without a token.
func (h *handler) apiPages() map[string]page {
	pages := map[string]page{}
	if !h.Docs {
		return pages
	}
	for path, file := range apipage.Files() {
		pages[path] = page{id: "docs", do: func(c *call) error { return c.sendFile(path, file) }}
	}
	pages[""] = page{id: "docs", onlyHTML: true, do: func(c *call) error { return c.redirectRoot() }}
	return pages
}

// redirectRoot answers a browser's request for the path / with a redirect to
// the page at /docs. The redirect is relative, because a proxy may serve the
// gateway below another path.
func (c *call) redirectRoot() error {
	c.w.Header().Set("Vary", "Accept")
	c.w.Header().Set("Location", "docs")
	return c.sendText(http.StatusFound, "see docs\n")
}

// sendFile answers with a file of the pages below /docs.
func (c *call) sendFile(path string, file apipage.File) error {
	if strings.HasSuffix(c.r.URL.Path, "/") { // the page refers to its other files by relative names
		up := "../" + path[strings.LastIndexByte(path, '/')+1:]
		c.w.Header().Set("Location", up)
		return c.sendText(http.StatusPermanentRedirect, "see "+up+"\n")
	}
	h := c.header(file.Media)
	h.Set("Content-Security-Policy", apipage.Policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	body := file.Body
	if file.Gzipped {
		h.Set("Vary", "Accept-Encoding")
		h.Set("Cache-Control", "public, max-age=3600")
		if q, listed := codingQuality(preferences(c.r.Header.Values("Accept-Encoding")), "gzip"); listed && q > 0 {
			h.Set("Content-Encoding", "gzip")
		} else {
			body = file.Plain()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	return c.copyFile(body)
}

// copyFile sends a body in small pieces.
func (c *call) copyFile(body string) error {
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	reader := struct{ io.Reader }{strings.NewReader(body)} // hides WriteTo, which would copy the whole body
	if _, err := io.CopyBuffer(struct{ io.Writer }{c.w}, reader, make([]byte, 16<<10)); err != nil {
		c.abort(err)
	}
	return nil
}
