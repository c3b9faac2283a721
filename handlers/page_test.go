package handlers

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/model"
)

// onePage is a decoded page.
type onePage struct {
	entries []map[string]any
	next    string // path and query of the next page, from the header; "" for none
}

// getPage requests a page, and checks that its header and its meta agree.
func getPage(t *testing.T, h http.Handler, path, member string) onePage {
	t.Helper()
	w := httptest.NewRecorder()
	r := request(http.MethodGet, path, "")
	h.ServeHTTP(w, r)
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %.500s", path, w.Code, err, w.Body)
	}
	var page onePage
	for _, one := range body[member].([]any) {
		page.entries = append(page.entries, one.(map[string]any))
	}
	token, _ := body["meta"].(map[string]any)["continue"].(string)
	link, isNext := strings.CutSuffix(w.Header().Get("Link"), `>; rel="next"`)
	if isNext != (token != "") {
		t.Fatalf("%s: Link %q, meta.continue %q", path, w.Header().Get("Link"), token)
	}
	if isNext {
		next, err := r.URL.Parse(strings.TrimPrefix(link, "<"))
		if err != nil || next.Query().Get("continue") != token || next.Path != r.URL.Path {
			t.Fatalf("%s: Link %s, %v", path, link, err)
		}
		page.next = next.RequestURI()
	}
	return page
}

// TestPagedLists follows the pages of each list that has pages, and compares
// them with the whole list.
func TestPagedLists(t *testing.T) {
	f := demo()
	for i := range uint32(5) {
		f.jobs = append(f.jobs, model.Job{StepID: model.StepID{JobID: 100 - i}, Partition: "debug"})
	}
	h := New(config(f))
	lists := 0
	for _, e := range api.Endpoints {
		view := schema.View{Version: 45}
		if !e.Paged || !e.In(view.Version) {
			continue
		}
		lists++
		path, member := e.URL(view), e.Answer.Shape(view).Fields[0].Name
		whole := getPage(t, h, path, member)
		if whole.next != "" {
			t.Errorf("%s: the whole list has a next page", path)
		}
		if len(whole.entries) == 0 {
			t.Errorf("%s: the list is empty", path)
		}
		var pages []map[string]any
		for next := path + "?limit=1"; next != ""; {
			page := getPage(t, h, next, member)
			if len(page.entries) > 1 {
				t.Fatalf("%s: %d entries", next, len(page.entries))
			}
			if next = page.next; next == "" && len(page.entries) == 0 {
				t.Errorf("%s: the last page is empty", path)
			}
			pages = append(pages, page.entries...)
		}
		if d := cmp.Diff(texts(whole.entries), texts(pages)); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
	if lists < 10 {
		t.Errorf("only %d lists have pages", lists)
	}
}

// texts returns the entries as sorted texts.
func texts(entries []map[string]any) (list []string) {
	for _, one := range entries {
		b, _ := json.Marshal(one)
		list = append(list, string(b))
	}
	slices.Sort(list)
	return list
}

// TestPagesUnderChange follows the pages of random lists of jobs while jobs come
// and go, and the controller lists them in any order. A job that is there all the
// time must be in exactly one page, and no job in two.
func TestPagesUnderChange(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		f := demo()
		f.jobs = nil
		present := map[uint32]bool{}
		for range random.IntN(60) {
			present[1+random.Uint32N(100)] = true
		}
		always := maps.Clone(present)
		h := New(config(f))
		seen := map[uint32]int{}
		last := uint32(0)
		next := fmt.Sprintf("/sched/v0.0.45/jobs?limit=%d&fields=job_id", 1+random.IntN(20))
		for next != "" {
			f.jobs = nil
			for id := range present { // in random order
				f.jobs = append(f.jobs, model.Job{StepID: model.StepID{JobID: id}})
			}
			page := getPage(t, h, next, "jobs")
			for _, one := range page.entries {
				id := uint32(one["job_id"].(float64))
				if id <= last {
					t.Fatalf("seed %d: job %d after job %d", seed, id, last)
				}
				last = id
				seen[id]++
			}
			next = page.next
			for range random.IntN(10) {
				if id := 1 + random.Uint32N(100); present[id] {
					delete(present, id)
					delete(always, id)
				} else {
					present[id] = true
				}
			}
		}
		for id := range always {
			if seen[id] != 1 {
				t.Errorf("seed %d: job %d is in %d pages", seed, id, seen[id])
			}
		}
	}
}

