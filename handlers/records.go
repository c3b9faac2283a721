package handlers

import (
	"strconv"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// recordsOf returns the records that the filter selects. It requests them from
// the daemon when the stream is read.
func recordsOf[T any](h *handler, c *rest.Call, filter model.Filter[T]) schema.Stream[T] {
	return func(each func(*T) error) error {
		return h.Accounting.List(c.Context(), c.Credential(), model.List(filter, each))
	}
}

// jobFilter returns a filter for the records of a job of this cluster.
func (h *handler) jobFilter(flags model.JobFilterFlags, job model.JobSelection) model.AccountingJobFilter {
	return model.AccountingJobFilter{Flags: flags, Clusters: []string{h.Cluster}, Steps: []model.SelectedStep{job.Selected()}}
}

// records requests the names of trackable resources and of qualities of
// service, because other records contain only their ids.
func (h *handler) records(c *rest.Call) (*api.Records, error) {
	// Include deleted qualities of service, because old records still contain
	// their ids.
	list := func(l model.Listing) error { return h.Accounting.List(c.Context(), c.Credential(), l) }
	return h.namesFrom(list, model.QOSFilter{Flags: model.QOSWithDeleted})
}

// namesFrom requests names: those of all trackable resources, and those of the
// qualities of service that the filter selects. It sends the requests with the
// function list.
func (h *handler) namesFrom(list func(model.Listing) error, filter model.QOSFilter) (*api.Records, error) {
	r := &api.Records{TRES: map[uint32]model.TRES{}, QOS: map[uint32]string{}, Users: h.Users}
	// slurmdbd marks dynamic_offset as deleted, but lists and stores it.
	err := list(model.List(model.TRESFilter{WithDeleted: true}, func(t *model.TRES) error {
		r.TRES[t.ID] = model.TRES{Type: t.Type, Name: t.Name}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	err = list(model.List(filter, func(q *model.QOS) error {
		r.QOS[q.ID] = q.Name
		return nil
	}))
	return r, err
}

// findNamed returns the record of a name from a list that the daemon has
// selected by this name. Of several, it prefers the one in the same spelling. If
// there is none, the error is errs.NotFound. The whole list is always read,
// because a daemon may report an error at its end.
func findNamed[T any](kind, name string, list schema.Stream[T], nameOf func(*T) string) (found *T, err error) {
	err = list(func(record *T) error {
		if found == nil || nameOf(record) == name {
			copied := *record
			found = &copied
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, errs.New(errs.NotFound, "there is no %s %q", kind, name)
	}
	return found, nil
}

// usagePeriod completes a period for which a client requests usage. If the
// client sends only a start, the period ends now.
func usagePeriod(c *rest.Call, start, end *model.Time) {
	switch {
	case *start != 0 && *end == 0:
		*end = model.At(c.Started())
	case *start > *end:
		*start, *end = *end, *start
	}
}

// numberKey returns the key of a record that is identified by a number, for
// pages. The keys are ordered as the numbers.
func numberKey(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	return "00000000000000000000"[len(digits):] + digits
}

// rowsOf returns a Stream of the rows for the records of a list. A row is valid only
// until the next one.
func rowsOf[T, R any](list schema.Stream[T], row func(*T) R) schema.Stream[R] {
	return func(each func(*R) error) error {
		var current R
		return list(func(record *T) error {
			current = row(record)
			return each(&current)
		})
	}
}

// streamOf returns a Stream of the elements of list.
func streamOf[T any](list []T) schema.Stream[T] {
	return func(each func(*T) error) error {
		for i := range list {
			if err := each(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
}
