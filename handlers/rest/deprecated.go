package rest

import (
	"net/http"
	"strconv"
	"time"
)

// Deprecation says that clients should no longer use a version of the API.
type Deprecation struct {
	Since  time.Time // from when the version is deprecated; may be in the future
	Sunset time.Time // from when the version may be gone; zero if this is not known
}

// announceDeprecation adds the headers Deprecation (RFC 9745) and Sunset (RFC
// 8594) if the path of the request names a version that is deprecated. Every
// answer has them, as an error may be all that a client gets.
func (c *Call) announceDeprecation() {
	if !c.versioned {
		return
	}
	d, ok := c.server.Deprecated[c.view.Version]
	if !ok {
		return
	}
	c.Header().Set("Deprecation", "@"+strconv.FormatInt(d.Since.Unix(), 10))
	if !d.Sunset.IsZero() {
		c.Header().Set("Sunset", d.Sunset.UTC().Format(http.TimeFormat))
	}
}
