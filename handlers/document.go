package handlers

import (
	"sync"

	"schedrestd/api"
	"schedrestd/api/openapi"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/feature"
)

// documentPages returns the pages with the OpenAPI document, keyed by path.
// Clients need no token for these pages, because the tools that fetch the
// document have no token yet. The document is generated from the tables of this
// program. It reveals only the supported paths, versions and authentication
// methods.
//
// The document at /openapi is about all versions and spellings. Below the path of
// the controller's operations, such as /slurm/v0.0.42/openapi, is the document
// about one version and spelling, as slurmrestd with this version writes it.
//
// A path may have a suffix for the format. Without a suffix, the Accept header
// determines the format.
func (h *handler) documentPages() map[string]rest.Page {
	pages := map[string]rest.Page{
		"meta/versions": {ID: "versions", Media: rest.BodyMedia, Do: func(c *rest.Call) error { return c.SendCached(h.versions) }},
	}
	add := func(under string, o openapi.Options) {
		document := newDocument(o)
		newPage := func(media ...string) rest.Page {
			return rest.Page{ID: "openapi", Media: media, Do: func(c *rest.Call) error { return c.SendCached(document) }}
		}
		pages[under+"openapi"] = newPage(rest.BodyMedia...)
		pages[under+"openapi/v3"] = newPage(rest.BodyMedia...)
		pages[under+"openapi.json"] = newPage(rest.MediaJSON)
		pages[under+"openapi.yaml"] = newPage(rest.BodyMedia[1:]...)
	}
	options := h.documentOptions()
	add("", options)
	for _, p := range h.Parsers {
		for _, s := range h.Names.Spellings() {
			part := options
			part.Parsers, part.Names = []feature.Parser{p}, api.NamesOf(s)
			add(new(api.Endpoint).Segment(s)+"/"+p.Name()+"/", part)
		}
	}
	return pages
}

// newVersions returns the names of the served API versions, and which of them are
// previews, so that a client can choose one.
func (h *handler) newVersions() *rest.Cached {
	return rest.NewCached(func(e schema.Encoder) error {
		e.BeginObject()
		e.Key("versions")
		e.BeginArray()
		for _, p := range h.Parsers {
			e.String(p.Name())
		}
		e.EndArray()
		e.Key("previews")
		e.BeginArray()
		for _, p := range h.Parsers {
			if p.Preview() {
				e.String(p.Name())
			}
		}
		e.EndArray()
		e.Key(feature.Latest)
		e.String(feature.LatestOf(h.Parsers).Name())
		e.EndObject()
		return e.Err()
	})
}

// newDocument returns the document with these options. Generating and compressing
// the document takes several hundred times as long as sending it, and anyone can
// request it, so it is cached. Each cached copy of the document about all versions
// takes a few megabytes, or a tenth of that if compressed; those about one version
// take together as much.
func newDocument(o openapi.Options) *rest.Cached {
	collect := sync.OnceValues(func() (*openapi.Document, error) { return openapi.New(o) })
	return rest.NewCached(func(e schema.Encoder) error {
		document, err := collect()
		if err == nil {
			document.Write(e)
		}
		return err
	})
}

// documentOptions returns the options for a document about the operations that
// this gateway serves.
func (h *handler) documentOptions() openapi.Options {
	o := openapi.Options{
		Parsers: h.Parsers, Names: h.Names, Content: h.Content,
		Statuses: h.Statuses, Release: h.Release, Served: true,
	}
	if len(h.Deprecated) > 0 {
		o.Deprecated = func(v schema.Version) bool { _, ok := h.Deprecated[v]; return ok }
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
