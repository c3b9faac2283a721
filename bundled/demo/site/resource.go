package site

import (
	"context"
	"fmt"
	"net/http"

	"schedrestd/internal/errs"
)

// PingResult is the entry for a controller in the answer to a ping.
type PingResult struct {
	Hostname   string `json:"hostname"`
	Responding bool   `json:"responding"`
	Latency    int64  `json:"latency"` // microseconds
}

// Ping returns the entry for the first controller. It returns an error if that
// controller does not respond.
func (g Gateway) Ping(ctx context.Context) (PingResult, error) {
	var answer struct {
		Pings []PingResult `json:"pings"`
	}
	if err := g.call(ctx, http.MethodGet, g.URL("sched", "ping"), nil, &answer); err != nil {
		return PingResult{}, err
	}
	if len(answer.Pings) == 0 {
		return PingResult{}, errEmpty
	}
	if !answer.Pings[0].Responding {
		return PingResult{}, errs.New(errs.Unavailable, "the gateway reports that the controller does not respond")
	}
	return answer.Pings[0], nil
}

// Diag requests statistics of the accounting daemon through the gateway.
func (g Gateway) Diag(ctx context.Context) error {
	var answer struct{}
	return g.call(ctx, http.MethodGet, g.URL("scheddb", "diag"), nil, &answer)
}

// Node holds some fields of a node.
type Node struct {
	Name   string   `json:"name"`
	State  []string `json:"state"`
	CPUs   int      `json:"cpus"`
	Memory int64    `json:"real_memory"` // MiB
	OS     string   `json:"operating_system"`
}

// Node returns the node with that name.
func (g Gateway) Node(ctx context.Context, name string) (Node, error) {
	var answer struct {
		Nodes []Node `json:"nodes"`
	}
	if err := g.call(ctx, http.MethodGet, g.URL("sched", "node", name), nil, &answer); err != nil {
		return Node{}, err
	}
	if len(answer.Nodes) == 0 {
		return Node{}, errEmpty
	}
	return answer.Nodes[0], nil
}

// Description is the body of a submission.
type Description struct {
	Job struct {
		Name        string   `json:"name"`
		Script      string   `json:"script"`
		Environment []string `json:"environment"`
		WorkDir     string   `json:"current_working_directory"`
		TimeLimit   int      `json:"time_limit"` // minutes
		Tasks       int      `json:"tasks,omitempty"`
	} `json:"job"`
}

// Submit submits a job and returns its number.
func (g Gateway) Submit(ctx context.Context, d Description) (id uint32, err error) {
	var answer struct {
		ID uint32 `json:"job_id"`
	}
	if err := g.call(ctx, http.MethodPost, g.URL("sched", "job", "submit"), d, &answer); err != nil {
		return 0, err
	}
	if answer.ID == 0 {
		return 0, errEmpty
	}
	return answer.ID, nil
}

// Job holds some fields of a job.
type Job struct {
	State []string `json:"job_state"`
	Exit  struct {
		Code struct {
			Number int `json:"number"`
		} `json:"return_code"`
	} `json:"exit_code"`
}

// Active reports whether the job waits or runs.
func (j Job) Active() bool {
	for _, s := range j.State {
		if s == "PENDING" || s == "RUNNING" || s == "CONFIGURING" || s == "COMPLETING" || s == "SUSPENDED" {
			return true
		}
	}
	return len(j.State) == 0
}

// Job returns the job with that number.
func (g Gateway) Job(ctx context.Context, id uint32) (Job, error) {
	var answer struct {
		Jobs []Job `json:"jobs"`
	}
	if err := g.call(ctx, http.MethodGet, g.URL("sched", "job", fmt.Sprint(id)), nil, &answer); err != nil {
		return Job{}, err
	}
	if len(answer.Jobs) == 0 {
		return Job{}, errEmpty
	}
	return answer.Jobs[0], nil
}

// JobState is an element of the answer to a request for the states of all jobs.
// In this answer, the id of a job is a string.
type JobState struct {
	ID    string   `json:"job_id"`
	State []string `json:"state"`
}

// JobStates returns the id and the state of every job that the user may see.
func (g Gateway) JobStates(ctx context.Context) ([]JobState, error) {
	var answer struct {
		Jobs []JobState `json:"jobs"`
	}
	err := g.call(ctx, http.MethodGet, g.URL("sched", "jobs", "state"), nil, &answer)
	return answer.Jobs, err
}

// Cancel cancels the job with that id.
func (g Gateway) Cancel(ctx context.Context, id string) error {
	return g.call(ctx, http.MethodDelete, g.URL("sched", "job", id), nil, &struct{}{})
}