// TestPageTokens checks that a token is good for the same list only, whatever the
// version, the spelling, the fields, the limit and the worker.
func TestPageTokens(t *testing.T) {
	f := demo()
	for i := range uint32(9) {
		f.jobs = append(f.jobs, model.Job{StepID: model.StepID{JobID: 100 + i}, Partition: "debug"})
	}
	first := getPage(t, New(config(f)), "/sched/v0.0.45/jobs?partition=debug&limit=3", "jobs")
	next, err := url.Parse(first.next)
	if err != nil {
		t.Fatal(err)
	}
	token := next.Query().Get("continue")
	forged := base64.RawURLEncoding.EncodeToString([]byte("\x01 too short"[:6]))
	for _, tt := range []struct {
		path string
		code int
		want string // description of the error, or the number of entries
	}{
		{"/sched/v0.0.45/jobs?partition=debug&limit=3&fields=name&continue=" + token, 200, "3"},
		{"/sched/v0.0.43/jobs?partition=debug&limit=2&fields=name&continue=" + token, 200, "2"},
		{"/slurm/v0.0.42/jobs?partition=debug&fields=job_id&continue=" + token, 200, "7"},
		{"/sched/v0.0.45/jobs?partition=debug&limit=3&fields=job_id&update_time=5&continue=" + token, 200, "3"},
		{"/sched/v0.0.45/jobs?limit=3&continue=" + token, 422, "continue: the token belongs to a list with other parameters; send the parameters of the first page again; only limit and fields may differ"},
		{"/sched/v0.0.45/jobs?partition=debug&state=RUNNING&continue=" + token, 422, "continue: the token belongs to a list with other parameters; send the parameters of the first page again; only limit and fields may differ"},
		{"/sched/v0.0.45/partitions?partition=debug&continue=" + token, 422, "continue: the token belongs to a list with other parameters; send the parameters of the first page again; only limit and fields may differ"},
		{"/scheddb/v0.0.45/jobs?partition=debug&continue=" + token, 422, "continue: the token belongs to a list with other parameters; send the parameters of the first page again; only limit and fields may differ"},
		{"/sched/v0.0.45/jobs?partition=debug&continue=x" + token, 400, "not a token from meta.continue of a page; omit the parameter to get the first page"},
		{"/sched/v0.0.45/jobs?partition=debug&continue=" + forged, 400, "not a token from meta.continue of a page; omit the parameter to get the first page"},
		{"/sched/v0.0.45/jobs?partition=debug&continue=", 400, "not a token from meta.continue of a page; omit the parameter to get the first page"},
		{"/sched/v0.0.45/jobs?limit=0", 422, `limit: expected a number of entries, at least 1, got "0"`},
		{"/sched/v0.0.45/jobs?limit=-1", 422, `limit: expected a number of entries, at least 1, got "-1"`},
		{"/sched/v0.0.45/jobs?limit=many", 422, `limit: expected a number of entries, at least 1, got "many"`},
		{"/sched/v0.0.45/jobs?limit=1&limit=2", 422, "limit: set more than once"},
		{"/sched/v0.0.45/jobs?limit=2000000000&fields=job_id", 200, "10"},
	} {
		w := serve(t, config(f), request(http.MethodGet, tt.path, ""))
		got := fmt.Sprint(strings.Count(w.Body.String(), `{"name":""}`) + strings.Count(w.Body.String(), `{"job_id":`))
		if w.Code != http.StatusOK {
			if body := envelope(t, w.Body.Bytes()); len(body.Errors) == 1 {
				got = body.Errors[0].Description
			}
		}
		if w.Code != tt.code || got != tt.want {
			t.Errorf("%s: status %d, %s, want %d, %s", tt.path, w.Code, got, tt.code, tt.want)
		}
	}
}

// TestNoPagesOfEvents checks that a stream of events refuses the parameters of a
// page, which it could not follow.
func TestNoPagesOfEvents(t *testing.T) {
	for query, want := range map[string]string{
		"limit=2":    "limit: a stream of events sends the whole list; omit limit, and select entries with filters",
		"continue=x": "continue: a stream of events sends the whole list; omit continue, and select entries with filters",
	} {
		r := request(http.MethodGet, "/sched/v0.0.45/jobs?"+query, "")
		r.Header.Set("Accept", "text/event-stream")
		w := serve(t, config(demo()), r)
		body := envelope(t, w.Body.Bytes())
		if w.Code != http.StatusUnprocessableEntity || len(body.Errors) != 1 || body.Errors[0].Description != want {
			t.Errorf("%s: status %d, %s, want %s", query, w.Code, w.Body, want)
		}
	}
}
