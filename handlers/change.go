package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
)

// changeResults contains the results of a request that changes several records
// one by one.
type changeResults struct {
	kind       string // "reservation"
	list       string // place of the records in the body, "#/reservations/"; "" for a body that is a single record
	names      []string
	errs       []error
	numChanged int
	numFailed  int
}

// errNotTried is the error for a record that changeEach did not try to change,
// because it had already stopped.
var errNotTried = errs.New(errs.Unavailable, "not tried, because the change before it failed")

// changeEach calls the function do to change one record after another. If a
// daemon refuses a change, changeEach continues with the next record. After any
// other failure it stops.
//
// It returns the results if at least one record was changed, or if several
// failed and the client is authenticated. Otherwise it returns only an error.
func changeEach(c *rest.Call, kind, list string, names []string, do func(i int) error) (*changeResults, error) {
	e := &changeResults{kind: kind, list: list, names: names, errs: make([]error, len(names))}
	_, err := rest.MakeChange(c, strings.Join(names, " "), func() (*changeResults, error) {
		var first error
		stopped := false
		for i := range names {
			if stopped {
				e.errs[i] = errNotTried
				continue
			}
			err := do(i)
			if err == nil {
				e.numChanged++
				continue
			}
			err = annotateNamed(err, kind, names[i], e.source(i))
			daemonErr, ok := errors.AsType[*errs.Error](err)
			stopped = !ok || daemonErr.Number == 0 && daemonErr.Source == ""
			e.errs[i] = err
			e.numFailed++
			if first == nil {
				first = err
			}
		}
		if e.numChanged == 0 {
			return nil, first
		}
		return e, nil
	}, (*changeResults).result)
	if e.numChanged > 0 || e.numFailed > 1 && errs.KindOf(err) != errs.Unauthenticated {
		return e, nil
	}
	return nil, err
}

// source returns the place of record i's name in the body.
func (e *changeResults) source(i int) string { return sourceOf(e.list, i, "name") }

// status returns the status of the first failure, or 200 if there was none.
func (e *changeResults) status() int {
	for _, err := range e.errs {
		if err != nil {
			return rest.Status(err)
		}
	}
	return http.StatusOK
}

// result returns the audit log's summary of the changes.
func (e *changeResults) result() rest.Result {
	var r rest.Result
	var objects []string
	for i, name := range e.names {
		if err := e.errs[i]; err != nil {
			f := rest.FailureResult(err)
			name += ":" + f.Code
			if r.Code == "" {
				r.Status, r.Code, r.Number = f.Status, "partial", f.Number
			}
		}
		objects = append(objects, name)
	}
	r.Objects = strings.Join(objects, " ")
	return r
}

// envelope returns the envelope of the answer. It contains an error for each
// record that was not changed. If there are such records, it also contains a
// warning for each record that was changed.
func (e *changeResults) envelope(c *rest.Call) api.Envelope {
	code := e.status()
	var list []api.Error
	for i, err := range e.errs {
		if err != nil {
			for _, p := range c.Problems(err) {
				if p.Source == "" {
					p.Description, p.Source = fmt.Sprintf("%s %s: %s", e.kind, e.names[i], p.Description), e.source(i)
				}
				p.Description, p.Source = rest.Redact(p.Description), rest.Redact(p.Source)
				list = append(list, p)
			}
		} else if code != http.StatusOK {
			c.Warn(e.source(i), "%s %s was changed, although another was not", e.kind, e.names[i])
		}
	}
	envelope := c.Envelope()
	envelope.Errors = list
	return envelope
}

// nothingToChange reports whether a list of records is empty, although the body
// has the list, and the client may expect a success. It adds a warning.
func nothingToChange[T any](c *rest.Call, list string, records []T) bool {
	nothing := records != nil && len(records) == 0 && c.Lenient(api.NoRecords)
	if nothing {
		c.Warn(strings.TrimSuffix(list, "/"), "the list is empty, so nothing is changed")
	}
	return nothing
}

// checkNames returns an error if the list is empty, or if a record has no name.
// It is called before anything is changed.
func checkNames(kind, list string, names []string) error {
	if len(names) == 0 {
		return errs.New(errs.Invalid, "the body names no %s", kind).WithSource(strings.TrimSuffix(list, "/"))
	}
	for i, name := range names {
		if strings.TrimSpace(name) == "" {
			return errs.New(errs.Invalid, "a %s needs a name", kind).WithSource(sourceOf(list, i, "name"))
		}
		// The second change would be compared with the state before the first.
		if slices.Contains(names[:i], name) {
			return errs.New(errs.Invalid, "the %s %s is named twice", kind, schema.Shorten(name)).WithSource(sourceOf(list, i, "name"))
		}
	}
	return nil
}

// sourceOf returns the place of a field of record i in the body.
func sourceOf(list string, i int, field string) string {
	if list == "" {
		return "#/" + field
	}
	return fmt.Sprintf("%s%d/%s", list, i, field)
}

// changeNamed calls the function do to change an object, and then answers
// without content. The name argument is the object's name, and source is the
// place of this name in the request.
func (h *handler) changeNamed(c *rest.Call, kind, name, source string, do func() error) error {
	_, err := rest.MakeChange(c, name, func() (string, error) { return name, annotateNamed(do(), kind, name, source) },
		func(name string) rest.Result { return rest.Result{Objects: name} })
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.Envelope()})
}

// noChange returns the error for a body that has no field to change. If the
// client may expect a success, noChange adds a warning instead and returns nil.
// Then the controller still receives the change, and refuses it if there is no
// such object, or if the user may not change it.
func noChange(c *rest.Call, kind, name, source string) error {
	const text = "the body has no field to change"
	if c.Lenient(api.NoChange) {
		c.Warn(source, text+", so nothing is changed")
		return nil
	}
	return errs.New(errs.Invalid, "%s %s: "+text, kind, name).WithSource(source)
}
