package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"schedrestd/internal/origin"
)

const (
	pageLifetime = time.Minute // how long the answer of the controller for a page is kept for the pages after it
	maxLifetime  = time.Minute // maximum time for which an answer is kept
)

// setOrigin determines how old the controller's data in the answer may be: as
// old as the request says (RFC 9111, 5.2.1), or, in a list, as old as the
// configuration says. A page may contain data that was requested for the page
// before it.
func (c *Call) setOrigin() {
	if c.waits == nil && (c.route.Accounting || c.route.Util || c.r.Method != http.MethodGet && c.r.Method != http.MethodHead || c.route.Changing()) {
		return
	}
	limit := &origin.Origin{Digest: c.route.Paged}
	age, stated := maxAge(c.r.Header.Values("Cache-Control"))
	switch {
	case stated:
	case c.part != nil && c.part.after != "":
		age = pageLifetime
	case c.route.Paged:
		age = c.server.MaxAge
	}
	if age > 0 {
		limit.After = time.Now().Add(-age)
	}
	if c.waiting.listens() {
		limit.After, age = c.waiting.after, time.Since(c.waiting.after)
	}
	switch limit.Keep = min(age, maxLifetime); {
	case c.part != nil:
		limit.Keep = pageLifetime
	case c.Waits():
		limit.Keep = max(limit.Keep, c.server.WatchInterval)
	}
	c.ctx = origin.With(c.r.Context(), limit)
}

// rereadLifetime is how long a list is kept for the same request.
const rereadLifetime = 5 * time.Second

// ReadTwice lets the operation read a list twice at the cost of one request to the
// controller, if there is memory for the list.
func (c *Call) ReadTwice() {
	o := origin.From(c.ctx)
	if o == nil {
		return
	}
	if o.After.IsZero() {
		o.After = c.startedAt
	}
	o.Keep = max(o.Keep, rereadLifetime)
}

// Recent returns a context for questions to the controller whose answers may be that
// old, so that requests that ask the same share them.
func (c *Call) Recent(age time.Duration) context.Context {
	return origin.With(c.r.Context(), &origin.Origin{After: time.Now().Add(-age), Keep: age})
}

// maxAge returns the maximum age of an answer according to the Cache-Control
// header of a request. It ignores directives that it does not know.
func maxAge(lines []string) (age time.Duration, stated bool) {
	for _, line := range lines {
		for directive := range splitUnquoted(line, ',') {
			name, value, _ := strings.Cut(strings.Trim(directive, " \t"), "=")
			switch strings.ToLower(name) {
			case "no-cache", "no-store":
				return 0, true
			case "max-age":
				n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
				if errors.Is(err, strconv.ErrSyntax) { // and not that n would be larger
					n = 0
				}
				if d := time.Duration(n) * time.Second; !stated || d < age {
					age = d
				}
				stated = true
			}
		}
	}
	return age, stated
}

// setAge sets the header Age if the answer contains data that is older than the
// request.
func (a *answer) setAge() {
	if age := origin.From(a.ctx).Age(); age > 0 {
		a.w.Header().Set("Age", strconv.Itoa(int((age+time.Second-1)/time.Second)))
	}
}
