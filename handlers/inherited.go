package handlers

import (
	"cmp"
	"slices"
	"strings"

	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// Answers show the values that apply to a record, also those that it inherits
// and those that stand for an empty column of the database. A client that sends
// such an answer back must not turn them into values of the record itself:
// afterwards, a change of the account would no longer reach its users. The
// functions in this file remove from a change what the record has already, and
// what it inherits.

// number is a numeric field of records of type T.
type number[T any] struct {
	name string // path in a body
	at   func(*T) *model.Opt[uint32]
}

// amounts is a field of records of type T with amounts of trackable resources.
type amounts[T any] struct {
	name string // path in a body
	at   func(*T) *string
}

// These fields of an association are inherited from its account.
var (
	inheritedNumbers = []number[model.Association]{
		{"max/jobs/active", func(a *model.Association) *model.Opt[uint32] { return &a.MaxJobs }},
		{"max/jobs/accruing", func(a *model.Association) *model.Opt[uint32] { return &a.MaxJobsAccrue }},
		{"max/jobs/total", func(a *model.Association) *model.Opt[uint32] { return &a.MaxSubmitJobs }},
		{"max/jobs/per/wall_clock", func(a *model.Association) *model.Opt[uint32] { return &a.MaxWallPJ }},
		{"min/priority_threshold", func(a *model.Association) *model.Opt[uint32] { return &a.MinPrioThreshold }},
		{"priority", func(a *model.Association) *model.Opt[uint32] { return &a.Priority }},
	}
	inheritedAmounts = []amounts[model.Association]{
		{"max/tres/minutes/per/job", func(a *model.Association) *string { return &a.MaxTRESMinsPJ }},
		{"max/tres/minutes/total", func(a *model.Association) *string { return &a.MaxTRESRunMins }},
		{"max/tres/per/job", func(a *model.Association) *string { return &a.MaxTRESPJ }},
		{"max/tres/per/node", func(a *model.Association) *string { return &a.MaxTRESPN }},
	}
)

// groupNumbers and groupAmounts are the limits of an association that apply to
// the records below it together, and are not inherited.
var (
	groupNumbers = []number[model.Association]{
		{at: func(a *model.Association) *model.Opt[uint32] { return &a.GrpJobs }},
		{at: func(a *model.Association) *model.Opt[uint32] { return &a.GrpJobsAccrue }},
		{at: func(a *model.Association) *model.Opt[uint32] { return &a.GrpSubmitJobs }},
		{at: func(a *model.Association) *model.Opt[uint32] { return &a.GrpWall }},
	}
	groupAmounts = []amounts[model.Association]{
		{at: func(a *model.Association) *string { return &a.GrpTRES }},
		{at: func(a *model.Association) *string { return &a.GrpTRESMins }},
		{at: func(a *model.Association) *string { return &a.GrpTRESRunMins }},
	}
)

// The fields of a QOS.
var (
	qosNumberFields = []number[model.QOS]{
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.GrpJobs }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.GrpJobsAccrue }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.GrpSubmitJobs }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.GrpWall }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.MaxJobsPA }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.MaxJobsPU }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.MaxJobsAccruePA }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.MaxJobsAccruePU }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.MinPrioThreshold }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.MaxSubmitJobsPA }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.MaxSubmitJobsPU }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.MaxWallPJ }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.PreemptExemptTime }},
		{at: func(q *model.QOS) *model.Opt[uint32] { return &q.Priority }},
	}
	qosAmountFields = []amounts[model.QOS]{
		{at: func(q *model.QOS) *string { return &q.GrpTRES }},
		{at: func(q *model.QOS) *string { return &q.GrpTRESMins }},
		{at: func(q *model.QOS) *string { return &q.GrpTRESRunMins }},
		{at: func(q *model.QOS) *string { return &q.MaxTRESMinsPJ }},
		{at: func(q *model.QOS) *string { return &q.MaxTRESRunMinsPA }},
		{at: func(q *model.QOS) *string { return &q.MaxTRESRunMinsPU }},
		{at: func(q *model.QOS) *string { return &q.MaxTRESPA }},
		{at: func(q *model.QOS) *string { return &q.MaxTRESPJ }},
		{at: func(q *model.QOS) *string { return &q.MaxTRESPN }},
		{at: func(q *model.QOS) *string { return &q.MaxTRESPU }},
		{at: func(q *model.QOS) *string { return &q.MinTRESPJ }},
	}
)

