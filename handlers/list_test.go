package handlers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// big returns a controller with so many jobs that their list is sent in several
// pieces.
func big() *fake {
	f := demo()
	for i := range 500 {
		f.jobs = append(f.jobs, model.Job{StepID: model.StepID{JobID: uint32(1000 + i)}, Name: fmt.Sprintf("job %d", i)})
	}
	return f
}

func TestListIsWhole(t *testing.T) {
	server := httptest.NewServer(New(config(big())))
	defer server.Close()
	answer, err := http.DefaultClient.Do(requestTo(server, "/sched/v0.0.43/jobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	envelope(t, b)
	if n := strings.Count(string(b), `"job_id":`); n != 501 {
		t.Errorf("%d jobs", n)
	}
	if answer.ContentLength != -1 {
		t.Error("the list was collected before it was sent")
	}
}

// TestListThatBreaksOff tests lists during which the daemon fails. The client
// must not be able to mistake the beginning of the list for the whole list.
func TestListThatBreaksOff(t *testing.T) {
	f, broken := big(), errs.Wrap(errors.New("connection reset"), errs.BadAnswer, "the controller's answer broke off")
	for i := range f.jobs[1:] { // an array is a list too
		f.jobs[1+i].ArrayJobID = 1000
	}
	for range 500 {
		f.recorded.jobs = append(f.recorded.jobs, model.AccountingJob{JobID: 77, Cluster: "demo"})
	}
	server := httptest.NewServer(New(config(f)))
	defer server.Close()
	for _, path := range []string{"/sched/v0.0.43/jobs", "/sched/v0.0.43/job/1000", "/scheddb/v0.0.43/job/77"} {
		f.midwayErr = nil
		if w := serve(t, config(f), request(http.MethodGet, path, "")); w.Code != http.StatusOK || strings.Count(w.Body.String(), `"job_id":`) < 500 {
			t.Errorf("%s: status %d, %d bytes", path, w.Code, w.Body.Len())
		}
		if f.midwayErr = broken; strings.HasPrefix(path, "/scheddb") {
			f.midwayCall = "recorded jobs"
		}
		answer, err := http.DefaultClient.Do(requestTo(server, path))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if b, err := io.ReadAll(answer.Body); err == nil {
			t.Errorf("%s: a broken list looks whole: %d bytes", path, len(b))
		}
	}
}

// TestListThatFailsAtOnce tests lists for which the controller fails before the
// gateway has sent anything. The client must get a normal error.
func TestListThatFailsAtOnce(t *testing.T) {
	f := demo()
	f.midwayErr = errs.New(errs.Unavailable, "the controller can't be reached")
	for _, path := range []string{"/sched/v0.0.43/jobs", "/sched/v0.0.43/jobs/state", "/sched/v0.0.43/nodes", "/sched/v0.0.43/partitions", "/sched/v0.0.43/reservations", "/sched/v0.0.43/licenses", "/sched/v0.0.43/shares"} {
		w := serve(t, config(f), request(http.MethodGet, path, ""))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: status %d, Retry-After %q", path, w.Code, w.Header().Get("Retry-After"))
		}
		if body := envelope(t, w.Body.Bytes()); len(body.Errors) != 1 {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

// TestHostileController checks that the gateway does not trust a controller's
// host lists and counts.
func TestHostileController(t *testing.T) {
	f := demo()
	f.jobs[0].Resources.Hosts = model.Some[uint32](1 << 31)
	f.jobs[0].Resources.CoresPerSocket = []uint16{65000}
	f.jobs[0].StdOut = "%9999999999999999999999j%"
	if w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.42/jobs", "")); w.Code != http.StatusOK || w.Body.Len() > 20_000 {
		t.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
	}
	f.partitions[0].Nodes = "n[0-4294967295]"
	if w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.42/nodes", "")); w.Code != http.StatusBadGateway {
		t.Errorf("status %d", w.Code)
	}
}

func TestPingWithoutAnyController(t *testing.T) {
	f := demo()
	f.pings = []model.Ping{{Hostname: "ctl1", Mode: "primary", Primary: true}}
	for _, path := range []string{"/sched/v0.0.42/ping", "/scheddb/v0.0.42/ping"} {
		w := serve(t, config(f), request(http.MethodGet, path, ""))
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "ctl1") {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
}

func TestCancel(t *testing.T) {
	f := demo()
	for _, id := range []string{"12", "12_3", "12+1", "12_[1-3]"} {
		if w := serve(t, config(f), request(http.MethodDelete, "/sched/v0.0.42/job/"+id, "")); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", id, w.Code)
		}
	}
	for _, id := range []string{"all", "_3", "12;13", "-1"} {
		if w := serve(t, config(f), request(http.MethodDelete, "/sched/v0.0.42/job/"+id, "")); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", id, w.Code)
		}
	}
	if got := strings.Join(f.cancelled, " "); got != "12 12_3 12+1 12_[1-3]" {
		t.Errorf("cancelled: %s", got)
	}
}

func requestTo(server *httptest.Server, path string) *http.Request {
	r := request(http.MethodGet, "/", "")
	at, err := r.URL.Parse(server.URL + path)
	if err != nil {
		panic(err)
	}
	r.URL, r.Host = at, at.Host
	return r
}
