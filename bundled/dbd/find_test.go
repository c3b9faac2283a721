package dbd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// A storedJob is a recorded job and the name of its cluster.
type storedJob struct {
	cluster string
	model.Job
}

// selects reports whether f selects the job j. It defines the meaning of each
// filter, and the SQL statements must give the same results.
func selects(f *model.AccountingJobFilter, owner model.Opt[uint32], j *storedJob) bool {
	in := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	named := func(list []string, s string) bool { return len(list) == 0 || model.HasName(list, s) }
	decimal := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	within := func(n, lower, upper uint32) bool { return n >= lower && (upper == 0 || n <= upper) }
	if len(f.States) > 0 && f.Flags&model.JobFilterNoDefaultUsage == 0 {
		f = withPeriod(f, model.At(time.Now()))
	}
	begin, end := j.SubmitTime, j.EndTime
	if !j.State.Ended() {
		end = math.MaxInt64
	}
	if f.Flags&model.JobFilterNoDefaultUsage != 0 {
		end = j.SubmitTime
	}
	switch {
	case owner.Set && owner.Number != j.UserID,
		f.UsageStart != 0 && end < f.UsageStart, f.UsageEnd != 0 && begin > f.UsageEnd,
		!named(f.Clusters, j.cluster), !named(f.Accounts, j.Account), !in(f.Names, j.Name), !in(f.Partitions, j.Partition), !named(f.WCKeys, j.WCKey),
		!in(f.UserIDs, decimal(j.UserID)), !in(f.GroupIDs, decimal(j.GroupID)),
		len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s string) bool { return wasInState(f, s, j, end) }), !in(f.Reasons, decimal(j.StateReason)),
		!within(j.NumCPUs, f.CPUsMin, f.CPUsMax), !within(j.NumNodes, f.NodesMin, f.NodesMax),
		!within(j.TimeLimit.Or(^uint32(0)), f.TimeLimitMin, f.TimeLimitMax),
		f.ExitCode != 0 && f.ExitCode != j.ExitCode:
		return false
	}
	if len(f.Steps) > 0 && !slices.ContainsFunc(f.Steps, func(s model.SelectedStep) bool { return isNamed(&s, &j.Job) }) {
		return false
	}
	if f.UsedNodes == "" {
		return true
	}
	for host := range model.Hosts(j.Nodes) {
		if model.HostlistHas(f.UsedNodes, host) {
			return true
		}
	}
	return false
}

// isNamed reports whether s names the job j. s can contain the number of the
// job, of its array or of its heterogeneous job. s can also contain the number
// of the array with an array index, or the number of the heterogeneous job with
// an offset.
func isNamed(s *model.SelectedStep, j *model.Job) bool {
	id := s.Step.JobID
	switch {
	case s.ArrayTaskID.Set:
		return j.ArrayJobID == id && j.ArrayTaskID == s.ArrayTaskID
	case s.HetOffset.Set:
		return j.HetJobID == id && j.HetJobOffset == s.HetOffset.Number
	}
	return j.StepID.JobID == id || j.ArrayJobID == id || j.HetJobID == id
}

// expectedJobs returns the jobs in all that f selects, in the order in which an
// answer lists them.
func expectedJobs(f *model.AccountingJobFilter, owner model.Opt[uint32], all []storedJob) (list []storedJob) {
	for i := range all {
		if selects(f, owner, &all[i]) {
			list = append(list, all[i])
		}
	}
	slices.SortFunc(list, func(a, b storedJob) int {
		return cmp.Or(cmp.Compare(a.SubmitTime, b.SubmitTime), cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.StepID.JobID, b.StepID.JobID))
	})
	if f.Flags&model.JobFilterDuplicates == 0 {
		list = slices.DeleteFunc(slices.Clone(list), func(j storedJob) bool {
			return slices.ContainsFunc(list, func(k storedJob) bool {
				return k.cluster == j.cluster && k.StepID.JobID == j.StepID.JobID && k.SubmitTime > j.SubmitTime
			})
		})
	}
	return list
}

