package catalog

import (
	"strconv"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// These flags in a change to a QOS determine whether the other flags in the
// change are added to the flags of the QOS or removed from them. If the change
// contains neither, its flags replace the flags of the QOS.
const (
	addFlags    uint32 = 1 << 29
	removeFlags uint32 = 1 << 30
)

// newQOS returns a new QOS with the name and the description of q. All other
// fields have their default values.
func newQOS(q *model.QOS) model.QOS {
	rec := model.QOS{Name: q.Name, Description: q.Description, UsageFactor: 1, Priority: model.Some[uint32](0),
		UsageThreshold: model.FloatNotSet, LimitFactor: model.FloatNotSet}
	setNumbers(qosNumbers(&rec), qosNumbers(&rec))
	return rec
}

// unknownQOS returns the error for an unknown QOS.
func unknownQOS(name string) error {
	return refuse(errs.Invalid, fault.InvalidQOS, "there is no QOS %.60q", name)
}

func (b *Catalog) hasQOS(id uint32) bool { return b.QOS[id] != nil }

// qosByName returns the QOS of this name, in any spelling, or nil.
func (b *Catalog) qosByName(name string) *model.QOS {
	for _, q := range b.QOS {
		if model.SameName(q.Name, name) {
			return q
		}
	}
	return nil
}

// ListQOS returns the QOS that f selects.
func (b *Catalog) ListQOS(f *model.QOSFilter) (list []model.QOS) {
	for _, q := range Sorted(b.QOS) {
		if Matches(f.IDs, strconv.FormatUint(uint64(q.ID), 10)) && Matches(f.Names, q.Name) &&
			Matches(f.Descriptions, q.Description.String()) &&
			(f.PreemptMode == 0 || f.PreemptMode == model.NoVal16 || f.PreemptMode == q.PreemptMode) {
			list = append(list, *q)
		}
	}
	return list
}

// AddQOS adds QOS.
func (b *Catalog) AddQOS(list []model.QOS) error {
	for i := range list {
		q := &list[i]
		if err := checkName("QOS", q.Name); err != nil {
			return err
		}
		if b.qosByName(q.Name) != nil {
			return errs.New(errs.Conflict, "the QOS %s exists already", q.Name)
		}
		rec := newQOS(q)
		if err := b.changeQOS(&rec, q); err != nil {
			return err
		}
		b.LastQOS++
		rec.ID = b.LastQOS
		b.QOS[rec.ID] = &rec
	}
	return b.checkPreemption()
}

// ModifyQOS changes each QOS that f selects. It sets the fields that are set in
// change, and returns the names of the changed QOS.
func (b *Catalog) ModifyQOS(f *model.QOSFilter, change *model.QOS) (names []string, err error) {
	for _, q := range b.ListQOS(f) {
		if change.Name != "" && change.Name != q.Name {
			if err := checkName("QOS", change.Name); err != nil {
				return nil, err
			}
			if other := b.qosByName(change.Name); other != nil && other.ID != q.ID {
				return nil, errs.New(errs.Conflict, "the QOS %s exists already", change.Name)
			}
			q.Name = change.Name
		}
		if err := b.changeQOS(&q, change); err != nil {
			return nil, err
		}
		b.QOS[q.ID] = &q
		names = append(names, q.Name)
	}
	return names, b.checkPreemption()
}

// changeQOS sets the fields of q that are set in change, except the name.
func (b *Catalog) changeQOS(q, change *model.QOS) error {
	if err := checkTexts(change.Description); err != nil {
		return err
	}
	if change.Description != "" {
		q.Description = stored(change.Description)
	}
	switch flags := change.Flags &^ (addFlags | removeFlags | model.QOSFlagsNotSet); {
	case change.Flags&model.QOSFlagsNotSet != 0:
	case change.Flags&addFlags != 0:
		q.Flags |= flags
	case change.Flags&removeFlags != 0:
		q.Flags &^= flags
	default:
		q.Flags = flags
	}
	if change.GraceTime != model.NoVal32 {
		q.GraceTime = change.GraceTime
	}
	if change.PreemptMode != model.NoVal16 {
		q.PreemptMode = change.PreemptMode
	}
	setNumbers(qosNumbers(q), qosNumbers(change))
	if change.Priority.Set {
		q.Priority = change.Priority
	}
	for _, f := range []struct{ to, from *float64 }{
		{&q.UsageFactor, &change.UsageFactor}, {&q.UsageThreshold, &change.UsageThreshold}, {&q.LimitFactor, &change.LimitFactor},
	} {
		if *f.from != model.FloatNotSet {
			*f.to = *f.from
		}
	}
	if err := setAmounts(qosAmounts(q), qosAmounts(change)); err != nil {
		return err
	}
	ids, err := changeIDs(preemptedIDs(q), change.PreemptNames, b.hasQOS)
	if err == nil {
		q.PreemptIDs = bitmap(ids)
	}
	return err
}

// preemptedIDs returns the numbers of the QOS whose jobs can be preempted by
// jobs of q.
func preemptedIDs(q *model.QOS) (ids []string) {
	for i := range int(q.PreemptIDs.Len) {
		if q.PreemptIDs.Has(i) {
			ids = append(ids, strconv.Itoa(i))
		}
	}
	return ids
}

// bitmap returns a bitmap that represents the numbers in ids: bit n is set if
// ids contains n. The list ids must be sorted numerically.
func bitmap(ids []string) model.Bitmap {
	if len(ids) == 0 {
		return model.Bitmap{}
	}
	n := atoi(ids[len(ids)-1]) + 1
	m := model.Bitmap{Len: uint32(n), Set: true, Bits: make([]byte, (n+7)/8)}
	for _, id := range ids {
		m.Bits[atoi(id)/8] |= 1 << (atoi(id) % 8)
	}
	return m
}

// checkPreemption returns an error if there is a loop of QOS that can preempt
// each other.
func (b *Catalog) checkPreemption() error {
	visited := map[uint32]bool{}
	var visit func(id uint32, path map[uint32]bool) bool
	visit = func(id uint32, path map[uint32]bool) bool {
		if path[id] {
			return false
		}
		if q := b.QOS[id]; q != nil && !visited[id] {
			path[id] = true
			for _, next := range preemptedIDs(q) {
				if !visit(uint32(atoi(next)), path) {
					return false
				}
			}
			delete(path, id)
			visited[id] = true
		}
		return true
	}
	for id := range b.QOS {
		if !visit(id, map[uint32]bool{}) {
			return refuse(errs.Invalid, fault.PreemptionLoop, "QOS would preempt each other in a circle")
		}
	}
	return nil
}

// RemoveQOS removes all QOS that f selects. It also removes every reference to
// these QOS from associations and from other QOS. It returns the names of the
// removed QOS.
func (b *Catalog) RemoveQOS(f *model.QOSFilter) (names []string, err error) {
	for _, target := range b.ListQOS(f) {
		id := strconv.FormatUint(uint64(target.ID), 10)
		delete(b.QOS, target.ID)
		names = append(names, target.Name)
		for _, q := range b.QOS {
			if !q.PreemptIDs.Has(int(target.ID)) {
				continue
			}
			rec := *q
			ids, err := changeIDs(preemptedIDs(q), []string{"-" + id}, func(uint32) bool { return true })
			if err != nil {
				return nil, err
			}
			rec.PreemptIDs = bitmap(ids)
			b.QOS[q.ID] = &rec
		}
		for _, a := range b.Associations {
			rec := *a
			if rec.DefaultQOSID == target.ID {
				rec.DefaultQOSID = 0
			}
			if rec.QOSIDs, err = changeIDs(a.QOSIDs, []string{"-" + id}, func(uint32) bool { return true }); err != nil {
				return nil, err
			}
			if rec.DefaultQOSID != a.DefaultQOSID || len(rec.QOSIDs) != len(a.QOSIDs) {
				b.Associations[a.ID] = &rec
			}
		}
	}
	return names, nil
}
