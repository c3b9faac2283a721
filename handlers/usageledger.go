package handlers

import (
	"cmp"
	"slices"
	"strings"

	"schedrestd/handlers/feed"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// A usageOwner is whose usage a row is about. The fields that a report does not
// have are empty.
type usageOwner struct{ cluster, account, user, partition, wckey, qos string }

func (o usageOwner) compare(p usageOwner) int {
	return cmp.Or(strings.Compare(o.cluster, p.cluster), strings.Compare(o.wckey, p.wckey), strings.Compare(o.user, p.user),
		strings.Compare(o.account, p.account), strings.Compare(o.partition, p.partition), strings.Compare(o.qos, p.qos))
}

// usageKey identifies a sum of a usageLedger.
type usageKey struct {
	usageOwner
	start model.Time
	tres  uint32
}

func (k usageKey) compare(l usageKey) int {
	return cmp.Or(k.usageOwner.compare(l.usageOwner), cmp.Compare(k.start, l.start), cmp.Compare(k.tres, l.tres))
}

// A usageLedger adds up usage. It counts the memory that it takes.
type usageLedger struct {
	span   *usageSpan
	only   map[uint32]bool // resources; nil for all
	memory feed.Reservation
	sums   map[usageKey]uint64
	ends   map[model.Time]model.Time // ends of periods, by their starts
}

// errReportTooLong is the error for a report that takes too much memory.
var errReportTooLong = errs.New(errs.Unavailable, "server busy: the report has too many periods or users").
	WithHint("try again, or ask for a shorter time or for fewer resources")

// usageSumSize is the memory of a sum in a usageLedger and in the sorted list, in
// bytes. The texts in its key belong to records of the answer.
const usageSumSize = 512

func newUsageLedger(span *usageSpan, only map[uint32]bool, memory feed.Reservation) *usageLedger {
	return &usageLedger{span, only, memory, map[usageKey]uint64{}, map[model.Time]model.Time{}}
}

// add adds a row of slurmdbd's table.
func (l *usageLedger) add(owner usageOwner, u *model.Usage) error {
	if l.only != nil && !l.only[u.TRES.ID] {
		return nil
	}
	start, end, ok := l.span.period(u.PeriodStart)
	if !ok {
		return nil
	}
	l.ends[start] = end
	return l.addTo(usageKey{owner, start, u.TRES.ID}, u.AllocSecs)
}

// addTo adds an amount to a sum.
func (l *usageLedger) addTo(k usageKey, amount uint64) error {
	if _, ok := l.sums[k]; !ok && !l.memory.Grow(usageSumSize) {
		return errReportTooLong
	}
	l.sums[k] += amount
	return nil
}

// sorted returns the keys of all sums, by owner, period and resource.
func (l *usageLedger) sorted() []usageKey {
	keys := make([]usageKey, 0, len(l.sums))
	for k := range l.sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, usageKey.compare)
	return keys
}

// clear removes all sums.
func (l *usageLedger) clear() {
	clear(l.sums)
	l.memory.Shrink(l.memory.Size())
}

// countOnce adds the usage of associations with partitions to that of the users'
// associations without. From Slurm 23.11 on, these contain it already. The
// argument whole contains the associations without a partition that do.
func (l *usageLedger) countOnce(whole map[usageOwner]bool) error {
	for _, k := range l.sorted() {
		if k.partition == "" {
			continue
		}
		amount := l.sums[k]
		delete(l.sums, k)
		k.partition = ""
		if whole[k.usageOwner] {
			continue
		}
		if err := l.addTo(k, amount); err != nil {
			return err
		}
	}
	return nil
}
