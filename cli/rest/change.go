package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"schedrestd/api"
	"schedrestd/internal/errs"
)

// Cancel cancels the job with this id. If signal is not empty, Cancel sends
// that signal to the job instead.
func (c *Client) Cancel(ctx context.Context, id, signal string) error {
	var query url.Values
	if signal != "" {
		query = url.Values{"signal": {signal}}
	}
	resp, err := c.do(ctx, http.MethodDelete, c.path(c.spelling, jobPath(id)), query, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Status []struct {
			Error struct {
				Text   string `json:"string"`
				Number int    `json:"code"`
			} `json:"error"`
		} `json:"status"`
	}
	if _, err := c.decodeAnswer(resp, &answer); err != nil {
		return err
	}
	for _, s := range answer.Status { // slurmrestd answers 200 even if there is no such job
		if s.Error.Number != 0 {
			return problemsError(resp.StatusCode, []problem{{Description: s.Error.Text, Number: s.Error.Number}})
		}
	}
	return nil
}

// Update changes the job with this id. The argument fields contains the new
// values, as in a submission.
func (c *Client) Update(ctx context.Context, id string, fields any) error {
	resp, err := c.do(ctx, http.MethodPost, c.path(c.spelling, jobPath(id)), nil, fields, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Results []taskResult `json:"results"`
	}
	if _, err := c.decodeAnswer(resp, &answer); err != nil {
		return err
	}
	return tasksError(resp.StatusCode, answer.Results)
}

// UpdateNode changes the node with this name. The argument fields contains the
// new values, as in a request to the API.
func (c *Client) UpdateNode(ctx context.Context, name string, fields any) error {
	resp, err := c.do(ctx, http.MethodPost, c.path(c.spelling, "node/"+url.PathEscape(name)), nil, fields, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = c.decodeAnswer(resp, nil)
	return err
}

// Requeue puts the job with this id back into the queue. If hold is set, the
// job is also held. Requeue sends a POST, because an HTTP client may repeat a
// GET by itself.
func (c *Client) Requeue(ctx context.Context, id string, hold bool) error {
	if c.version < api.V45.String() {
		return errs.New(errs.Unsupported, "%s does not support requeueing: it needs version %s of the API", c.addr, api.V45).
			WithHint("use schedrestd, or slurmrestd of Slurm 26.05 or newer")
	}
	body := map[string]any{"jobs": []string{id}}
	if hold {
		body["flags"] = []string{"Hold"}
	}
	resp, err := c.do(ctx, http.MethodPost, c.path(c.spelling, "jobs/requeue"), nil, body, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Status [][]taskResult `json:"status"`
	}
	if _, err := c.decodeAnswer(resp, &answer); err != nil {
		return err
	}
	for _, results := range answer.Status {
		if err := tasksError(resp.StatusCode, results); err != nil {
			return err
		}
	}
	return nil
}

// A taskResult is the result of a change to some tasks of an array.
type taskResult struct {
	Tasks  string `json:"step_id"`
	Reason string `json:"error"`
	Number int    `json:"error_code"`
	Text   string `json:"why"`
}

// tasksError returns an error if a change has failed for any tasks of an array.
func tasksError(status int, results []taskResult) error {
	var problems []problem
	for _, r := range results {
		if r.Number != 0 {
			problems = append(problems, problem{Description: r.Tasks + ": " + cmp.Or(r.Text, r.Reason), Number: r.Number})
		}
	}
	if problems == nil {
		return nil
	}
	return problemsError(status, problems)
}

// Submitted is the answer to a submission.
type Submitted struct {
	ID       uint32
	Message  string // message of the site's submit policy
	Warnings []string
	JSON     json.RawMessage
}

// Estimate is the answer to a dry run, which submits nothing.
type Estimate struct {
	Start     Number // not set if the controller knows none
	Nodes     string // host list
	Partition string
	CPUs      uint32
	Preempted []uint32 // jobs that would have to make room
	Message   string   // message of the site's submit policy
	Warnings  []string
	JSON      json.RawMessage
}

// Estimate asks when and where a job would start. A server that has no dry run would
// ignore the parameter and submit the job, so Estimate first looks for the parameter
// in the server's OpenAPI document.
func (c *Client) Estimate(ctx context.Context, job any) (e Estimate, err error) {
	if known, err := c.knowsDryRun(ctx); err != nil || !known {
		return e, cmp.Or(err, error(errs.New(errs.Unsupported, "%s has no dry run; nothing was submitted", c.addr).WithHint("use a newer schedrestd, or sbatch --test-only")))
	}
	resp, err := c.do(ctx, http.MethodPost, c.path(c.spelling, "job/submit"), url.Values{api.DryRun: {"true"}}, map[string]any{"job": job}, nil)
	if err != nil {
		return e, err
	}
	defer resp.Body.Close()
	if e.Warnings, err = c.decodeAnswer(resp, &e.JSON); err != nil {
		return e, err
	}
	var answer struct {
		Message  string `json:"job_submit_user_msg"`
		Estimate *struct {
			Start     Number `json:"start_time"`
			Nodes     string
			Partition string
			CPUs      uint32
			Preempted []uint32 `json:"preempted_jobs"`
		}
	}
	if err := json.Unmarshal(e.JSON, &answer); err != nil || answer.Estimate == nil {
		return e, errs.New(errs.BadAnswer, "the answer of %s contains no estimate; look with schedctl jobs --me whether it has submitted the job", c.addr)
	}
	e.Message, e.Start, e.Nodes, e.Partition = answer.Message, answer.Estimate.Start, answer.Estimate.Nodes, answer.Estimate.Partition
	e.CPUs, e.Preempted = answer.Estimate.CPUs, answer.Estimate.Preempted
	return e, nil
}

// knowsDryRun reports whether submissions can be dry runs.
func (c *Client) knowsDryRun(ctx context.Context) (bool, error) {
	if c.IsDirect() {
		return true, nil
	}
	resp, err := c.do(ctx, http.MethodGet, "/openapi/v3", nil, nil, nil)
	if errs.KindOf(err) == errs.NotFound { // an administrator can switch it off
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	const maxDocument = 64 << 20
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	return bytes.Contains(text, []byte(`"`+api.DryRun+`"`)), err
}

// Submit submits a job. If key is not empty, Submit sends it in the header
// Idempotency-Key.
func (c *Client) Submit(ctx context.Context, job any, key string) (s Submitted, err error) {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	resp, err := c.do(ctx, http.MethodPost, c.path(c.spelling, "job/submit"), nil, map[string]any{"job": job}, header)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if s.Warnings, err = c.decodeAnswer(resp, &s.JSON); err != nil {
		return s, err
	}
	var answer struct {
		ID      uint32 `json:"job_id"`
		Message string `json:"job_submit_user_msg"`
	}
	if err := json.Unmarshal(s.JSON, &answer); err != nil || answer.ID == 0 {
		return s, errs.New(errs.BadAnswer, "the answer of %s contains no job id", c.addr)
	}
	s.ID, s.Message = answer.ID, answer.Message
	return s, nil
}
