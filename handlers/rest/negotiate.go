package rest

import (
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// acceptsCoding reports whether the client's Accept-Encoding allows a coding.
func (q *request) acceptsCoding(name string) bool {
	weight, listed := codingQuality(preferences(q.r.Header.Values("Accept-Encoding")), name)
	return listed && weight > 0
}

// Negotiate selects the media type and the content coding of the answer. The
// media type is one of offers. If the client accepts none of the offers, or
// none of our codings, Negotiate returns an error.
//
// Errors have the selected media type if it is a format of bodies, and otherwise
// JSON. The answer with its own error is JSON if the client accepts none
// of our formats. It is not compressed if the client accepts none of our codings.
func (c *Call) Negotiate(offers []string) error {
	c.w.Header().Set("Vary", "Accept, Accept-Encoding")
	accept := preferences(c.r.Header.Values("Accept"))
	c.media = choose(accept, offers)
	found := c.media != ""
	c.follows = c.media == MediaEvents
	c.table = c.media == MediaCSV
	if !found {
		c.media = choose(accept, BodyMedia)
	}
	if !slices.Contains(BodyMedia, c.media) {
		c.media = MediaJSON
	}
	var ok bool
	if c.coding, ok = chooseCoding(preferences(c.r.Header.Values("Accept-Encoding"))); !ok {
		return errs.New(errs.NotAcceptable, "none of the content codings in Accept-Encoding is supported").
			WithHint("supported: %s", strings.Join(append(slices.Clone(codings), identity), ", "))
	}
	if !found {
		return errs.New(errs.NotAcceptable, "none of the formats in Accept is supported").
			WithHint("supported: %s", strings.Join(offers, ", "))
	}
	return nil
}
