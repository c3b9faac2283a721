package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
)

// An outputServer is a gateway that answers each request for the output of a job
// with the next of its answers, and the last one again and again. It notes the
// requests.
type outputServer struct {
	*gateway
	answers  []http.HandlerFunc
	requests []string
}

func (s *outputServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.RequestURI(), "/sched/v0.0.44/job/")
	if !ok || strings.Contains(path, "submit") {
		s.gateway.ServeHTTP(w, r)
		return
	}
	s.requests = append(s.requests, strings.TrimSpace(path+" "+r.Header.Get("Accept")+" "+r.Header.Get("Last-Event-ID")+r.Header.Get("Range")))
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	answer(w, r)
}

func outputText(status int, text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

func outputEvents(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 2000\n\n:\n\n"+text)
	}
}

func outputEvent(id string, offset int, text string) string {
	return fmt.Sprintf("event: output\nid: %s\ndata: {\"offset\":%d,\"text\":%q}\n\n", id, offset, text)
}

const (
	outputEnd   = "event: end\ndata: {\"reason\":\"the job has ended\"}\n\n"
	outputBreak = "event: end\ndata: {\"reason\":\"the gateway stops\"}\n\n"
	outputReset = "event: reset\ndata: {}\n\n"
)

// refusal returns an answer of schedrestd that is an error.
func refusal(status int, code, description string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		reply(w, status, fmt.Sprintf(`{"errors": [{"description": %q, "code": %q}]}`, description, code))
	}
}