// narrowNumbers unsets the numbers of a change that the record old has already.
func narrowNumbers[T any](change, old *T, list []number[T]) {
	for _, f := range list {
		if n := f.at(change); sameNumber(*n, *f.at(old)) {
			*n = model.Opt[uint32]{}
		}
	}
}

// sameNumber reports whether two limits are the same. A limit that is unset is
// the same as an unlimited one: both are an empty column of the database.
func sameNumber(a, b model.Opt[uint32]) bool {
	return a.Set == b.Set && (!a.Set || a.Number == b.Number)
}

// narrowAmounts removes the amounts of a change that the record old has
// already, and the removals of limits that it does not have.
func narrowAmounts[T any](change, old *T, list []amounts[T]) {
	for _, f := range list {
		keepAmounts(f.at(change), *f.at(old), func(_, count, own string) bool { return count == cmp.Or(own, noAmount) })
	}
}

// keepAmounts removes from a text such as "1=4,2=1000" the limits that a record
// keeps as they are. It reports whether there are such limits. The function keeps
// gets the resource, the limit, and the one that the record has in the text old, or
// "".
func keepAmounts(text *string, old string, keeps func(id, count, own string) bool) bool {
	if *text == "" {
		return false
	}
	parts, own := strings.Split(*text, ","), limitsOf(old)
	rest := slices.DeleteFunc(slices.Clone(parts), func(part string) bool {
		id, count, _ := strings.Cut(part, "=")
		return keeps(id, count, own[id])
	})
	*text = strings.Join(rest, ",")
	return len(rest) < len(parts)
}

// limitsOf returns the limits in a text such as 1=4,2=100, by resource.
func limitsOf(text string) map[string]string {
	limits := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if id, count, ok := strings.Cut(part, "="); ok {
			limits[id] = count
		}
	}
	return limits
}

const noAmount = "18446744073709551615" // api.noLimit, which removes a limit

// narrowQOS removes from a change of a QOS what the record old has already.
func narrowQOS(change, old *model.QOS) {
	narrowNumbers(change, old, qosNumberFields)
	narrowAmounts(change, old, qosAmountFields)
	if change.GraceTime == old.GraceTime {
		change.GraceTime = model.NoVal32
	}
	if change.PreemptMode == old.PreemptMode {
		change.PreemptMode = model.NoVal16
	}
	for _, f := range []struct{ change, old *float64 }{
		{&change.UsageFactor, &old.UsageFactor}, {&change.UsageThreshold, &old.UsageThreshold}, {&change.LimitFactor, &old.LimitFactor},
	} {
		if *f.change == *f.old {
			*f.change = model.FloatNotSet
		}
	}
}

// narrowAssociation removes from a change of an association what the record old
// has already. The record has no inherited values.
func narrowAssociation(change, old *model.Association) {
	narrowNumbers(change, old, inheritedNumbers)
	narrowNumbers(change, old, groupNumbers)
	narrowAmounts(change, old, inheritedAmounts)
	narrowAmounts(change, old, groupAmounts)
	if change.Shares == old.Shares || change.Shares == defaultShares && old.Shares == 1 {
		change.Shares = model.NoVal32
	}
	if change.DefaultQOSID == old.DefaultQOSID {
		change.DefaultQOSID = model.NoVal32
	}
	if old.IsDefault.Or(0) != 0 {
		change.IsDefault = model.Opt[uint16]{}
	}
	if change.Flags&^old.Flags == 0 { // a flag is removed by another flag
		change.Flags = 0
	}
}

// defaultShares is the number that gives an association the default number of
// shares, which is 1.
const defaultShares = model.NoVal32 + 1

// mayInherit reports whether a change sets a field that the record old does not
// have, and could therefore inherit.
func mayInherit(change, old *model.Association) bool {
	for _, f := range inheritedNumbers {
		if f.at(change).Set && !f.at(old).Set {
			return true
		}
	}
	for _, f := range inheritedAmounts {
		own := limitsOf(*f.at(old))
		for id := range limitsOf(*f.at(change)) {
			if own[id] == "" {
				return true
			}
		}
	}
	return change.DefaultQOSID != model.NoVal32 && old.DefaultQOSID == 0 ||
		change.QOSIDs != nil && !slices.ContainsFunc(old.QOSIDs, isPlain)
}

