package handlers

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"schedrestd/model"
)

// TestEntityTags checks that equal records have equal tags and others have
// others, whatever the time of the answer, and that a client that sends the tag
// gets 304 without a body.
func TestEntityTags(t *testing.T) {
	get := func(f *fake, path string, headers ...string) *httptest.ResponseRecorder {
		t.Helper()
		r := request(http.MethodGet, path, "")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		return serve(t, config(f), r)
	}
	const jobs = "/sched/v0.0.45/jobs"
	first := get(demo(), jobs)
	tag := first.Header().Get("ETag")
	if tag == "" || first.Header().Get("Cache-Control") != "private, no-cache" || len(first.Header().Values("Vary")) != 2 {
		t.Fatalf("headers %v", first.Header())
	}
	later := demo()
	later.lastUpdate++
	if w := get(later, jobs); w.Header().Get("ETag") != tag {
		t.Error("another time of the list gives another tag")
	}
	changed := demo()
	changed.jobs[0].Priority++
	other := get(changed, jobs)
	if other.Header().Get("ETag") == tag {
		t.Error("another priority gives the same tag")
	}
	for name, path := range map[string]string{"fields": jobs + "?fields=job_id", "version": "/sched/v0.0.40/jobs", "filter": jobs + "?state=RUNNING"} {
		if w := get(demo(), path); w.Header().Get("ETag") == tag {
			t.Errorf("another %s gives the same tag", name)
		}
	}
	unfiltered := demo()
	unfiltered.jobs = append(unfiltered.jobs, model.Job{StepID: model.StepID{JobID: 99}, State: model.JobRunning})
	if a, b := get(demo(), jobs+"?state=FAILED"), get(unfiltered, jobs+"?state=FAILED"); a.Header().Get("ETag") != b.Header().Get("ETag") {
		t.Error("a job that the filter leaves out changes the tag")
	}
	for condition, want := range map[string]int{
		tag: 304, tag[2:]: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, tag[:len(tag)-2] + `"`: 200, "": 200, other.Header().Get("ETag"): 200,
	} {
		w := get(demo(), jobs, "If-None-Match", condition, "Accept-Encoding", "gzip")
		if w.Code != want || w.Code == 304 && (w.Body.Len() != 0 || w.Header().Get("ETag") != tag || w.Header().Get("Content-Encoding") != "") {
			t.Errorf("%s: status %d, %d bytes, %v", condition, w.Code, w.Body.Len(), w.Header())
		}
	}
	for _, path := range []string{"/scheddb/v0.0.40/config", "/scheddb/v0.0.45/config"} {
		changed := demo()
		changed.recorded.associations[0].Comment = "changed"
		if tag := get(demo(), path).Header().Get("ETag"); tag == "" || get(changed, path, "If-None-Match", tag).Code != http.StatusOK {
			t.Errorf("%s: a change of the last kind of records gives the same tag", path)
		}
	}
	for path, why := range map[string]string{"/sched/v0.0.45/job/99": "an error", "/slurm/v0.0.45/node/n99": "an error with 200"} {
		if w := get(demo(), path, "If-None-Match", "*"); w.Header().Get("ETag") != "" || w.Header().Get("Cache-Control") == "private, no-cache" {
			t.Errorf("%s has a tag: %d %v", why, w.Code, w.Header())
		}
	}
	for _, sized := range []bool{false, true} {
		cfg := config(big())
		if cfg.SendLength = sized; serve(t, cfg, request(http.MethodGet, jobs, "")).Header().Get("ETag") != "" {
			t.Errorf("a list of several pieces has a tag, which covers only the last one (with its length: %t)", sized)
		}
	}
}

// TestTagsOfPages checks that a page with the same records has another tag if
// its next page begins elsewhere, so that a client that gets 304 goes on with the
// right page. It does so with and without shared records.
func TestTagsOfPages(t *testing.T) {
	const path = "/sched/v0.0.45/jobs?limit=600&fields=partition"
	jobs := func(first, n uint32) (list []model.Job) {
		for i := range n {
			list = append(list, model.Job{StepID: model.StepID{JobID: first + i}, Partition: "debug"})
		}
		return list
	}
	for _, memory := range []int{0, 64 << 20} {
		page := func(list []model.Job) string {
			d, h := newDigesting(0, memory)
			d.jobs = list
			tag := getFrom(h, path, "192.0.2.1:5").Header().Get("ETag")
			if tag == "" {
				t.Fatal("no tag")
			}
			return tag
		}
		last := page(jobs(1, 600))
		if page(jobs(1, 601)) == last {
			t.Error("a page without and one with a next page have the same tag")
		}
		if page(jobs(1, 601)) == page(jobs(2, 601)) {
			t.Error("pages with different next pages have the same tag")
		}
		if page(jobs(1, 600)) != last || page(jobs(1, 601)) != page(jobs(1, 602)) {
			t.Error("the same page has different tags")
		}
	}
}
