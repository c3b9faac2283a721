package handlers

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// qosNumbers converts names to ids, because the daemon compares ids. A client
// may also send ids. An unknown id is not an error: it selects nothing.
func qosNumbers(r *api.Records, names []string, parameter string) ([]string, error) {
	var list []string
	for _, name := range names {
		id, err := r.QOSNumber(name)
		if err != nil {
			number, parseErr := strconv.ParseUint(name, 10, 32)
			if parseErr != nil {
				return nil, errs.New(errs.Invalid, "%v", err).WithSource(rest.InQuery + parameter)
			}
			id = uint32(number)
		}
		list = append(list, strconv.FormatUint(uint64(id), 10))
	}
	return list, nil
}

func (h *handler) getQOSList(c *rest.Call, p *api.QOSListParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := p.QOSFilter
	if filter.IDs, err = qosNumbers(r, filter.IDs, "id"); err != nil {
		return err
	}
	return h.sendQOS(c, r, recordsOf[model.QOS](h, c, filter))
}

func (h *handler) getQOS(c *rest.Call, p *api.QOSParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := onlyQOS(r, p.Name)
	if p.WithDeleted {
		filter.Flags = model.QOSWithDeleted
	}
	qos, err := findNamed("quality of service", p.Name, recordsOf[model.QOS](h, c, filter), func(q *model.QOS) string { return q.Name })
	if err != nil {
		return err
	}
	return h.sendQOS(c, r, schema.One(qos))
}

// onlyQOS returns the filter for a quality of service with a name or an id. The
// daemon decides about a name that differs from a known one in more than case.
func onlyQOS(r *api.Records, name string) model.QOSFilter {
	if id, err := r.QOSNumber(name); err == nil {
		return model.QOSFilter{IDs: []string{strconv.FormatUint(uint64(id), 10)}}
	}
	return model.QOSFilter{Names: []string{name}}
}

func (h *handler) sendQOS(c *rest.Call, r *api.Records, list schema.Stream[model.QOS]) error {
	body := api.QOSAnswer{Envelope: c.Envelope()}
	page := rest.Paged(c, &body.Envelope, func(q *model.QOS) string { return numberKey(uint64(q.ID)) }, list)
	body.QOS = rowsOf(page, func(q *model.QOS) api.QOSRow { return api.QOSRow{QOS: q, Records: r} })
	return rest.Send(c, http.StatusOK, api.QOSList, &body)
}

// postQOS creates and changes qualities of service.
func (h *handler) postQOS(c *rest.Call, _ *api.PostQOSParams) error {
	body, err := rest.ReadBody(c, api.QOSBody)
	if err != nil {
		return err
	}
	return h.answerEdit(c, editEach(h, c, qosKind, body.Records))
}

var qosKind = kind[api.QOSRow]{list: "qos", noun: "quality of service", name: qosName, put: putQOS, path: pathOf("qos/", qosName)}

func qosName(q *api.QOSRow) string {
	if q.Name == "" {
		return strconv.FormatUint(uint64(q.ID), 10)
	}
	return q.Name
}

const (
	qosDeleted uint32 = 1 << 13
	// qosChangesFlags are two flags that say what to do with the other flags:
	// add them to the existing flags, or remove them from the existing flags.
	qosChangesFlags uint32 = 1<<29 | 1<<30
)

// putQOS creates a quality of service or changes an existing one.
func putQOS(tx *transaction, row *api.QOSRow, at string) (bool, error) {
	if skipDeleted(tx, row.Flags, qosDeleted, at) {
		return false, nil
	}
	old, err := findQOS(tx, row, at)
	if err != nil {
		return false, err
	}
	if row.Flags&model.QOSFlagsNotSet != 0 && row.Flags&^(model.QOSFlagsNotSet|qosChangesFlags) != 0 {
		return false, errs.New(errs.Invalid, "expected no other flag with NOT_SET, which leaves the flags unchanged").WithSource(at + "/flags")
	}
	record := *row.QOS
	if err := fillQOS(tx, row, &record, old, at); err != nil {
		return false, err
	}
	if record.LimitFactor == 0 {
		tx.call.Warn(at+"/limits/factor", "0 has no effect")
		record.LimitFactor = model.FloatNotSet
	}
	if old == nil {
		err := checkName(record.Name, at)
		if err == nil {
			err = checkNew(at, "name", record.Name)
		}
		if err != nil {
			return false, err
		}
		record.ID = 0
		return true, add[model.QOS](tx, record, model.QOSFilter{Names: []string{record.Name}}, at)
	}
	record.Name, record.ID = "", 0
	if record.Flags&model.QOSFlagsNotSet != 0 {
		record.Flags = model.QOSFlagsNotSet
	}
	if record.Flags&^qosChangesFlags == old.Flags&^model.QOSFlagsNotSet && record.Flags&qosChangesFlags == 0 {
		record.Flags = model.QOSFlagsNotSet
	}
	if !record.Description.Changes(old.Description) {
		record.Description = ""
	}
	narrowQOS(&record, old)
	if reflect.DeepEqual(record, model.BlankQOS()) {
		return false, nil
	}
	filter := model.QOSFilter{IDs: []string{strconv.FormatUint(uint64(old.ID), 10)}}
	changed, err := modifyRecords(tx, model.Modify[model.QOS]{Filter: filter, Record: record}, at)
	if err == nil && tx.expected == nil {
		err = checkLimits(tx.Editor.List, tx.others, filter, &record)
	}
	return changed, err
}

