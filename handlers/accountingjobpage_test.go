package handlers

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"schedrestd/model"
)

// TestPagesOfRecordedJobs follows the pages of random lists of recorded jobs while
// jobs are recorded and removed. The daemon selects the jobs of a page, or it
// does not, and this may change between two pages. Each job that is there all the
// time must be in exactly one page, and no job in two.
func TestPagesOfRecordedJobs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	name := func(cluster string, id, submitted any) string { return fmt.Sprintf("%v %s %v", id, cluster, submitted) }
	for range 200 {
		f := demo()
		indexed := random.IntN(2) == 0 // as slurmdbd does
		user := []string{"", "alice", "bob"}[random.IntN(3)]
		used := map[string]bool{}
		var jobs []model.AccountingJob
		record := func() {
			j := model.AccountingJob{JobID: 1 + random.Uint32N(12), Cluster: []string{"c1", "c1-a", "c", "d"}[random.IntN(4)],
				SubmitTime: model.Time(1 + random.IntN(5)), User: []string{"alice", "bob"}[random.IntN(2)]}
			this := name(j.Cluster, j.JobID, j.SubmitTime)
			if used[this] { // with another index it would be another job
				return
			}
			used[this] = true
			if indexed {
				j.DBIndex = random.Uint64()
			}
			jobs = append(jobs, j)
		}
		for range random.IntN(80) {
			record()
		}
		always, seen := map[string]bool{}, map[string]int{}
		for _, j := range jobs {
			if user == "" || j.User == user {
				always[name(j.Cluster, j.JobID, j.SubmitTime)] = true
			}
		}
		h := New(config(f))
		next := fmt.Sprintf("/scheddb/v0.0.45/jobs?cluster=c,c1,c1-a,d&limit=%d&fields=job_id,cluster,time.submission", 1+random.IntN(20))
		if user != "" {
			next += "&users=" + user
		}
		for next != "" {
			random.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
			f.recorded.jobs, f.recorded.pages = jobs, random.IntN(2) == 0
			page := getPage(t, h, next, "jobs")
			for _, one := range page.entries {
				seen[name(one["cluster"].(string), one["job_id"], one["time"].(map[string]any)["submission"])]++
			}
			next = page.next
			for range random.IntN(5) {
				if at := random.IntN(20); at < len(jobs) {
					delete(always, name(jobs[at].Cluster, jobs[at].JobID, jobs[at].SubmitTime))
					jobs = slices.Delete(slices.Clone(jobs), at, at+1)
				} else {
					record()
				}
			}
		}
		for one, n := range seen {
			if n != 1 {
				t.Errorf("seed %d: job %s is in %d pages", seed, one, n)
			}
		}
		for one := range always {
			if seen[one] != 1 {
				t.Errorf("seed %d: job %s is in %d pages", seed, one, seen[one])
			}
		}
	}
}

// TestPagesOfOneUser checks that the gateway requests as many jobs as it needs if
// it selects the user's jobs itself, and that the daemon gets the key of the last
// job of the previous page.
func TestPagesOfOneUser(t *testing.T) {
	f := demo()
	f.recorded.jobs, f.recorded.pages = nil, true
	for i := range uint32(25_000) {
		j := model.AccountingJob{JobID: i + 1, Cluster: "demo", SubmitTime: 5, User: "bob"}
		if i%5000 == 4999 {
			j.User = "alice"
		}
		f.recorded.jobs = append(f.recorded.jobs, j)
	}
	h := New(config(f))
	for _, tt := range []struct {
		query string
		want  []string
		asked []string // number after which the daemon is asked, and how many jobs it is asked for
	}{
		{"limit=2&users=alice", []string{"5000 10000", "15000 20000", "25000"},
			[]string{"0 3", "3 12", "15 48", "63 192", "255 768", "1023 3072", "4095 10000", "14095 10000",
				"10000 3", "10003 12", "10015 48", "10063 192", "10255 768", "11023 3072", "14095 10000", "24095 10000",
				"20000 3", "20003 12", "20015 48", "20063 192", "20255 768", "21023 3072", "24095 10000"}},
		{"limit=1000&users=alice", []string{"5000 10000 15000 20000 25000"}, []string{"0 1001", "1001 4004", "5005 10000", "15005 10000"}},
		{"limit=1000&users=eve", []string{""}, []string{"0 1001", "1001 4004", "5005 10000", "15005 10000"}},
		{"limit=100&users=bob&step=3", []string{strings.TrimSpace(numbers(1, 100))}, []string{"0 101"}},
		{"limit=1000&step=3", []string{strings.TrimSpace(numbers(1, 1000)), strings.TrimSpace(numbers(1001, 2000))}, []string{"0 1001", "1000 1001"}},
	} {
		f.recorded.filters = nil
		var got, asked []string
		for next := "/scheddb/v0.0.45/jobs?fields=job_id&" + tt.query; next != "" && len(got) < len(tt.want); {
			page := getPage(t, h, next, "jobs")
			var ids []string
			for _, one := range page.entries {
				ids = append(ids, fmt.Sprint(uint32(one["job_id"].(float64))))
			}
			got, next = append(got, strings.Join(ids, " ")), page.next
		}
		for _, filter := range f.recorded.filters {
			if p, ok := filter.(model.AccountingJobPage); ok {
				asked = append(asked, fmt.Sprint(p.After.JobID, p.Limit))
			}
		}
		if !slices.Equal(got, tt.want) || !slices.Equal(asked, tt.asked) {
			t.Errorf("%s: %q, asked %q; want %q, %q", tt.query, got, asked, tt.want, tt.asked)
		}
	}
}

// numbers returns the numbers from first to last.
func numbers(first, last int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		fmt.Fprint(&b, i, " ")
	}
	return b.String()
}

// TestForgedKeysOfRecordedJobs checks that a token whose key is no key of a
// recorded job is an error.
func TestForgedKeysOfRecordedJobs(t *testing.T) {
	for _, tt := range []struct {
		text string
		want model.AccountingJobKey
		ok   bool
	}{
		{"", model.AccountingJobKey{}, true},
		{recordedJobKey(&model.AccountingJob{JobID: 1<<32 - 1, Cluster: "c", DBIndex: 1<<64 - 1}), model.AccountingJobKey{JobID: 1<<32 - 1, Cluster: "c", Run: 1<<64 - 1}, true},
		{recordedJobKey(&model.AccountingJob{DBIndex: 1}), model.AccountingJobKey{Run: 1}, true},
		{"x", model.AccountingJobKey{}, false},
		{strings.Repeat("0", 40), model.AccountingJobKey{}, false},
		{numberKey(1<<32) + "c\x00" + numberKey(1), model.AccountingJobKey{}, false},
		{numberKey(1) + "c/" + numberKey(1), model.AccountingJobKey{}, false},
		{numberKey(1) + "c\x00" + strings.Repeat("9", 20), model.AccountingJobKey{}, false},
	} {
		got, err := parseRecordedJobKey(tt.text)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
	}
	if w := serve(t, config(demo()), request(http.MethodGet, "/scheddb/v0.0.45/jobs?continue=AQ", "")); w.Code != http.StatusBadRequest {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