// wasInState reports whether a job was in the state s in the period of f. It was
// used until end.
func wasInState(f *model.AccountingJobFilter, s string, j *storedJob, end model.Time) bool {
	state := j.State & 0xff
	started := j.StartTime != 0 && state != model.JobPending
	is := s == strconv.FormatUint(uint64(state), 10)
	switch {
	case f.Flags&model.JobFilterNoDefaultUsage != 0 || s == "2":
		return is
	case s == "0":
		return j.SubmitTime < f.UsageEnd && (is || started && j.StartTime > f.UsageStart || j.StartTime == 0 && end > f.UsageStart)
	case s == "1":
		return started && j.StartTime < f.UsageEnd && end > f.UsageStart
	}
	return is && end >= f.UsageStart && end <= f.UsageEnd
}

// queryJobs returns the jobs that the daemon's query finds.
func queryJobs(t testing.TB, s *Store, f *model.AccountingJobFilter, owner model.Opt[uint32]) (list []storedJob) {
	t.Helper()
	err := s.Jobs(context.Background(), f, owner, func(n int, next func() (string, *model.Job, error)) error {
		for range n {
			cluster, j, err := next()
			if err != nil {
				return err
			}
			list = append(list, storedJob{cluster, *j})
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%.500s: %v", fmt.Sprintf("%+v", *f), err)
	}
	return list
}

// A generator makes random values from a small set, so that filters and jobs
// often match.
type generator struct{ *rand.Rand }

func (c generator) text() string {
	return []string{"", "a", "A", "b", "a\x00b", "\xff", "é", "a'b", "10"}[c.IntN(9)]
}

func (c generator) number() uint32 { return []uint32{0, 1, 2, 3, 10, 1<<32 - 1}[c.IntN(6)] }

func (c generator) opt() (o model.Opt[uint32]) {
	if c.IntN(2) == 0 {
		o = model.Some(uint32(c.IntN(3)))
	}
	return o
}

func (c generator) nodes() string {
	return []string{"", "n1", "n2", "n[1-3]", "n[2-4],m1", "m[01-03]", "n[1", "x"}[c.IntN(8)]
}

func (c generator) job() storedJob {
	j := storedJob{cluster: []string{"c1", "c2", "C1"}[c.IntN(3)]}
	j.StepID.JobID, j.SubmitTime = uint32(c.IntN(12)), model.Time(c.IntN(6)-1)
	j.State = model.JobState([]uint32{0, 1, 3, 5, 7, 1 | 0x8000, 3 | 0x100}[c.IntN(7)])
	j.StartTime, j.EndTime = model.Time(c.IntN(8)), model.Time(c.IntN(8))
	j.UserID, j.GroupID, j.StateReason, j.ExitCode = c.number(), c.number(), c.number(), c.number()
	j.Account, j.Name, j.Partition, j.WCKey, j.Nodes = c.text(), c.text(), c.text(), c.text(), c.nodes()
	j.ArrayJobID, j.ArrayTaskID, j.HetJobID, j.HetJobOffset = uint32(c.IntN(4)), c.opt(), uint32(c.IntN(4)), uint32(c.IntN(3))
	j.NumCPUs, j.NumNodes, j.TimeLimit, j.Detailed = c.number(), c.number(), c.opt(), true
	return j
}

// randomList returns a list of random values. The list is usually empty. If
// most lists of a filter contained values, the filter would match no job.
func randomList[T any](c generator, value func() T) (all []T) {
	if c.IntN(5) == 0 {
		for range 1 + c.IntN(3) {
			all = append(all, value())
		}
	}
	return all
}

func (c generator) filter() (f model.AccountingJobFilter) {
	decimal := func() string {
		return []string{"0", "1", "2", "3", "5", "10", "01", "+1", " 1", "1a", "", "4294967295", "4294967296", "-1"}[c.IntN(14)]
	}
	bound := func() (n uint32) {
		if c.IntN(8) == 0 {
			n = c.number()
		}
		return n
	}
	f.Clusters = randomList(c, func() string { return []string{"c1", "c2", "C1", "c3", ""}[c.IntN(5)] })
	f.Accounts, f.Names, f.Partitions, f.WCKeys = randomList(c, c.text), randomList(c, c.text), randomList(c, c.text), randomList(c, c.text)
	f.UserIDs, f.GroupIDs, f.States, f.Reasons = randomList(c, decimal), randomList(c, decimal), randomList(c, decimal), randomList(c, decimal)
	f.CPUsMin, f.CPUsMax, f.NodesMin, f.NodesMax = bound(), bound(), bound(), bound()
	f.TimeLimitMin, f.TimeLimitMax, f.ExitCode = bound(), bound(), bound()
	f.UsageStart, f.UsageEnd = model.Time(bound()), model.Time(bound())
	f.Steps = randomList(c, func() (s model.SelectedStep) {
		s.Step.JobID, s.ArrayTaskID, s.HetOffset = uint32(c.IntN(5)), c.opt(), c.opt()
		return s
	})
	if c.IntN(5) == 0 {
		f.UsedNodes = c.nodes()
	}
	f.Flags = model.JobFilterFlags(c.IntN(2))*model.JobFilterDuplicates | model.JobFilterFlags(c.IntN(2))*model.JobFilterNoDefaultUsage
	return f
}

// TestFiltersMatchSQL checks, for random filters, that the SQL statements
// find exactly the jobs for which selects returns true.
func TestFiltersMatchSQL(t *testing.T) {
	s := open(t, storeFile(t))
	seed := rand.Uint64()
	c := generator{rand.New(rand.NewPCG(seed, 0))}
	var all []storedJob
	var batch []model.Job
	for range 300 {
		j := c.job()
		same := func(k storedJob) bool {
			return k.cluster == j.cluster && k.StepID.JobID == j.StepID.JobID && k.SubmitTime == j.SubmitTime
		}
		if slices.ContainsFunc(all, same) {
			continue
		}
		j.Cluster = j.cluster
		all, batch = append(all, j), append(batch, j.Job)
	}
	if err := s.Record(context.Background(), "", batch); err != nil {
		t.Fatal(err)
	}
	some := 0
	for range 300 {
		f, owner := c.filter(), model.Opt[uint32]{}
		if c.IntN(4) == 0 {
			owner = model.Some(c.number())
		}
		got, want := queryJobs(t, s, &f, owner), expectedJobs(&f, owner, all)
		if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(storedJob{})); diff != "" {
			t.Fatalf("seed %d, owner %v, %+v (-want +got):\n%s", seed, owner, f, diff)
		}
		some += min(len(want), 1)
	}
	if some < 30 {
		t.Errorf("only %d of 300 filters found anything", some)
	}
}

// TestPlans checks that queries use an index for each filter that may match
// only a small fraction of the jobs.
func TestPlans(t *testing.T) {
	s := open(t, storeFile(t))
	step := model.SelectedStep{Step: model.StepID{JobID: 1}}
	task, component := step, step
	task.ArrayTaskID, component.HetOffset = model.Some[uint32](1), model.Some[uint32](1)
	none := model.Opt[uint32]{}
	for _, tt := range []struct {
		name   string
		filter model.AccountingJobFilter
		owner  model.Opt[uint32]
		want   []string
	}{
		{"job", model.AccountingJobFilter{Steps: []model.SelectedStep{step, step}}, none,
			[]string{"job_by_job_id (job_id=?)", "job_by_array (array_job_id=?)", "job_by_het (het_job_id=?)"}},
		{"job of a user", model.AccountingJobFilter{Steps: []model.SelectedStep{step}}, model.Some[uint32](1), []string{"job_by_job_id (job_id=?)"}},
		{"task", model.AccountingJobFilter{Steps: []model.SelectedStep{task, task}}, none,
			[]string{"job_by_array (array_job_id=? AND array_task_id=?)"}},
		{"component", model.AccountingJobFilter{Steps: []model.SelectedStep{component, component}}, none,
			[]string{"job_by_het (het_job_id=? AND het_offset=?)"}},
		{"owner", model.AccountingJobFilter{}, model.Some[uint32](1), []string{"job_by_user_id (user_id=?)"}},
		{"user", model.AccountingJobFilter{UserIDs: []string{"1", "2"}}, none, []string{"job_by_user_id (user_id=?)"}},
		{"user and time", model.AccountingJobFilter{UserIDs: []string{"1"}, UsageEnd: 5}, none,
			[]string{"job_by_user_id (user_id=? AND submit_time<?)"}},
		{"group", model.AccountingJobFilter{GroupIDs: []string{"1"}}, none, []string{"job_by_group_id (group_id=?)"}},
		{"account", model.AccountingJobFilter{Accounts: []string{"1"}}, none, []string{"job_by_account (account=?)"}},
		{"name", model.AccountingJobFilter{Names: []string{"1"}}, none, []string{"job_by_name (name=?)"}},
		{"partition", model.AccountingJobFilter{Partitions: []string{"1"}}, none, []string{"job_by_partition (partition=?)"}},
		{"workload key", model.AccountingJobFilter{WCKeys: []string{"1"}}, none, []string{"job_by_wckey (wckey=?)"}},
		{"state", model.AccountingJobFilter{States: []string{"1"}, Flags: model.JobFilterNoDefaultUsage}, none, []string{"job_by_state (<expr>=?)"}},
		{"state in a period", model.AccountingJobFilter{States: []string{"1", "5"}, UsageStart: 1, UsageEnd: 2}, none, []string{"job_by_use (used_until>?)"}},
		{"exit code", model.AccountingJobFilter{ExitCode: 1}, none, []string{"job_by_exit_code (exit_code=?)"}},
		{"since", model.AccountingJobFilter{UsageStart: 1}, none, []string{"job_by_use (used_until>?)"}},
		{"submitted", model.AccountingJobFilter{UsageStart: 1, UsageEnd: 2, Flags: model.JobFilterNoDefaultUsage},
			none, []string{"job_by_submit (submit_time>? AND submit_time<?)"}},
	} {
		list := conditions(&tt.filter, tt.owner)
		tx, err := s.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		from, err := cheapest(context.Background(), tx, list)
		tx.Rollback()
		if err != nil {
			t.Fatal(err)
		}
		query, args := selection(from, list, false, 10)
		plan := explain(t, s, query, args...)
		for _, want := range tt.want {
			if !strings.Contains(plan, want) {
				t.Errorf("%s: no search of %s in\n%s", tt.name, want, plan)
			}
		}
		if strings.Contains(plan, "SCAN job") {
			t.Errorf("%s: reads the whole table:\n%s", tt.name, plan)
		}
	}
	if plan := explain(t, s, selectRecords, "[1]"); !strings.Contains(plan, "SEARCH job USING INTEGER PRIMARY KEY") {
		t.Errorf("records:\n%s", plan)
	}
}

func explain(t *testing.T, s *Store, query string, args ...any) string {
	t.Helper()
	rows, err := s.db.Query("EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, detail)
	}
	return plan.String()
}

// TestCheapest checks that the table is read through the index for the filter
// that matches the fewest jobs.
func TestCheapest(t *testing.T) {
	s := open(t, storeFile(t))
	var all []model.Job
	for i := range 3000 {
		j := job(uint32(i+1), model.Time(i+1), model.JobComplete)
		j.Name, j.UserID, j.EndTime = "common", 1, j.SubmitTime
		switch {
		case i < 10:
			j.Name = "rare"
		case i < 500:
			j.UserID = 2
		}
		all = append(all, j)
	}
	if err := s.Record(context.Background(), "c1", all); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		filter model.AccountingJobFilter
		want   string
	}{
		"a rare name of a common user": {model.AccountingJobFilter{Names: []string{"rare"}, UserIDs: []string{"1"}}, "job_by_name"},
		"a common name of a rare user": {model.AccountingJobFilter{Names: []string{"common"}, UserIDs: []string{"2"}}, "job_by_user_id"},
		"a common name at the end":     {model.AccountingJobFilter{Names: []string{"common"}, UsageStart: 2990}, "job_by_use"},
	} {
		tx, err := s.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		from, err := cheapest(context.Background(), tx, conditions(&tt.filter, model.Opt[uint32]{}))
		tx.Rollback()
		if err != nil || !strings.HasSuffix(from, tt.want) {
			t.Errorf("%s: %s, %v", name, from, err)
		}
	}
}

