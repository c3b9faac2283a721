package rest

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
)

// waitParams is for what a request waits, and how long.
type waitParams struct {
	until     string    // api.UntilEnded, api.UntilRunning, or "" for any change
	deadline  time.Time // zero if it may not wait
	hasAnswer bool      // the client has an answer to this request already (If-None-Match)
}

// readWait removes the parameters for waiting from the other parameters, and sets
// c.waits.
func (c *Call) readWait(doc *schema.Value) error {
	if !c.route.Waits() {
		return nil
	}
	until, hasUntil := "", false
	if c.route.Ending {
		var err error
		if until, hasUntil, err = takeText(doc, api.UntilParameter.Name); err != nil {
			return err
		}
		if hasUntil && until != api.UntilEnded && until != api.UntilRunning {
			return errs.New(errs.Invalid, "expected %q or %q, got %q", api.UntilEnded, api.UntilRunning, schema.Shorten(until)).
				WithSource(InQuery + api.UntilParameter.Name)
		}
	}
	text, ok, err := takeText(doc, api.WaitParameter.Name)
	if err != nil {
		return err
	}
	limit, preferred := preferredWait(c.r.Header.Values("Prefer"))
	switch {
	case ok:
		if limit, err = parseWait(text); err != nil {
			return err
		}
	case preferred:
		c.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(min(limit, c.server.MaxWait)/time.Second)))
		c.Header().Add("Vary", "Prefer")
	case hasUntil:
		return errs.New(errs.Invalid, "the parameter has an effect only together with wait").WithSource(InQuery + api.UntilParameter.Name).
			WithHint("add wait=30s, for example")
	default:
		return nil
	}
	if limit = min(limit, c.server.MaxWait); limit <= 0 {
		c.waits = &waitParams{until: until}
		return nil
	}
	// Clients that have begun to wait together do not all come back together.
	limit -= rand.N(limit/16 + 1)
	if left, ok := c.untilExpiry(); ok {
		limit = min(limit, left) // then the controller refuses the token
	}
	c.waiting.holds = true
	c.waits = &waitParams{until: until, deadline: c.startedAt.Add(limit), hasAnswer: c.r.Header.Get("If-None-Match") != "" && until == ""}
	if c.dropFutureTime(doc) {
		c.Warn(InQuery+"update_time", "ignored: the time is in the future")
	}
	return nil
}

// parseWait parses a time with a unit, or a number of seconds.
func parseWait(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if n, notNumber := strconv.ParseUint(text, 10, 31); notNumber == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < 0 {
		return 0, errs.New(errs.Invalid, "expected a time such as \"30s\", got %q", schema.Shorten(text)).WithSource(InQuery + api.WaitParameter.Name)
	}
	return d, nil
}

// preferredWait returns the time that a client prefers to wait (RFC 7240, 4.3).
func preferredWait(lines []string) (limit time.Duration, ok bool) {
	for _, line := range lines {
		for preference := range splitUnquoted(line, ',') {
			name, value, _ := strings.Cut(strings.Trim(preference, " \t"), "=")
			n, err := strconv.ParseUint(strings.Trim(value, ` "`), 10, 31)
			if strings.EqualFold(strings.TrimRight(name, " "), "wait") && err == nil {
				return time.Duration(n) * time.Second, true
			}
		}
	}
	return 0, false
}

// clockMargin is how far the controller's clock may be ahead of this one.
const clockMargin = time.Minute

// dropFutureTime removes the parameter update_time if it is in the future, and
// reports whether it was. To the controller, nothing has changed after this time
// until the time has passed.
func (q *request) dropFutureTime(doc *schema.Value) bool {
	for i, v := range doc.Items {
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if v.Key == "update_time" && err == nil && time.Unix(n, 0).After(q.startedAt.Add(clockMargin)) {
			doc.Items = append(doc.Items[:i:i], doc.Items[i+1:]...)
			return true
		}
	}
	return false
}
