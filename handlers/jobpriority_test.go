package handlers

import (
	"net/http"
	"strings"
	"testing"
)

// TestJobPriorities checks which priorities the filters select, and the table.
func TestJobPriorities(t *testing.T) {
	const path = "/sched/v0.0.45/jobs/priority"
	for query, want := range map[string]string{
		"":                               "12 13",
		"?job_id=13":                     "13",
		"?job_id=1-12,40":                "12",
		"?users=1001":                    "12",
		"?account=LAB,other":             "12",
		"?partition=short":               "13",
		"?partition=short&account=lab":   "",
		"?qos=fast&job_id=12":            "12",
		"?job_id=12_3":                   "422 expected a number such as 12",
		"?job_id=x":                      "422 expected a job",
		"?colour=red&users=1002&job_id=": "13",
	} {
		r := request(http.MethodGet, path+query, "")
		r.Header.Set("Accept", "text/csv, application/json;q=0.1")
		w := serve(t, config(demo()), r)
		var ids []string
		for i, line := range strings.Split(strings.TrimSpace(w.Body.String()), "\n") {
			if id, _, _ := strings.Cut(line, ","); i > 0 {
				ids = append(ids, id)
			}
		}
		got := strings.Join(ids, " ")
		if status, text, refused := strings.Cut(want, " expected"); refused {
			if w.Code != http.StatusUnprocessableEntity || status != "422" || !strings.Contains(w.Body.String(), "expected"+text) {
				t.Errorf("%s: status %d: %s", query, w.Code, w.Body)
			}
		} else if w.Code != http.StatusOK || got != want {
			t.Errorf("%s: status %d, jobs %s, want %s\n%s", query, w.Code, got, want, w.Body)
		}
	}
	r := request(http.MethodGet, path+"?job_id=12", "")
	r.Header.Set("Accept", "text/csv")
	const want = "job_id,user_name,account,partition,qos,priority,set,parts.age,parts.association,parts.fairshare,parts.job_size,parts.partition,parts.qos,parts.tres,parts.site,parts.nice\n" +
		"12,1001,lab,long,fast,1263,false,0.5,1,1234.75,2,3,4,\"mem,7.25\",5,-6\n"
	if got := serve(t, config(demo()), r).Body.String(); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}