// checkLimits returns model.ErrRestart if a change has overwritten limits that
// another client changed at the same time: to change some limits of a QOS,
// slurmdbd reads all, waits for the lock of the record, and writes all. While the
// transaction holds this lock, the record in other sessions stays the same. The
// functions inside and others request records in the transaction and in others.
func checkLimits(inside, others lister, filter model.QOSFilter, change *model.QOS) error {
	var own, committed *model.QOS
	for _, f := range qosAmountFields {
		if *f.at(change) == "" {
			continue
		}
		if own == nil {
			var err error
			if own, err = findOne[model.QOS](inside, filter); err != nil || own == nil {
				return err
			}
			if committed, err = findOne[model.QOS](others, filter); err != nil || committed == nil { // the transaction has created it
				return err
			}
		}
		want, got := limitsOf(*f.at(committed)), limitsOf(*f.at(own))
		for id := range limitsOf(*f.at(change)) {
			delete(want, id)
			delete(got, id)
		}
		if !maps.Equal(want, got) {
			return model.ErrRestart
		}
	}
	return nil
}

// findQOS returns the existing quality of service with the record's name or id.
// If none has the name, findQOS returns nil, and the caller creates one. If none
// has the id, it returns an error.
func findQOS(tx *transaction, row *api.QOSRow, at string) (*model.QOS, error) {
	var filter model.QOSFilter
	switch {
	case row.Name != "":
		filter.Names = []string{row.Name}
	case row.ID != 0:
		filter.IDs = []string{strconv.FormatUint(uint64(row.ID), 10)}
	default:
		return nil, errs.New(errs.Invalid, "expected a name, or the id of an existing quality of service").
			WithSource(at + "/name").WithNumber(slurmerror.InvalidQuery)
	}
	old, err := findOld[model.QOS](tx, filter)
	switch {
	case err != nil:
		return nil, err
	case old == nil && row.ID != 0:
		return nil, errs.New(errs.NotFound, "there is no quality of service with the number %d", row.ID).
			WithSource(at + "/id").WithNumber(slurmerror.InvalidQuery)
	case old != nil && row.ID != 0 && row.ID != old.ID:
		return nil, errs.New(errs.Invalid, "the quality of service %s has the number %d", old.Name, old.ID).
			WithSource(at + "/id").WithNumber(slurmerror.InvalidQuery)
	}
	return old, nil
}

// fillQOS sets those fields of the record that contain ids. It looks up these
// ids by the names in the request.
func fillQOS(tx *transaction, row *api.QOSRow, record, old *model.QOS, at string) error {
	if len(row.Limits) == 0 && row.Preempt == nil {
		return nil
	}
	r, err := tx.h.namesFrom(tx.List, model.QOSFilter{})
	if err != nil {
		return err
	}
	limits := row.Limits
	if old != nil && tx.call.Lenient(api.EmptyLimits) {
		limits = withoutEmpty(tx, limits, old, at)
	}
	if err := api.SetLimits(r, record, old, limits, false); err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource(at + "/limits").WithNumber(slurmerror.InvalidTRES)
	}
	if row.Preempt == nil {
		return nil
	}
	ids, err := r.QOSNumbers(*row.Preempt)
	if err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource(at + "/preempt/list").WithNumber(slurmerror.InvalidQOS)
	}
	var currentIDs []string
	if old != nil {
		for n := range old.PreemptIDs.Len {
			if n > 0 && old.PreemptIDs.Has(int(n)) {
				currentIDs = append(currentIDs, strconv.FormatUint(uint64(n), 10))
			}
		}
	}
	slices.Sort(ids)
	slices.Sort(currentIDs)
	switch {
	case strings.Join(ids, ",") == strings.Join(currentIDs, ","):
	case len(ids) == 0:
		record.PreemptNames = []string{""} // removes all names; an empty list would change nothing
	default:
		record.PreemptNames = ids
	}
	return nil
}

// withoutEmpty returns the lists of limits that are not empty. It warns if the
// record has limits that an empty list would have removed.
func withoutEmpty(tx *transaction, limits []api.Limit[model.QOS], old *model.QOS, at string) []api.Limit[model.QOS] {
	var list []api.Limit[model.QOS]
	for _, l := range limits {
		switch {
		case len(l.List) > 0:
			list = append(list, l)
		case *l.At(old) != "":
			tx.call.Warn(at+"/limits", "an empty list changes nothing: to remove the limit of a resource, set its count to -1")
		}
	}
	return list
}

func (h *handler) deleteQOS(c *rest.Call, p *api.NamedQOSParams) error {
	names, err := h.removeRecords(c, "quality of service", p.Name, rest.InPath+"qos", func(tx *transaction) (any, error) {
		r, err := h.namesFrom(tx.List, model.QOSFilter{})
		if err != nil {
			return nil, err
		}
		return model.Remove[model.QOS]{Filter: onlyQOS(r, p.Name)}, nil
	}, nil)
	return h.answerRemoval(c, api.QOSRemoved, names, err)
}
