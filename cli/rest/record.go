package rest

import (
	"context"
	"encoding/json"
	"net/http"

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

// Shares calls each for every fair share, in JSON. The answer has the list in an
// object.
func (c *Client) Shares(ctx context.Context, each func(json.RawMessage) error) error {
	resp, err := c.do(ctx, http.MethodGet, c.path(c.spelling, "shares"), nil, nil, nil)
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

// UserNames returns the names of all users in the accounting records that the
// user may see.
func (c *Client) UserNames(ctx context.Context) (names []string, err error) {
	err = c.Records(ctx, Collection{Path: "users/", Key: "users", Accounting: true}, func(text json.RawMessage) error {
		var user struct {
			Name string `json:"name"`
		}
		err := json.Unmarshal(text, &user)
		names = append(names, user.Name)
		return errs.Wrap(err, errs.BadAnswer, "read the users")
	})
	return names, err
}