// TestLongLists checks that a filter may have as many values as fit into a
// request.
func TestLongLists(t *testing.T) {
	s := open(t, storeFile(t))
	s.queryTimeout = time.Hour
	if err := s.Record(context.Background(), "c1", []model.Job{job(7, 1, model.JobRunning)}); err != nil {
		t.Fatal(err)
	}
	var f model.AccountingJobFilter
	for i := range 10_000 {
		f.UserIDs = append(f.UserIDs, strconv.Itoa(i))
	}
	for i := range 3000 {
		step := model.SelectedStep{Step: model.StepID{JobID: uint32(i)}}
		f.Steps = append(f.Steps, step)
		step.ArrayTaskID = model.Some[uint32](7)
		f.Steps = append(f.Steps, step)
	}
	if got := queryJobs(t, s, &f, model.Opt[uint32]{}); len(got) != 1 {
		t.Errorf("%d jobs", len(got))
	}
}

// TestTooManyJobs checks that the daemon returns an error instead of a
// truncated list if a query selects too many jobs.
func TestTooManyJobs(t *testing.T) {
	s := open(t, storeFile(t))
	s.maxJobs = 100
	batch := make([]model.Job, s.maxJobs+1)
	for i := range batch {
		batch[i] = job(uint32(i+1), 1, model.JobComplete)
	}
	if err := s.Record(context.Background(), "c1", batch); err != nil {
		t.Fatal(err)
	}
	none := func(int, func() (string, *model.Job, error)) error { return nil }
	if err := s.Jobs(context.Background(), &model.AccountingJobFilter{}, model.Opt[uint32]{}, none); errs.KindOf(err) != errs.Invalid || errs.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	f := model.AccountingJobFilter{Steps: []model.SelectedStep{{Step: model.StepID{JobID: 100}}}}
	if got := queryJobs(t, s, &f, model.Opt[uint32]{}); len(got) != 1 {
		t.Errorf("%d jobs", len(got))
	}
}

