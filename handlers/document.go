package handlers

import (
	"net/http"
	"strconv"

	"schedrestd/api/openapi"
	"schedrestd/internal/feature"
)

// documentPages returns the pages with the OpenAPI document, keyed by path.
// Clients need no token for these pages, because the tools that fetch the
// document have no token yet. The document is generated from the tables of this
// program. It reveals only the supported paths, versions and authentication
// methods.
//
// A path may have a suffix for the format. Without a suffix, the Accept header
// determines the format.
func (h *handler) documentPages() map[string]page {
	newPage := func(media ...string) page { return page{id: "openapi", media: media, do: h.getDocument} }
	return map[string]page{
		"openapi":      newPage(bodyMedia...),
		"openapi/v3":   newPage(bodyMedia...),
		"openapi.json": newPage(mediaJSON),
		"openapi.yaml": newPage(mediaYAML, mediaXYAML),
	}
}

// getDocument sends the document. The gateway encodes it once in each format
// and coding, and then keeps the result in memory. Generating and compressing
// the document takes several hundred times as long as sending it, and anyone
// can request it.
func (h *handler) getDocument(c *call) error {
	body, err := h.document.encoded(c)
	if err != nil {
		return err
	}
	header := c.header(c.media)
	if c.coding.name != "" {
		header.Set("Content-Encoding", c.coding.name)
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(http.StatusOK)
	_, err = c.w.Write(body)
	return err
}

// documentOptions returns the options for a document about the operations that
// this gateway serves.
func (h *handler) documentOptions() openapi.Options {
	o := openapi.Options{
		Parsers: h.Parsers, Names: h.Names, Content: h.Content,
		Statuses: h.Statuses, Release: h.Release, YAML: true,
	}
	if h.Accounting == nil {
		o.Content &^= feature.Accounting
	}
	if h.Auth.JWT {
		o.Auth |= feature.JWT
	}
	if h.Auth.Local {
		o.Auth |= feature.Local
	}
	return o
}
