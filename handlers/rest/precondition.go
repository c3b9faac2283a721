package rest

import (
	"strings"

	"schedrestd/internal/errs"
)

// precondition evaluates If-Match and If-None-Match before a change (RFC 9110,
// 13.1 and 13.2). The gateway's resources have no entity tags, so a tag never
// matches. A "*" matches if the object to change exists. If named is set, the
// request names the object, and precondition assumes that the object exists. A
// request that does not name an object creates a new one.
//
// precondition treats an invalid condition as false, because the client did not
// want an unconditional change.
func (c *Call) precondition(named bool) error {
	if lines := c.r.Header.Values("If-Match"); len(lines) > 0 && !(named && isAny(lines)) {
		return errs.New(errs.PreconditionFailed, "the If-Match condition is false; nothing was changed").
			WithHint("resources have no entity tags; only If-Match: * can be true, and only if the resource exists")
	}
	lines := c.r.Header.Values("If-None-Match")
	if len(lines) == 0 || isAny(lines) && !named || areTags(lines) {
		return nil
	}
	return errs.New(errs.PreconditionFailed, "the If-None-Match condition is false; nothing was changed").
		WithHint("resources have no entity tags, so any tag makes it true; " +
			"* makes it true only for a request that creates something")
}

// isAny reports whether a condition is "*".
func isAny(lines []string) bool { return len(lines) == 1 && lines[0] == "*" }

// areTags reports whether a condition is a list of entity tags (RFC 9110,
// 8.8.3).
func areTags(lines []string) bool {
	for _, line := range lines {
		for tag := range splitUnquoted(line, ',') {
			tag = strings.TrimPrefix(strings.Trim(tag, " \t"), "W/")
			if len(tag) < 2 || tag[0] != '"' || strings.IndexByte(tag[1:], '"') != len(tag)-2 {
				return false
			}
		}
	}
	return true
}
