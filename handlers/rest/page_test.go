package rest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/model"
)

// TestMemoryOf checks that the memory of an entry includes its texts and lists.
func TestMemoryOf(t *testing.T) {
	type part struct{ text string }
	type entry struct {
		name  string
		bytes []byte
		parts []part
		names []string
		one   *part
		none  *part
		n     [4]int
	}
	e := entry{name: "12345", bytes: make([]byte, 100), parts: []part{{"1"}, {"22"}}, names: []string{"333"}, one: &part{"4444"}, none: nil, n: [4]int{}}
	want := int(reflect.TypeFor[entry]().Size()) + 5 + 100 + 2*16 + 3 + 16 + 3 + 16 + 4
	if got := memoryOf(reflect.ValueOf(&e)); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	plain := memoryOf(reflect.ValueOf(&model.Job{}))
	if got := memoryOf(reflect.ValueOf(&model.Job{Dependency: strings.Repeat("x", 1<<17)})); got != plain+1<<17 || plain < 1000 {
		t.Errorf("a job with a long text: %d bytes, a job without: %d", got, plain)
	}
}

func BenchmarkMemoryOf(b *testing.B) {
	job := &model.Job{Name: "a job"}
	for b.Loop() {
		memoryOf(reflect.ValueOf(job))
	}
}

// TestHashOfQuery checks that the tokens of different lists differ.
func TestHashOfQuery(t *testing.T) {
	seen := map[string]string{}
	for _, query := range []string{"", "a=", "a=b", "a=b&a=c", "a=&b=c", "a=b&b=c", "a=&a=b&a=c", "a=&b=&c=", "a=&a=b&c=", "a=%22b", "a=%22&b=%22", "b=a"} {
		c := &Call{request: request{match: match{route: &Route{Endpoint: &api.Endpoint{ID: "get_jobs"}}}, r: httptest.NewRequest(http.MethodGet, "/jobs?"+query, nil)}}
		doc, err := c.paramsAsDocument()
		if err != nil {
			t.Fatal(err)
		}
		hash := string(c.hashQuery(doc))
		if other, ok := seen[hash]; ok {
			t.Errorf("%s has the hash of %s", query, other)
		}
		seen[hash] = query
	}
}

// TestMemoryOfPages checks that the entries of a page reserve what they take: a
// page of jobs with long texts may be too long, and a shorter one is not. In the
// end, nothing is reserved.
func TestMemoryOfPages(t *testing.T) {
	site := newSite(0)
	site.jobs = nil
	for i := range uint32(300) { // the last ones come first, so entries are also removed from the page
		site.jobs = append(site.jobs, model.Job{StepID: model.StepID{JobID: 1000 - i}, Dependency: strings.Repeat("x", 128<<10)})
	}
	const free = 16 << 20
	memory := newMeter(free)
	site.Worker = memory
	h := site.server()
	for limit, want := range map[int]int{200: http.StatusServiceUnavailable, 100: http.StatusOK} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, newRequest(http.MethodGet, fmt.Sprintf("/sched/v0.0.45/jobs?fields=job_id&limit=%d", limit), ""))
		if w.Code != want {
			t.Errorf("limit %d: status %d: %.300s", limit, w.Code, w.Body)
		}
		if memory.Held("ann") != 0 {
			t.Errorf("limit %d: %d bytes are still reserved", limit, memory.Held("ann"))
		}
	}
}

// TestNextPageKeepsTheQuery checks that the URL of the next page contains the
// other parameters as the client has written them, and nothing that ends it.
func TestNextPageKeepsTheQuery(t *testing.T) {
	site := newSite(1)
	for query, want := range map[string]string{
		"limit=1":                                "<?limit=1&continue=TOKEN>; rel=\"next\"",
		"fields=job_id,name&limit=1":             "<?fields=job_id,name&limit=1&continue=TOKEN>; rel=\"next\"",
		"limit=1&flags=ALL&&%66ields=job_id":     "<?flags=ALL&%66ields=job_id&limit=1&continue=TOKEN>; rel=\"next\"",
		"%6cimit=1&color=a>,rel=\"x\"&flags=ALL": "<?color=a%3E,rel=%22x%22&flags=ALL&limit=1&continue=TOKEN>; rel=\"next\"",
	} {
		r := newRequest(http.MethodGet, "/sched/v0.0.45/jobs", "")
		r.URL.RawQuery = query
		w := site.serve(r)
		got := w.Header().Get("Link")
		if i := strings.Index(got, "continue="); i >= 0 {
			got = got[:i] + "continue=TOKEN" + got[strings.LastIndex(got, ">"):]
		}
		if got != want {
			t.Errorf("%s: %s, want %s (status %d)", query, got, want, w.Code)
		}
	}
}