// TestConversion opens a database of the first release. It checks that the
// database is converted and keeps its jobs.
func TestConversion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.sqlite")
	s := open(t, path)
	c := generator{rand.New(rand.NewPCG(1, 2))}
	want := map[string]model.Job{}
	key := func(cluster string, j *model.Job) string { return fmt.Sprint(cluster, j.StepID.JobID, j.SubmitTime) }
	for _, statement := range []string{"DROP TABLE job", "DROP TABLE record", firstTable, "PRAGMA user_version = 1"} {
		if _, err := s.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := s.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for range 2500 { // more than the conversion reads at a time
		j := c.job()
		j.StepID.JobID = uint32(c.IntN(1000))
		record, err := encode(&j.Job)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, j.cluster, j.StepID.JobID, int64(j.SubmitTime),
			0, j.State.Ended(), uint32(j.State), j.ExitCode, j.UserID, j.GroupID, j.Account, j.Name, j.Partition,
			int64(j.StartTime), int64(j.EndTime), uint16(recordVersion), record); err != nil {
			t.Fatal(err)
		}
		want[key(j.cluster, &j.Job)] = j.Job
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, path)
	got := map[string]model.Job{}
	for _, j := range queryJobs(t, s, &model.AccountingJobFilter{Flags: model.JobFilterDuplicates}, model.Opt[uint32]{}) {
		got[key(j.cluster, &j.Job)] = j.Job
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var tables, version int
	const query = "SELECT (SELECT count(*) FROM sqlite_schema WHERE type = 'table'), (SELECT user_version FROM pragma_user_version)"
	if err := s.db.QueryRow(query).Scan(&tables, &version); err != nil || tables != 2 || version != 5 {
		t.Errorf("%d tables, version %d, %v", tables, version, err)
	}
}

