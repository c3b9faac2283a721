package dbd

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// expectedPage returns the keys of the jobs in all that are on the page p.
func expectedPage(p *model.AccountingJobPage, owner model.Opt[uint32], all []storedJob) (keys []model.AccountingJobKey) {
	for _, j := range expectedJobs(&p.AccountingJobFilter, owner, all) {
		record := accountingJob(j.cluster, &j.Job)
		if key := record.Key(); key.Compare(p.After) > 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, model.AccountingJobKey.Compare)
	return keys[:min(len(keys), int(p.Limit))]
}

// TestPagesUnderChange follows the pages of random lists, for several users, while
// jobs are recorded and change. Each page must begin after the last job of the
// previous page, and contain the next jobs that match at that time.
func TestPagesUnderChange(t *testing.T) {
	s := open(t, storeFile(t))
	seed := rand.Uint64()
	c := generator{rand.New(rand.NewPCG(seed, 0))}
	var all []storedJob
	record := func(n int) {
		var batch []model.Job
		for range n {
			j := c.job()
			j.Cluster, j.ArrayMaxTasks = j.cluster, uint32(c.IntN(3))
			at := slices.IndexFunc(all, func(k storedJob) bool {
				return k.cluster == j.cluster && k.StepID.JobID == j.StepID.JobID && k.SubmitTime == j.SubmitTime
			})
			if at < 0 {
				all = append(all, j)
			} else {
				j.RestartCnt = all[at].RestartCnt + 1 // so that it replaces the earlier record
				all[at] = j
			}
			batch = append(batch, j.Job)
		}
		if err := s.Record(t.Context(), "", batch); err != nil {
			t.Fatal(err)
		}
	}
	record(150)
	pages, entries := 0, 0
	for range 120 {
		p := model.AccountingJobPage{AccountingJobFilter: c.filter(), Limit: 1 + c.Uint32N(20)}
		if c.IntN(3) == 0 {
			p.AccountingJobFilter = model.AccountingJobFilter{Flags: p.Flags}
		}
		var owner model.Opt[uint32]
		if c.IntN(2) == 0 {
			owner = model.Some(c.number())
		}
		for {
			var got []model.AccountingJobKey
			err := s.JobPage(t.Context(), &p, owner, func(n int, next func() (string, *model.Job, error)) error {
				for range n {
					cluster, j, err := next()
					if err != nil {
						return err
					}
					record := accountingJob(cluster, j)
					got = append(got, record.Key())
				}
				return nil
			})
			if diff := gocmp.Diff(expectedPage(&p, owner, all), got); err != nil || diff != "" {
				t.Fatalf("seed %d, owner %v, %+v: %v (-want +got):\n%s", seed, owner, p, err, diff)
			}
			pages, entries = pages+1, entries+len(got)
			if len(got) < int(p.Limit) {
				break
			}
			p.After = got[len(got)-1]
			record(c.IntN(4))
		}
	}
	if pages < 150 || entries < 300 {
		t.Errorf("seed %d: only %d pages with %d jobs", seed, pages, entries)
	}
}

// TestPageLimits checks that a page has at least one job, and no more than other
// answers.
func TestPageLimits(t *testing.T) {
	s := open(t, storeFile(t))
	s.maxJobs = 100
	for limit, want := range map[uint32]errs.Kind{0: errs.Invalid, 1: 0, 100: 0, 101: errs.Invalid, 1<<32 - 1: errs.Invalid} {
		err := s.JobPage(t.Context(), &model.AccountingJobPage{Limit: limit}, model.Opt[uint32]{},
			func(int, func() (string, *model.Job, error)) error { return nil })
		if errs.KindOf(err) != want {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// TestPlansOfPages checks that a page is read in the order of the jobs' numbers
// if many jobs match, so that the query ends when the page is full, and otherwise
// through the index of a filter.
func TestPlansOfPages(t *testing.T) {
	s := open(t, storeFile(t))
	var batch []model.Job
	for i := range lastPageProbe + 10 {
		j := job(uint32(i+1), model.Time(i+1), model.JobComplete)
		if j.Name = "common"; i < 10 {
			j.Name = "rare"
		}
		batch = append(batch, j)
	}
	if err := s.Record(t.Context(), "c1", batch); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		filter model.AccountingJobFilter
		want   string
	}{
		{"all", model.AccountingJobFilter{}, "job_by_job_id (job_id>?)"},
		{"common name", model.AccountingJobFilter{Names: []string{"common"}}, "job_by_job_id (job_id>?)"},
		{"common user, all runs", model.AccountingJobFilter{UserIDs: []string{"1000"}, Flags: model.JobFilterDuplicates}, "job_by_job_id (job_id>?)"},
		{"rare name", model.AccountingJobFilter{Names: []string{"rare"}}, "job_by_name (name=?)"},
		{"job", model.AccountingJobFilter{Steps: []model.SelectedStep{{Step: model.StepID{JobID: 1}}}}, "INTEGER PRIMARY KEY (rowid=?)"},
	} {
		tx, err := s.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		list := conditions(&tt.filter, model.Opt[uint32]{})
		from, err := cheapestForPage(t.Context(), tx, list)
		tx.Rollback()
		if err != nil {
			t.Fatal(err)
		}
		query, args := pageSelection(from, list, &model.AccountingJobPage{AccountingJobFilter: tt.filter, Limit: 10})
		plan := explain(t, s, query, args...)
		if !strings.Contains(plan, "SEARCH job USING") || !strings.Contains(plan, tt.want) {
			t.Errorf("%s: no search of %s in\n%s", tt.name, tt.want, plan)
		}
		found, _, _ := strings.Cut(plan, "SCAN found")
		if strings.Contains(found, "SCAN job") || from == byNumber && strings.Contains(found, "TEMP B-TREE FOR ORDER BY") {
			t.Errorf("%s: reads or sorts the whole table:\n%s", tt.name, plan)
		}
	}
}