// TestOutput checks what output prints, what it requests, and which error it has
// for a server that does not read the output.
func TestOutput(t *testing.T) {
	hurry(t)
	const events = "text/event-stream"
	all := func(list ...http.HandlerFunc) []http.HandlerFunc { return list }
	for _, tt := range []struct {
		name, args string
		answers    []http.HandlerFunc
		status     int
		want       string
		wantErr    string // a part of it
		requests   []string
	}{
		{"whole", "5", all(outputText(200, "a\x1b\xff\n")), 0, "a\x1b\xff\n", "", []string{"5/stdout text/plain"}},
		{"errors, the last lines", "5_2 --errors --tail 3", all(outputText(200, "a")), 0, "a", "", []string{"5_2/stderr?tail=3 text/plain"}},
		{"a step", "5 --step 2", all(outputText(200, "a")), 0, "a", "", []string{"5/stdout?step=2 text/plain"}},
		{"a step of its job", "5_3.2", all(outputText(200, "a")), 0, "a", "", []string{"5_3/stdout?step=2 text/plain"}},
		{"the script", "5 --script", all(outputText(200, "#!/bin/sh\n")), 0, "#!/bin/sh\n", "", []string{"5/script text/plain"}},
		{"no script", "5 --script", all(refusal(404, "not_found", "the job has no script")), 5, "", "error: the job has no script", []string{"5/script text/plain"}},
		{"the script, and more", "5 --script --follow", nil, 2, "", "leave out --follow", nil},
		{"cut off", "5", all(outputText(200, "a", "Content-Length: 5")), 1, "a", "read the output of the gateway", []string{"5/stdout text/plain"}},
		{"followed", "5 -F -n 1", all(outputEvents(outputEvent("i1", 4, "two\n") + outputEvent("i2", 8, "drei ü\n") + outputEnd)), 0, "two\ndrei ü\n", "", []string{"5/stdout?tail=1 " + events}},
		{"broken off", "5 --follow", all(outputEvents(outputEvent("i1", 0, "one\n")), refusal(503, "unavailable", "busy"), outputEvents(outputBreak), outputEvents(outputEvent("i2", 4, "two\n")+outputEnd)), 0, "one\ntwo\n", "",
			[]string{"5/stdout " + events, "5/stdout " + events + " i1", "5/stdout " + events + " i1", "5/stdout " + events + " i1"}},
		{"bytes that are no UTF-8", "5 --follow", all(outputEvents(outputEvent("i1", 0, "one\n")+outputEvent("i2", 4, "t\ufffdo\n")+outputEvent("i3", 8, "three\n")+outputEnd), outputText(206, "t\xffo\nth", "Content-Range: bytes 4-9/10")), 0, "one\nt\xffo\nthree\n", "",
			[]string{"5/stdout " + events, "5/stdout text/plain bytes=4-"}},
		{"bytes that were written before", "5 --follow", all(outputEvents(outputEvent("i1", 0, "\ufffd")+outputEvent("i2", 1, "\ufffd")+outputEnd), outputText(206, "\xff\xfe", "Content-Range: bytes 0-1/2"), refusal(416, "range_not_satisfiable", "the file has only 2 bytes")), 0, "\xff\xfe", "",
			[]string{"5/stdout " + events, "5/stdout text/plain bytes=0-", "5/stdout text/plain bytes=2-"}},
		{"another file", "5 --follow", all(outputEvents(outputEvent("i1", 0, "one\n") + outputReset + outputEvent("j1", 0, "new\n") + outputEnd)), 0, "one\nnew\n", "warning: the file is shorter or another one now", []string{"5/stdout " + events}},
		{"refused while it is followed", "5 --follow", all(outputEvents(outputEvent("i1", 0, "one\n")+"event: end\ndata: {\"reason\":\"it is not a regular file\"}\n\n"), refusal(403, "denied", "it is not a regular file")), 4, "one\n", "error: it is not a regular file",
			[]string{"5/stdout " + events, "5/stdout " + events + " i1"}},
		{"before the start", "5", all(refusal(404, "not_found", "the job has not started, so it has no output yet")), 5, "", "has not started", []string{"5/stdout text/plain"}},
		{"off", "6", all(refusal(501, "unsupported", "this gateway does not read the output of jobs")), 1, "", "does not read the output of jobs\nhint: on the cluster it is in the file /home/ann/\\x1bout; an administrator can permit it with SCHEDRESTD_OUTPUT", []string{"6/stdout text/plain"}},
		{"off, errors", "6 -e --follow", all(refusal(501, "unsupported", "this gateway does not read the output of jobs")), 1, "", "in the file /home/ann/err;", []string{"6/stderr " + events}},
		{"an older gateway", "6", all(refusal(404, "not_found", "GET /sched/v0.0.44/job/6/stdout: no such path")), 1, "", "in the file /home/ann/", []string{"6/stdout text/plain"}},
		{"slurmrestd", "6", all(outputText(404, "no")), 1, "", "in the file /home/ann/", []string{"6/stdout text/plain"}},
		{"off, unknown job", "99", all(refusal(501, "unsupported", "this gateway does not read the output of jobs")), 5, "", "error: ", []string{"99/stdout text/plain"}},
		{"no job", "", nil, 2, "", "no job is named", nil},
		{"two jobs", "5 6", nil, 2, "", `unexpected argument "6"`, nil},
		{"a step with a name", "5 --step batch", nil, 2, "", "expected the number of a step", nil},
		{"a step after a point with a name", "5.batch", nil, 2, "", "expected the number of a step", nil},
		{"two steps", "5.1 --step 2", nil, 2, "", "leave out --step", nil},
		{"too many lines", "5 --tail 100001", nil, 2, "", "at most 100000 lines", nil},
		{"lines below zero", "5 --tail=-4", nil, 2, "", "for \"-n, --tail\" flag: invalid syntax", nil},
		{"no id", "all", nil, 2, "", "is not a job id", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &outputServer{gateway: &gateway{t: t, jobs: `{"jobs": [{"job_id": 6, "standard_output": "/home/ann/\u001bout", "standard_error": "/home/ann/err"}]}`}, answers: tt.answers}
			status, out, errOut := runAgainst(t, s, append([]string{"output"}, strings.Fields(tt.args)...)...)
			if status != tt.status || out != tt.want || !strings.Contains(errOut, tt.wantErr) || tt.wantErr == "" && errOut != "" || !slices.Equal(s.requests, tt.requests) {
				t.Errorf("status %d, printed %q, %s, requested %q", status, out, errOut, s.requests)
			}
		})
	}
}