// TestNameIndices opens a database of version 3, whose indices of accounts and
// workload keys have case, and whose jobs have no runs. It checks that its jobs and records remain, and that
// the indices are used for all spellings.
func TestNameIndices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.sqlite")
	s := open(t, path)
	j := job(1, 1, model.JobRunning)
	j.Account, j.WCKey = "Phys", "Key"
	if err := s.Record(ctx, "c1", []model.Job{j}); err != nil {
		t.Fatal(err)
	}
	b := s.Catalog().Clone()
	if err := b.AddAccounts([]model.Account{{Name: "phys"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(ctx, b); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DROP INDEX job_by_account", "CREATE INDEX job_by_account ON job (account, submit_time)",
		"DROP INDEX job_by_wckey", "CREATE INDEX job_by_wckey ON job (wckey, submit_time)", dropRun, "PRAGMA user_version = 3",
	} {
		if _, err := s.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	s = open(t, path)
	if s.Catalog().Accounts["phys"] == nil {
		t.Error("a record is gone")
	}
	for _, f := range []model.AccountingJobFilter{
		{Accounts: []string{"PHYS"}}, {WCKeys: []string{"key"}}, {Clusters: []string{"C1"}}, {Accounts: []string{"other", "phys"}, WCKeys: []string{"KEY"}},
	} {
		if got := queryJobs(t, s, &f, model.Opt[uint32]{}); len(got) != 1 {
			t.Errorf("%+v: %d jobs", f, len(got))
		}
	}
	if got := queryJobs(t, s, &model.AccountingJobFilter{Accounts: []string{"phy"}}, model.Opt[uint32]{}); len(got) != 0 {
		t.Errorf("%d jobs of another account", len(got))
	}
}

// dropRun makes the table of jobs that of version 4.
const dropRun = "ALTER TABLE job DROP COLUMN run"

// TestRuns checks that the run of a job is stored and replaced with the job, and
// that a database of version 4 gets a place for it.
func TestRuns(t *testing.T) {
	path := storeFile(t)
	s := open(t, path)
	runs := func() (list []model.JobRun) {
		for _, j := range queryJobs(t, s, &model.AccountingJobFilter{}, model.Opt[uint32]{}) {
			list = append(list, j.Run)
		}
		return list
	}
	j := job(1, 1, model.JobRunning)
	if err := s.Record(ctx, "c1", []model.Job{j}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{dropRun, "PRAGMA user_version = 4"} {
		if _, err := s.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	s = open(t, path)
	if got := runs(); !slices.Equal(got, []model.JobRun{{}}) {
		t.Errorf("%+v", got)
	}
	j.State, j.Run = model.JobCancelled, model.JobRun{CancelledBy: model.Some[uint32](0), HasUsage: true, Status: 15, UserTime: 1 << 40, SystemTime: 2, MaxRSS: 1 << 50}
	if err := s.Record(ctx, "c1", []model.Job{j}); err != nil {
		t.Fatal(err)
	}
	if got := runs(); !slices.Equal(got, []model.JobRun{j.Run}) {
		t.Errorf("%+v", got)
	}
}

// firstTable creates the table of version 1.
const firstTable = `CREATE TABLE job (
	cluster TEXT NOT NULL, job_id INTEGER NOT NULL, submit_time INTEGER NOT NULL, restarts INTEGER NOT NULL, ended INTEGER NOT NULL,
	state INTEGER NOT NULL, exit_code INTEGER NOT NULL, user_id INTEGER NOT NULL, group_id INTEGER NOT NULL, account TEXT NOT NULL,
	name TEXT NOT NULL, partition TEXT NOT NULL, start_time INTEGER NOT NULL, end_time INTEGER NOT NULL, protocol INTEGER NOT NULL,
	record BLOB NOT NULL, PRIMARY KEY (cluster, job_id, submit_time)) STRICT;
	CREATE INDEX job_by_user ON job (user_id, start_time);
	CREATE INDEX job_by_end  ON job (end_time);`

// TestClustersOfNamelessJobs checks that the query for clusters ends and finds
// all clusters, even if jobs have an empty name.
func TestClustersOfNamelessJobs(t *testing.T) {
	s := open(t, storeFile(t))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i, name := range []string{"", "a", "c2", "z"} {
		j := job(uint32(i), 100, model.JobRunning)
		j.Name, j.Cluster = name, ""
		for _, cluster := range []string{"c1", "c2", "c3"} {
			if err := s.Record(ctx, cluster, []model.Job{j}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := s.Clusters(ctx)
	if diff := gocmp.Diff([]string{"c1", "c2", "c3"}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
