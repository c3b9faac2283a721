package rest

import (
	"io"
	"mime"
	"net/http"
	"net/url"

	"schedrestd/api/schema"
	"schedrestd/internal/errs"
)

const mediaForm = "application/x-www-form-urlencoded"

// useBodyAsQuery replaces the query by the parameters in the request's body, if
// the operation has no body of its own, as slurmrestd does. If the gateway
// ignored such a body, a list would have too many entries, and a DELETE with
// {"signal": "USR1"} would kill the job.
func (c *Call) useBodyAsQuery() error {
	if c.r.ContentLength == 0 || c.route.Request != nil || c.r.Method == http.MethodPost {
		return nil
	}
	if c.r.ProtoMajor < 2 {
		c.keepAlive = false // a proxy may take the body of a GET for another request
	}
	if c.r.ContentLength > maxURI {
		return tooLongForQuery()
	}
	text, err := readText(io.LimitReader(c.body(), maxURI+1), 0)
	switch {
	case err != nil:
		return err
	case len(text) > maxURI:
		return tooLongForQuery()
	case text == "":
		return nil
	}
	query, err := c.queryIn(text)
	c.releaseBody()
	switch {
	case err != nil || query == "":
		return err
	case len(query) > maxURI: // the URL of the next page contains it
		return tooLongForQuery()
	case c.r.URL.RawQuery != "":
		return errs.New(errs.Malformed, "the request has parameters in its query and in its body").WithSource("#").
			WithHint("send all of them in the query")
	}
	c.r.URL.RawQuery = query
	if c.Header().Get("Content-Location") != "" {
		c.Header().Set("Content-Location", c.contentLocation())
	}
	return checkURLToken(c.r.URL) // the answer may contain URLs with these parameters
}

func tooLongForQuery() error {
	return errs.New(errs.TooLarge, "the body is too large").WithHint("this operation accepts at most %d bytes of parameters", maxURI)
}

// queryIn returns the query with the parameters in a body, which is a form, or an
// object in one of the formats of bodies.
func (c *Call) queryIn(text string) (string, error) {
	contentType, _, _ := singleValue(c.r.Header, "Content-Type")
	if kind, _, err := mime.ParseMediaType(contentType); err == nil && kind == mediaForm {
		return text, c.checkBodyCoding()
	}
	format, err := c.requestFormat()
	if err != nil {
		return "", err
	}
	if err := c.reserveParsed(int64(len(text)) + format.memory(text, c.bodyLimits())); err != nil {
		return "", err
	}
	doc, err := format.parse(c.ctx, text, c.bodyLimits())
	switch {
	case err != nil:
		return "", syntaxError(format.name, err)
	case doc.Kind != schema.Map && doc.Blank():
		return "", nil
	case doc.Kind != schema.Map:
		return "", errs.New(errs.Invalid, "the body of this operation is not an object with parameters").WithSource("#")
	}
	query := url.Values{}
	for i := range doc.Items {
		name := doc.Items[i].Key
		values, ok := parameterValues(&doc.Items[i])
		if !ok {
			return "", errs.New(errs.Invalid, "the value is neither a text, a number, a Boolean nor a list of them").WithSource("#/" + name)
		}
		// Without an empty condition, a DELETE could do more than the client wants.
		if len(values) == 0 && c.r.Method == http.MethodDelete {
			values = []string{""}
		}
		for _, value := range values {
			query.Add(name, value)
		}
	}
	return query.Encode(), nil
}

// parameterValues returns the values of a parameter, and none if it is not set.
// A number may be an object with set, infinite and number.
func parameterValues(v *schema.Value) (values []string, ok bool) {
	switch v.Kind {
	case schema.Null:
		return nil, true
	case schema.Array:
		for i := range v.Items {
			item, ok := parameterValues(&v.Items[i])
			if !ok {
				return nil, false
			}
			values = append(values, item...)
		}
		return values, true
	case schema.Map:
		return numberIn(v.Items)
	}
	return []string{v.Text}, true
}

// numberIn returns the number in an object such as {"set": true, "number": 5}.
func numberIn(items []schema.Value) (values []string, ok bool) {
	isSet := true
	for _, item := range items {
		switch {
		case item.Key == "set" && item.Kind == schema.Bool:
			isSet = item.Text == "true"
		case item.Key == "infinite" && item.Kind == schema.Bool:
			if item.Text == "true" {
				return []string{"infinite"}, isSet
			}
		case item.Key == "number" && (item.Kind == schema.Number || item.Kind == schema.Text):
			values = []string{item.Text}
		default:
			return nil, false
		}
	}
	if !isSet {
		return nil, true
	}
	return values, true
}