// TestSubmitFollow checks that submit --follow prints nothing but the output of the
// job on standard output, and exits as the job does, also if the output is not
// read.
func TestSubmitFollow(t *testing.T) {
	hurry(t)
	for _, tt := range []struct {
		name    string
		answer  http.HandlerFunc
		args    []string
		status  int
		want    string
		wantErr []string
	}{
		{"followed", outputEvents(outputEvent("i", 0, "hello\n") + outputEnd), nil, 3, "hello\n", []string{"job 5 PENDING\n", "job 5 RUNNING\n", "job 5 FAILED, exit code 3\n"}},
		{"not read", refusal(501, "unsupported", "no"), nil, 3, "", []string{"job 5 FAILED", "warning: the output is not shown: the gateway at ", "does not read the output of jobs\n", "warning: an administrator can"}},
		{"as JSON", nil, []string{"-o", "json"}, 2, "", []string{"exclude each other"}},
		{"dry run", nil, []string{"--dry-run"}, 2, "", []string{"--dry-run excludes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &outputServer{gateway: &gateway{t: t, states: []string{"PENDING", "RUNNING", `FAILED {"return_code": {"set": true, "number": 3}}`}}, answers: []http.HandlerFunc{tt.answer}}
			status, out, errOut := runAgainst(t, s, append([]string{"submit", "--wrap", "hello", "--follow"}, tt.args...)...)
			if status != tt.status || out != tt.want {
				t.Errorf("status %d, printed %q\n%s", status, out, errOut)
			}
			for _, want := range tt.wantErr {
				if !strings.Contains(errOut, want) {
					t.Errorf("no %q in\n%s", want, errOut)
				}
			}
		})
	}
}

// TestOpenLine checks that the states of a job that submit --follow prints begin at the
// begin of a line, if its output, which lacks a newline, goes to the same terminal.
func TestOpenLine(t *testing.T) {
	hurry(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "both"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	errOut, err := os.OpenFile(file.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer errOut.Close()
	if !sameFile(file, errOut) || sameFile(file, io.Discard) || sameFile(new(bytes.Buffer), new(bytes.Buffer)) {
		t.Error("sameFile")
	}
	output := &jobOutput{out: file}
	states := &afterOutput{errOut, output}
	for _, text := range []string{"state 1", "a\nb", "state 2", "state 3", "c\n", "state 4"} {
		if strings.HasPrefix(text, "state") {
			fmt.Fprintln(states, text)
		} else {
			fmt.Fprint(output, text)
		}
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			t.Fatal(err)
		}
	}
	const want = "state 1\na\nb\nstate 2\nstate 3\nc\nstate 4\n"
	if text, err := os.ReadFile(file.Name()); string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}

	s := &outputServer{gateway: &gateway{t: t, states: []string{"RUNNING", "COMPLETED"}}, answers: []http.HandlerFunc{outputEvents(outputEvent("i", 0, "hello") + outputEnd)}}
	server := httptest.NewServer(s)
	defer server.Close()
	client, err := rest.Dial(t.Context(), rest.Config{URL: server.URL, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	var both bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetOut(&both)
	cmd.SetErr(&both)
	c := &connection{Client: client, log: func(string, ...any) {}, warn: func(string, ...any) {}}
	if err := c.followJob(cmd, "5"); err != nil || !strings.Contains(both.String(), "hello") || !strings.Contains("\n"+both.String(), "\njob 5 COMPLETED\n") {
		t.Errorf("%v, %q", err, &both)
	}
}

// TestFollowWarns checks that submit --follow says that the output can't be shown
// while the job runs: this job ends after the warning. After Ctrl-C it reports that the
// job goes on.
func TestFollowWarns(t *testing.T) {
	hurry(t)
	s := &outputServer{gateway: &gateway{t: t, states: []string{"RUNNING"}}, answers: []http.HandlerFunc{refusal(501, "unsupported", "no")}}
	server := httptest.NewServer(s)
	defer server.Close()
	client, err := rest.Dial(t.Context(), rest.Config{URL: server.URL, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	c := &connection{Client: client, log: func(string, ...any) {}, warn: func(string, ...any) {
		s.gateway.mu.Lock()
		defer s.gateway.mu.Unlock()
		s.gateway.states = []string{"COMPLETED"}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetErr(io.Discard)
	if err := c.followJob(cmd, "5"); err != nil {
		t.Error(err)
	}

	var warned string
	c.warn = func(format string, args ...any) { warned += fmt.Sprintf(format, args...) }
	cancel() // as Ctrl-C does
	if err := c.followJob(cmd, "5"); !errors.Is(err, context.Canceled) || warned != "job 5 goes on; schedctl cancel 5 ends it" {
		t.Errorf("%v, warned %q", err, warned)
	}
}
