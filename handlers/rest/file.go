package rest

import (
	"net/http"
	"strings"

	"schedrestd/internal/asset"
)

// SendFile answers with a file of a page for browsers, which has the given
// Content-Security-Policy. The path is the page's, without the leading slash.
func (c *Call) SendFile(path string, file asset.File, policy string) error {
	if strings.HasSuffix(c.r.URL.Path, "/") { // the page refers to its other files by relative names
		up := "../" + path[strings.LastIndexByte(path, '/')+1:]
		c.Header().Set("Location", up)
		return c.SendText(http.StatusPermanentRedirect, "see "+up+"\n")
	}
	c.SetContentType(file.Media)
	h := c.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "same-origin") // over plain HTTP, only Referer tells package auth that a GET is the page's
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if file.Caching != "" {
		h.Set("Cache-Control", file.Caching)
	}
	body := file.Body
	if file.Gzipped {
		h.Set("Vary", "Accept-Encoding")
		if c.acceptsCoding("gzip") {
			h.Set("Content-Encoding", "gzip")
		} else {
			body = file.Plain()
		}
	}
	if file.Tag != "" {
		h.Set("ETag", "W/"+file.Tag)
		if c.hasTag(file.Tag) {
			h.Del("Content-Encoding")
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return c.SendString(body)
}