// isPlain reports whether the element of a list of QOS has no sign. A list with
// signs changes what is inherited.
func isPlain(id string) bool { return strings.TrimLeft(id, "+-") == id }

// keepInherited removes from a change the values that the record old does not
// have, and that are the inherited ones. It returns the names of these fields.
func keepInherited(change, old, inherited *model.Association) (kept []string) {
	for _, f := range inheritedNumbers {
		if n := f.at(change); n.Set && !f.at(old).Set && *n == *f.at(inherited) {
			*n = model.Opt[uint32]{}
			kept = append(kept, f.name)
		}
	}
	for _, f := range inheritedAmounts {
		above := limitsOf(*f.at(inherited))
		if keepAmounts(f.at(change), *f.at(old), func(id, count, own string) bool { return own == "" && count == above[id] }) {
			kept = append(kept, f.name)
		}
	}
	if change.DefaultQOSID != model.NoVal32 && old.DefaultQOSID == 0 && change.DefaultQOSID == inherited.DefaultQOSID {
		change.DefaultQOSID = model.NoVal32
		kept = append(kept, "default/qos")
	}
	return kept
}

// keepInheritedQOS removes from a change the QOS if the record old inherits
// them, perhaps with some of its own added and removed, and shows those of the
// change already. It returns the name of the field if it did.
func keepInheritedQOS(change, old, shown *model.Association) (kept []string) {
	if change.QOSIDs != nil && !slices.ContainsFunc(old.QOSIDs, isPlain) && sameIDs(change.QOSIDs, shown.QOSIDs) {
		change.QOSIDs = nil
		return []string{"qos"}
	}
	return nil
}

// sameIDs reports whether two lists contain the same ids, in any order. An
// empty id, which empties a list in a change, does not count.
func sameIDs(a, b []string) bool { return slices.Equal(sortedIDs(a), sortedIDs(b)) }

func sortedIDs(list []string) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(id string) bool { return id == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// keepInheritedOf removes from the change of an existing association the values
// that it inherits, as an answer shows them. The filter selects the
// association, and old is the record without inherited values.
func keepInheritedOf(tx *transaction, change, old *model.Association, filter model.AssocFilter, at string) error {
	if !mayInherit(change, old) {
		return nil
	}
	// An answer with QOS as they are stored shows the account's QOS, followed by
	// those that are added and removed.
	flags := []model.AssocFilterFlags{0}
	if slices.ContainsFunc(change.QOSIDs, func(id string) bool { return !isPlain(id) }) {
		flags = append(flags, model.AssocRawQOS)
	}
	var kept []string
	for _, filter.Flags = range flags {
		shown, err := findOne[model.Association](tx.olds(), filter)
		if err != nil || shown == nil {
			return err
		}
		kept = slices.Concat(kept, keepInherited(change, old, shown), keepInheritedQOS(change, old, shown))
	}
	warnInherited(tx.call, kept, at)
	return keepInheritedFrom(tx, change, old, at) // the account may have been changed by the same request
}

// keepInheritedOfNew removes from a new association the values that it will
// inherit from its account or parent account.
func keepInheritedOfNew(tx *transaction, record *model.Association, at string) error {
	blank := model.BlankAssociation()
	blank.DefaultQOSID = 0
	return keepInheritedFrom(tx, record, &blank, at)
}

// keepInheritedFrom removes from the change of an association the values that
// old does not have and its account or parent account has now.
func keepInheritedFrom(tx *transaction, change, old *model.Association, at string) error {
	above := cmp.Or(change.Account, old.Account)
	if change.User == "" && old.User == "" {
		above = cmp.Or(change.ParentAccount, old.ParentAccount, rootAccount)
	}
	if !mayInherit(change, old) {
		return nil
	}
	shown, err := ownAssociation(tx, above, cmp.Or(change.Cluster, old.Cluster))
	if err != nil || shown == nil {
		return err
	}
	kept := keepInherited(change, old, shown)
	if len(old.QOSIDs) == 0 { // otherwise the record has other QOS than the account
		kept = append(kept, keepInheritedQOS(change, old, shown)...)
	}
	warnInherited(tx.call, kept, at)
	return nil
}

// rootAccount is the account above all others.
const rootAccount = "root"

func warnInherited(c *rest.Call, fields []string, at string) {
	if len(fields) > 0 {
		c.Warn(at, "the association inherits the value in the request, so it gets no value of its own: %s", strings.Join(fields, ", "))
	}
}
