package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"schedrestd/internal/errs"
)

// A Collection is a list of the API whose objects are shown as they are.
type Collection struct {
	Path       string // of the operation
	Key        string // member of the answer that has the list
	Accounting bool   // the accounting daemon has the list
}

// Records calls each for every object of a collection, in JSON.
func (c *Client) Records(ctx context.Context, list Collection, each func(json.RawMessage) error) error {
	plugin := c.spelling
	if list.Accounting {
		plugin += "db"
	}
	_, err := c.requestList(ctx, c.path(plugin, list.Path), nil, list.Key, decodeRaw(func(_ *struct{}, text json.RawMessage) error { return each(text) }))
	return err
}

// Shares calls each for every fair share, in JSON. The query contains the
// parameters of the operation. The answer has the list in an object.
func (c *Client) Shares(ctx context.Context, query url.Values, each func(json.RawMessage) error) error {
	resp, err := c.do(ctx, http.MethodGet, c.path(c.spelling, "shares"), query, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Shares struct {
			Shares []json.RawMessage `json:"shares"`
		} `json:"shares"`
	}
	if _, err := c.decodeAnswer(resp, &answer); err != nil {
		return err
	}
	for _, text := range answer.Shares.Shares {
		if err := each(text); err != nil {
			return err
		}
	}
	return nil
}

// Priorities calls each for the priority of every waiting job, in JSON. The query
// contains the parameters of the operation. slurmrestd does not have the operation:
// the error is then errs.Unsupported.
func (c *Client) Priorities(ctx context.Context, query url.Values, each func(json.RawMessage) error) error {
	_, err := c.requestList(ctx, c.path("sched", "jobs/priority/"), &List{Query: query}, "priorities", decodeRaw(func(_ *struct{}, text json.RawMessage) error { return each(text) }))
	if errs.KindOf(err) == errs.NotFound {
		return errs.New(errs.Unsupported, "%s does not report priorities", c.addr).
			WithHint("use sprio; of schedrestd, it needs a release with GET /sched/…/jobs/priority and not SCHEDRESTD_NAMES=slurm")
	}
	return err
}

// Names returns the names of all objects of a collection that the user may see.
func (c *Client) Names(ctx context.Context, list Collection) (names []string, err error) {
	plugin := c.spelling
	if list.Accounting {
		plugin += "db"
	}
	type named struct {
		Name string `json:"name"`
	}
	_, err = c.requestList(ctx, c.path(plugin, list.Path), &List{Fields: []string{"name"}}, list.Key, decodeEach(func(o *named) error {
		names = append(names, o.Name)
		return nil
	}))
	return names, err
}
