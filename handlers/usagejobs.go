package handlers

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"schedrestd/model"
)

// defaultJobSizes are the sizes at which sreport's groups of jobs begin.
var defaultJobSizes = []uint64{50, 250, 500, 1000}

// jobSizes passes on how much the jobs of each account used, grouped by their
// sizes. The usage is computed from the jobs' records, not from the daemon's
// tables of usage. The daemon truncates the times of the jobs to the requested
// time.
func (r *usageReport) jobSizes(each func(*model.UsageRow) error) error {
	type group struct {
		cluster, account string
		number           int // of the size
	}
	type sum struct {
		jobs uint64
		used map[uint32]uint64
	}
	sizes := r.params.Sizes
	if len(sizes) == 0 {
		sizes = defaultJobSizes
	}
	memory := r.c.Reserve()
	defer func() { memory.Shrink(memory.Size()) }()
	groups := map[group]*sum{}
	filter := model.AccountingJobFilter{
		Accounts: r.params.Accounts, Clusters: r.params.Clusters, UsageStart: model.At(r.span.start), UsageEnd: model.At(r.span.end),
		Flags: model.JobFilterDuplicates | model.JobFilterNoSteps,
	}
	err := recordsOf[model.AccountingJob](r.h, r.c, filter)(func(j *model.AccountingJob) error {
		used := r.records.Amounts(j.TRESAlloc)
		cpus := slices.IndexFunc(used, func(t model.TRES) bool { return t.ID == cpuTRES })
		if j.Elapsed == 0 || cpus < 0 || !inList(r.userNames(), j.User, j.UserID, r.h.Users.User) {
			return nil
		}
		number, found := slices.BinarySearch(sizes, used[cpus].Count)
		if found {
			number++
		}
		at := group{j.Cluster, j.Account, number}
		s := groups[at]
		if s == nil {
			if !memory.Grow(usageSumSize) {
				return errReportTooLong
			}
			s = &sum{used: map[uint32]uint64{}}
			groups[at] = s
		}
		s.jobs++
		for _, t := range used {
			if r.tres == nil || r.tres[t.ID] {
				s.used[t.ID] += t.Count * uint64(j.Elapsed)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	order := slices.SortedFunc(maps.Keys(groups), func(a, b group) int {
		return cmp.Or(strings.Compare(a.cluster, b.cluster), strings.Compare(a.account, b.account), cmp.Compare(a.number, b.number))
	})
	for _, at := range order {
		s := groups[at]
		for _, id := range sortedNumbers(s.used) {
			row := r.whole(at.cluster, id)
			row.Account, row.Jobs, row.Allocated = at.account, s.jobs, s.used[id]
			row.End = model.At(r.span.end) // jobs need no roll-up
			if at.number > 0 {
				row.MinSize = sizes[at.number-1]
			}
			if at.number < len(sizes) {
				row.MaxSize = model.Some(sizes[at.number] - 1)
			}
			if err := each(&row); err != nil {
				return err
			}
		}
	}
	return nil
}

// userNames returns the names of the users that the request selects, or nil.
func (r *usageReport) userNames() []string {
	if len(r.params.Users) == 0 {
		return nil
	}
	return r.params.Users
}

func numberText(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func sortedNumbers(m map[uint32]uint64) []uint32 { return slices.Sorted(maps.Keys(m)) }
