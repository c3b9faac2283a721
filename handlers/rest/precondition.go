package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
)

// varyByUser names the headers with the credential of a request.
var varyByUser = strings.Join([]string{"Authorization",
	api.HeaderUser(schema.Sched), api.HeaderToken(schema.Sched), api.HeaderUser(schema.Slurm), api.HeaderToken(schema.Slurm)}, ", ")

// setTag sets the entity tag of an answer with these records (RFC 9110, 8.8.3).
// It returns true if the client has an answer with this tag already. Equal
// records have equal tags, in every worker. The tag is weak, because the answer
// also contains times and the address of the client.
//
// Only an answer of one piece has a tag, because the tag precedes the records.
func (c *Call) setTag(records []byte) (unchanged bool) {
	if len(records) == 0 {
		return false
	}
	sum := sha256.Sum256(records)
	return c.matchTag(entityTag(sum[:]))
}

// entityTag returns the tag of records with this hash, without the "W/".
func entityTag(sum []byte) string {
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// matchTag sets the entity tag of an answer, whose records have the given tag. It
// returns true if the client has an answer with this tag already. The link from a
// page to the next one belongs to the tag: with fields, another page may show the
// same records, and a page without a next one may get one.
func (c *Call) matchTag(tag string) (unchanged bool) {
	h := c.w.Header()
	if next := h.Get("Link"); next != "" {
		sum := sha256.Sum256([]byte(tag + next))
		tag = entityTag(sum[:])
	}
	h.Set("ETag", "W/"+tag)
	h.Set("Cache-Control", "private, no-cache")
	h.Add("Vary", varyByUser)
	return c.hasTag(tag)
}

// hasTag reports whether the client has an answer with this entity tag.
func (q *request) hasTag(tag string) bool {
	lines := q.r.Header.Values("If-None-Match")
	if isAny(lines) {
		return true
	}
	for _, line := range lines {
		for known := range splitUnquoted(line, ',') {
			if strings.TrimPrefix(strings.Trim(known, " \t"), "W/") == tag {
				return true
			}
		}
	}
	return false
}

// precondition evaluates If-Match and If-None-Match before a change (RFC 9110,
// 13.1 and 13.2). The gateway compares entity tags only before changes of some
// accounting records (CheckTags). Otherwise a tag never matches. A "*" matches if the object to change exists. If named is set, the
// request names the object, and precondition assumes that the object exists. A
// request that does not name an object creates a new one.
//
// precondition treats an invalid condition as false, because the client did not
// want an unconditional change.
func (q *request) precondition(named bool) error {
	if lines := q.r.Header.Values("If-Match"); len(lines) > 0 && !(named && isAny(lines)) && !(q.checksTags && areTags(lines)) {
		return errs.New(errs.PreconditionFailed, "the If-Match condition is false; nothing was changed").
			WithHint("entity tags are compared only before a change of one account, association, QOS or user; otherwise only If-Match: * can be true, and only if the resource exists")
	}
	lines := q.r.Header.Values("If-None-Match")
	if len(lines) == 0 || isAny(lines) && !named || areTags(lines) {
		return nil
	}
	return errs.New(errs.PreconditionFailed, "the If-None-Match condition is false; nothing was changed").
		WithHint("entity tags are not compared before a change, so any tag makes it true; " +
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
