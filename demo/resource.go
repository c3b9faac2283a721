package demo

import (
	"context"
	"fmt"
	"net/http"

	"schedrestd/errs"
)

// pinged is the controller's entry in the answer to ping.
type pinged struct {
	Hostname   string `json:"hostname"`
	Responding bool   `json:"responding"`
	Latency    int64  `json:"latency"` // microseconds
}

func (g gateway) ping(ctx context.Context) (pinged, error) {
	var answer struct {
		Pings []pinged `json:"pings"`
	}
	if err := g.call(ctx, http.MethodGet, g.url("sched", "ping"), nil, &answer); err != nil {
		return pinged{}, err
	}
	if len(answer.Pings) == 0 {
		return pinged{}, errEmpty
	}
	if !answer.Pings[0].Responding {
		return pinged{}, errs.New(errs.Unavailable, "the gateway says that the controller does not respond")
	}
	return answer.Pings[0], nil
}

// diag asks the accounting daemon, through the gateway.
func (g gateway) diag(ctx context.Context) error {
	var answer struct{}
	return g.call(ctx, http.MethodGet, g.url("scheddb", "diag"), nil, &answer)
}

type node struct {
	Name   string   `json:"name"`
	State  []string `json:"state"`
	CPUs   int      `json:"cpus"`
	Memory int64    `json:"real_memory"` // MiB
	OS     string   `json:"operating_system"`
}

func (g gateway) node(ctx context.Context, name string) (node, error) {
	var answer struct {
		Nodes []node `json:"nodes"`
	}
	if err := g.call(ctx, http.MethodGet, g.url("sched", "node", name), nil, &answer); err != nil {
		return node{}, err
	}
	if len(answer.Nodes) == 0 {
		return node{}, errEmpty
	}
	return answer.Nodes[0], nil
}

// description is the body of a submission.
type description struct {
	Job struct {
		Name        string   `json:"name"`
		Script      string   `json:"script"`
		Environment []string `json:"environment"`
		WorkDir     string   `json:"current_working_directory"`
		TimeLimit   int      `json:"time_limit"` // minutes
	} `json:"job"`
}

func (g gateway) submit(ctx context.Context, d description) (id uint32, err error) {
	var answer struct {
		ID uint32 `json:"job_id"`
	}
	if err := g.call(ctx, http.MethodPost, g.url("sched", "job", "submit"), d, &answer); err != nil {
		return 0, err
	}
	if answer.ID == 0 {
		return 0, errEmpty
	}
	return answer.ID, nil
}

type job struct {
	State []string `json:"job_state"`
	Exit  struct {
		Code struct {
			Number int `json:"number"`
		} `json:"return_code"`
	} `json:"exit_code"`
}

// waiting tells whether the job has still to begin or to end.
func (j job) waiting() bool {
	for _, s := range j.State {
		if s == "PENDING" || s == "RUNNING" || s == "CONFIGURING" || s == "COMPLETING" || s == "SUSPENDED" {
			return true
		}
	}
	return len(j.State) == 0
}

func (g gateway) job(ctx context.Context, id uint32) (job, error) {
	var answer struct {
		Jobs []job `json:"jobs"`
	}
	if err := g.call(ctx, http.MethodGet, g.url("sched", "job", fmt.Sprint(id)), nil, &answer); err != nil {
		return job{}, err
	}
	if len(answer.Jobs) == 0 {
		return job{}, errEmpty
	}
	return answer.Jobs[0], nil
}
