package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// A site is a controller with jobs, and the server of a few operations.
type site struct {
	Config
	jobs    []model.Job
	midway  error    // after the jobs of a list
	calls   []string // of the controller, in order
	changes int
}

// newSite returns a site with the job 12 and n others. A few of them fit into one
// piece of an answer.
func newSite(n int) *site {
	s := &site{
		Config: Config{Auth: auth.Options{JWT: true, Now: func() time.Time { return time.Unix(1_795_000_000, 0) }},
			Names: api.NamesBoth, MaxBody: 50 << 20, ReadBody: 20 * time.Second, YAML: schema.Pretty | schema.NoTag},
		jobs: []model.Job{{StepID: model.StepID{JobID: 12}, Name: "twelve"}},
	}
	for i := range n {
		s.jobs = append(s.jobs, model.Job{StepID: model.StepID{JobID: uint32(1000 + i)}, Name: fmt.Sprintf("job %d", i)})
	}
	return s
}

func (s *site) Verify(context.Context, model.Credential) error {
	s.calls = append(s.calls, "verify")
	return nil
}

func (s *site) Release(context.Context, model.Credential) string { return "24.11.5" }

// server returns a server with the present configuration.
func (s *site) server() *Server {
	kill := func(c *Call, _ *api.KillParams) error { return s.change(c, "12") }
	return NewServer(Service{Controller: s, Routes: []Route{
		Bind(api.GetPing, func(c *Call, _ *api.NoParams) error {
			return Send(c, http.StatusOK, api.Pings, &api.PingsAnswer{Envelope: c.Envelope()})
		}),
		Bind(api.GetJobs, func(c *Call, _ *api.JobListParams) error { return s.sendJobs(c, s.jobs) }),
		Bind(api.GetJob, func(c *Call, p *api.JobParams) error {
			if p.Job.JobID != 12 {
				return errs.New(errs.NotFound, "there is no such job")
			}
			return s.sendJobs(c, s.jobs[:1])
		}),
		Bind(api.DeleteJob, kill), Bind(api.OldDeleteJob, kill),
		Bind(api.PostJob, func(c *Call, _ *api.NamedJobParams) error { return s.change(c, "12") }),
		Bind(api.PostJobSubmit, func(c *Call, _ *api.SubmitParams) error {
			if _, err := ReadBody(c, api.SubmissionBody); err != nil {
				return err
			}
			return s.change(c, "")
		}),
	}, Pages: map[string]Page{"healthz": {ID: "healthz", Do: func(c *Call) error { return c.SendText(http.StatusOK, "ok\n") }}}}, s.Config)
}

func (s *site) sendJobs(c *Call, jobs []model.Job) error {
	body := api.JobsAnswer{Envelope: c.Envelope()}
	list := Paged(c, &body.Envelope, func(j *model.Job) string { return fmt.Sprintf("%010d", j.StepID.JobID) }, func(each func(*model.Job) error) error {
		s.calls = append(s.calls, "jobs")
		for i := range jobs {
			if err := each(&jobs[i]); err != nil {
				return err
			}
		}
		return s.midway
	})
	body.Jobs = func(each func(*api.JobRow) error) error {
		return list(func(j *model.Job) error { return each(&api.JobRow{Job: j, Users: c.server.Users}) })
	}
	return Send(c, http.StatusOK, api.Jobs, &body)
}

func (s *site) change(c *Call, object string) error {
	_, err := MakeChange(c, object, func() (int, error) {
		s.changes++
		s.calls = append(s.calls, "change")
		return 0, nil
	}, func(int) Result { return Result{} })
	if err != nil {
		return err
	}
	return Send(c, http.StatusOK, api.Pings, &api.PingsAnswer{Envelope: c.Envelope()})
}

// serve answers a request.
func (s *site) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.server().ServeHTTP(w, r)
	return w
}

// newRequest returns a request by the user alice.
func newRequest(method, path, body string) *http.Request {
	r, err := http.NewRequest(method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-SCHED-USER-TOKEN", token)
	return r
}

// envelope decodes what all answers have.
func envelope(t *testing.T, b []byte) (body struct {
	Errors []struct {
		Description, Code string
		Retryable         bool
	}
	Meta map[string]any
}) {
	t.Helper()
	if err := json.Unmarshal(b, &body); err != nil || body.Meta == nil || body.Errors == nil {
		t.Fatalf("no envelope: %v in %s", err, b)
	}
	return body
}
