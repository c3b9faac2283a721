package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// slurmctld makes the parts of a change one after another. If it refuses one of
// them, those before it stay. Its error does not say which.

// explainPartly adds to the error of a refused change which fields of the request
// were changed nevertheless. It compares the record before the change, nil if
// unknown, with what read returns now. The argument list is the place of the
// record's fields in the names of the body's fields, and shown maps those that a
// record shows under another name.
func explainPartly[T any](c *rest.Call, err error, table *schema.ObjectType[T], before *T, read func() (*T, error), list string, shown map[string]string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Number == 0 || before == nil || len(c.Fields()) < 2 {
		return err
	}
	after, readErr := read()
	if readErr != nil || after == nil {
		return err
	}
	old, now := rendered(c, table, before), rendered(c, table, after)
	var changed []string
	for _, field := range c.Fields() {
		name := strings.TrimPrefix(field, list)
		at := name
		if other := shown[name]; other != "" {
			at = other
		}
		if value := fieldAt(now, at); value != nil && !reflect.DeepEqual(value, fieldAt(old, at)) {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return err
	}
	explained, nevertheless := *e, "; changed nevertheless: "+truncateList(strings.Join(changed, ", "))
	explained.Message += nevertheless
	if e.Detail != "" { // annotateJob may take it as the message
		explained.Detail += nevertheless
	}
	return &explained
}

// rendered returns a record as a client sees it.
func rendered[T any](c *rest.Call, table *schema.ObjectType[T], record *T) any {
	var text bytes.Buffer
	w := schema.NewJSONWriter(&text, schema.Compact)
	table.Renderer(c.View())(w, record)
	if w.Flush() != nil {
		return nil
	}
	var value any
	if json.Unmarshal(text.Bytes(), &value) != nil {
		return nil
	}
	return value
}

// fieldAt returns a value in a record, such as the one of "nodes/configured", or
// nil if there is none.
func fieldAt(value any, path string) any {
	for name := range strings.SplitSeq(path, "/") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// setFields returns the number of fields that a change sets.
func setFields(d *model.JobDesc) (n int) {
	for _, field := range reflect.ValueOf(*d).Fields() {
		if !field.IsZero() && !(field.Kind() == reflect.Slice && field.Len() == 0) {
			n++
		}
	}
	return n
}

// shownJobFields are the fields of a change that a job shows under another name.
var shownJobFields = map[string]string{
	"begin_time":    "eligible_time",
	"constraints":   "features",
	"maximum_cpus":  "max_cpus",
	"maximum_nodes": "max_nodes",
	"minimum_cpus":  "cpus",
	"minimum_nodes": "node_count",
	"nodes":         "node_count",
	"reservation":   "resv_name",
}

// oneJob returns the record of the job with a number, or nil if the id is not the
// number of a single job.
func (h *handler) oneJob(c *rest.Call, id string) (row *api.JobRow, err error) {
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return nil, nil
	}
	_, err = h.Controller.Job(c.Context(), c.Credential(), uint32(n), model.Query{Flags: model.ShowAll}, func(j *model.Job) error {
		if j.StepID.JobID == uint32(n) {
			copied := *j
			row = &api.JobRow{Job: &copied, Users: h.Users}
		}
		return nil
	})
	return row, err
}
