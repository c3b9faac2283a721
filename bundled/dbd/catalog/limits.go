package catalog

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"schedrestd/model"
)

// assocNumbers returns the numeric limits of an association. The first five
// limits are inheritable: an association that lacks such a limit inherits it
// from its nearest ancestor that has it.
func assocNumbers(a *model.Association) []*model.Opt[uint32] {
	return []*model.Opt[uint32]{&a.MaxJobs, &a.MaxJobsAccrue, &a.MinPrioThreshold, &a.MaxSubmitJobs, &a.MaxWallPJ, &a.Priority,
		&a.GrpJobs, &a.GrpJobsAccrue, &a.GrpSubmitJobs, &a.GrpWall}
}

// assocAmounts returns the limits of an association that are amounts of
// resources. The first four are inheritable.
func assocAmounts(a *model.Association) []*string {
	return []*string{&a.MaxTRESMinsPJ, &a.MaxTRESRunMins, &a.MaxTRESPJ, &a.MaxTRESPN,
		&a.GrpTRESMins, &a.GrpTRESRunMins, &a.GrpTRES}
}

// Numbers of limits that are inherited.
const (
	inheritedNumbers = 5
	inheritedAmounts = 4
)

func qosNumbers(q *model.QOS) []*model.Opt[uint32] {
	return []*model.Opt[uint32]{&q.GrpJobs, &q.GrpJobsAccrue, &q.GrpSubmitJobs, &q.GrpWall, &q.MaxJobsPA,
		&q.MaxJobsPU, &q.MaxJobsAccruePA, &q.MaxJobsAccruePU, &q.MinPrioThreshold,
		&q.MaxSubmitJobsPA, &q.MaxSubmitJobsPU, &q.MaxWallPJ, &q.PreemptExemptTime}
}

func qosAmounts(q *model.QOS) []*string {
	return []*string{&q.GrpTRESMins, &q.GrpTRESRunMins, &q.GrpTRES, &q.MaxTRESMinsPJ, &q.MaxTRESRunMinsPA,
		&q.MaxTRESRunMinsPU, &q.MaxTRESPA, &q.MaxTRESPJ, &q.MaxTRESPN, &q.MaxTRESPU, &q.MinTRESPJ}
}

// setNumbers copies each limit that is set in the list from to the list to. A
// limit that is set in neither list becomes unlimited in the list to, as in the
// answers of slurmdbd.
func setNumbers(to, from []*model.Opt[uint32]) {
	for i, n := range from {
		if n.Set || n.Infinite {
			*to[i] = *n
		} else if !to[i].Set {
			*to[i] = model.Infinite[uint32]()
		}
	}
}

// setAmounts applies each change in the list from to the corresponding limit in
// the list to. Changes and limits are strings that list amounts of resources.
// In a change, the amount -1 removes the limit on a resource. Resources that
// the change does not name keep their limits.
func setAmounts(to, from []*string) error {
	for i, change := range from {
		if *change == "" {
			continue
		}
		merged, err := mergeAmounts(*to[i], *change)
		if err != nil {
			return err
		}
		*to[i] = merged
	}
	return nil
}

// mergeAmounts applies change to the amounts in text, such as "1=4,2=1000". An
// amount in change replaces the amount of the same resource in text or, if
// there is none, is added. The amount -1, which clients also send as the number
// 18446744073709551615, removes the resource. The result is sorted by resource.
func mergeAmounts(text, change string) (string, error) {
	amounts := map[uint64]uint64{}
	for part := range strings.SplitSeq(text+","+change, ",") {
		if part == "" {
			continue
		}
		id, amount, ok := strings.Cut(part, "=")
		n, err := strconv.ParseUint(id, 10, 32)
		if err == nil && (amount == "-1" || amount == strconv.FormatUint(math.MaxUint64, 10)) {
			delete(amounts, n)
			continue
		}
		v, amountErr := strconv.ParseUint(amount, 10, 63)
		if !ok || err != nil || amountErr != nil {
			return "", invalid("%.60q is not an amount of a resource, such as 1=4", part)
		}
		amounts[n] = v
	}
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(amounts)) {
		parts = append(parts, strconv.FormatUint(id, 10)+"="+strconv.FormatUint(amounts[id], 10))
	}
	return strings.Join(parts, ","), nil
}

// changeIDs returns the result of applying change to a list of QOS numbers. In
// change, "+3" adds the number 3 to the list, and "-3" removes it. Plain
// numbers replace the list, and an empty string empties it. exists(n) reports
// whether there is a QOS with the number n.
func changeIDs(list, change []string, exists func(uint32) bool) ([]string, error) {
	if len(change) == 0 {
		return list, nil
	}
	list = slices.Clone(list)
	replaced := false
	for _, text := range change {
		digits := strings.TrimLeft(text, "+-")
		if (digits == text || digits == "") && !replaced {
			list, replaced = nil, true
		}
		if digits == "" {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || !exists(uint32(n)) {
			return nil, unknownQOS(digits)
		}
		id := strconv.FormatUint(n, 10)
		list = slices.DeleteFunc(list, func(have string) bool { return have == id })
		if !strings.HasPrefix(text, "-") {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return atoi(a) - atoi(b) })
	return list, nil
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
