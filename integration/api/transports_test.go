package api

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

// TestListsOverTransports checks that filters, fields and If-None-Match work in
// the same way over HTTP/1.1, over HTTP/2, in inetd mode and with become_user,
// in both spellings of the paths. The entity tags of all of them are equal, so
// the tag of one is valid for all. It also checks that changes which a page of
// another site may cause are refused over each of them.
func TestListsOverTransports(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	u := harness.OrdinaryUser(t)
	l := harness.NewTLSLab(t)
	harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) // for the workers that run as u
	token := l.UserToken(u.Name)
	names := []string{"SCHEDRESTD_NAMES=both", "SCHEDRESTD_PENALTIES=off"}
	options := []string{"-f", l.Conf(), "-u", "nobody", "-g", strconv.Itoa(int(u.GID))}
	plain, secure := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	l.StartGateway(t, append([]string{"SCHED_JWT=daemon"}, names...), append(options, plain, "https://"+secure)...)
	socket := filepath.Join(harness.SocketDir(t, l.Lab), "s")
	l.StartGateway(t, append([]string{"SCHEDRESTD_SECURITY=become_user"}, names...), "-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+socket)

	http1 := &http.Client{Transport: &http.Transport{}}
	http2 := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	become := harness.NewClient(func() (net.Conn, error) { return thread.DialAs(u.UID, u.GID, socket) })
	inetd := func(r *http.Request) (*http.Response, error) {
		var request bytes.Buffer
		harness.Must(t, r.Write(&request))
		cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), options...)
		cmd.Env = append(append(os.Environ(), "SCHED_JWT=daemon"), names...)
		cmd.Stdin = &request
		out, log, status := harness.RunCommand(t, cmd)
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(out)), r)
		if err == nil && (status == 0) != (resp.StatusCode < http.StatusBadRequest) {
			t.Errorf("inetd mode: status %d, exit status %d\n%s", resp.StatusCode, status, log)
		}
		return resp, err
	}
	transports := []struct {
		name, base, token string
		proto             int
		do                func(*http.Request) (*http.Response, error)
	}{
		{"HTTP/1.1", "http://" + plain, token, 1, http1.Do},
		{"HTTP/2", "https://" + secure, token, 2, http2.Do},
		{"inetd", "http://localhost", token, 1, inetd},
		{"become_user", "http://localhost", "", 1, become.Do},
	}
	// An answer over one of the transports. The records are nil after a 304.
	type answer struct {
		status  int
		tag     string
		records []any
		text    string
	}
	get := func(path, tag string) (answers []answer) {
		t.Helper()
		for _, tr := range transports {
			r, err := http.NewRequest("GET", tr.base+path, nil)
			harness.Must(t, err)
			if tr.token != "" {
				r.Header.Set("X-SCHED-USER-TOKEN", tr.token)
			}
			if tag != "" {
				r.Header.Set("If-None-Match", tag)
			}
			resp, err := tr.do(r)
			harness.Must(t, err)
			text, err := io.ReadAll(resp.Body)
			harness.Must(t, err)
			resp.Body.Close()
			a := answer{status: resp.StatusCode, tag: resp.Header.Get("ETag"), text: string(text)}
			var body map[string]any
			if len(text) > 0 {
				harness.Must(t, json.Unmarshal(text, &body))
			}
			for _, name := range []string{"jobs", "nodes", "partitions"} {
				if list, ok := body[name].([]any); ok {
					a.records = list
				}
			}
			if resp.ProtoMajor != tr.proto || resp.StatusCode == http.StatusNotModified && len(text) > 0 {
				t.Errorf("%s: %s: %s with status %d and %d bytes", tr.name, path, resp.Proto, resp.StatusCode, len(text))
			}
			answers = append(answers, a)
		}
		return answers
	}
	submit := func(name, script string, hold bool) int {
		return l.Submit(script, map[string]any{"name": name, "hold": hold, "standard_output": "/dev/null"}, "X-SCHED-USER-TOKEN: "+token)
	}
	first, second, ended := submit("first", "true", true), submit("second", "true", true), submit("ended", "exit 3", false)
	harness.Eventually(t, "the job is recorded", func() bool {
		a := l.Request("GET", "/scheddb/"+harness.Version+"/jobs?state=FAILED", "")
		return len(a.List("jobs")) == 1
	})
	object := func(fields ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			m[fields[i].(string)] = fields[i+1]
		}
		return m
	}
	for _, spelling := range []string{"sched", "slurm"} {
		controller, accounting := "/"+spelling+"/v0.0.43/", "/"+spelling+"db/v0.0.43/"
		jobs := controller + "jobs?users=" + u.Name + "&state=PENDING&fields=job_id,name"
		for _, tt := range []struct {
			path string
			want []any
		}{
			{jobs, []any{object("job_id", float64(first), "name", "first"), object("job_id", float64(second), "name", "second")}},
			{controller + "jobs?state=pending&job_name=second,x&fields=job_id", []any{object("job_id", float64(second))}},
			{controller + fmt.Sprintf("jobs?job_id=%d&fields=job_state", first), []any{object("job_state", []any{"PENDING"})}},
			{controller + "nodes?node=" + l.Node + ",other&fields=name", []any{object("name", l.Node)}},
			{controller + "nodes?state=DOWN&fields=name", []any{}},
			{controller + "partitions?node=" + l.Node + "&fields=name", []any{object("name", "batch")}},
			{jobs + "&limit=1", []any{object("job_id", float64(first), "name", "first")}},
			{accounting + "jobs?state=FAILED&start_time=1&end_time=4000000000&fields=job_id,state.current", []any{object("job_id", float64(ended), "state", object("current", []any{"FAILED"}))}},
		} {
			tag := ""
			for i, a := range get(tt.path, "") {
				if diff := cmp.Diff(tt.want, a.records); diff != "" || a.status != 200 {
					t.Errorf("%s: %s: status %d, -want +got\n%s", transports[i].name, tt.path, a.status, diff)
				}
				if i == 0 {
					tag = a.tag
				}
				if a.tag != tag || a.tag == "" {
					t.Errorf("%s: %s: tag %q, but %q with %s", transports[i].name, tt.path, a.tag, tag, transports[0].name)
				}
			}
			for i, a := range get(tt.path, tag) {
				if a.status != http.StatusNotModified || a.tag != tag {
					t.Errorf("%s: %s: status %d with the tag %s", transports[i].name, tt.path, a.status, tag)
				}
			}
		}
		for _, path := range []string{controller + "jobs?state=SLEEPING", controller + "jobs?fields=job_idx", accounting + "jobs?fields=exit_cod"} {
			for i, a := range get(path, "") {
				if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.text, "SLEEPING") && !strings.Contains(a.text, "did you mean ") {
					t.Errorf("%s: %s: status %d, %s", transports[i].name, path, a.status, a.text)
				}
			}
		}
		before := get(jobs, "")[0]
		changed := submit("another", "true", true)
		for i, a := range get(jobs, before.tag) {
			if a.status != http.StatusOK || len(a.records) != 3 || a.tag == before.tag {
				t.Errorf("%s: after a change: status %d, %v", transports[i].name, a.status, a.records)
			}
		}
		l.Request("DELETE", fmt.Sprintf("/sched/%s/job/%d", harness.Version, changed), "", "X-SCHED-USER-TOKEN: "+token).Want(t, 200)
	}
	for _, tt := range []struct {
		header http.Header
		want   int
	}{
		{http.Header{"Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"application/json"}}, http.StatusForbidden},
		{http.Header{"Sec-Fetch-Site": {"same-site"}, "Content-Type": {"application/json"}}, http.StatusForbidden},
		{http.Header{"Origin": {"https://other.example"}, "Content-Type": {"application/json"}}, http.StatusForbidden},
		{http.Header{"Sec-Fetch-Site": {"same-origin"}}, http.StatusUnsupportedMediaType},
		{http.Header{"Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"application/json"}}, http.StatusOK},
		{http.Header{}, http.StatusOK},
	} {
		for _, tr := range transports {
			r, err := http.NewRequest("POST", tr.base+fmt.Sprintf("/sched/v0.0.43/job/%d", first), strings.NewReader(`{"comment": "c"}`))
			harness.Must(t, err)
			r.Header = tt.header.Clone()
			if tr.token != "" {
				r.Header.Set("X-SCHED-USER-TOKEN", tr.token)
			}
			resp, err := tr.do(r)
			harness.Must(t, err)
			resp.Body.Close()
			if resp.StatusCode != tt.want || resp.ProtoMajor != tr.proto {
				t.Errorf("%s: a change with %v: %s, status %d, want %d", tr.name, tt.header, resp.Proto, resp.StatusCode, tt.want)
			}
		}
	}
	for _, id := range []int{first, second} {
		l.Request("DELETE", fmt.Sprintf("/sched/%s/job/%d", harness.Version, id), "", "X-SCHED-USER-TOKEN: "+token).Want(t, 200)
	}
}
