package rest

import (
	"context"
	"encoding/json"
)

// Partition contains the fields of a partition that are shown to people.
type Partition struct {
	Name      string `json:"name"`
	Flags     Words  `json:"flags"` // from v0.0.45 on
	Partition struct {
		State Words `json:"state"`
	} `json:"partition"`
	Nodes struct {
		Configured string `json:"configured"`
		Total      Number `json:"total"`
	} `json:"nodes"`
	CPUs struct {
		Total Number `json:"total"`
	} `json:"cpus"`
	Maximums struct {
		Time Number `json:"time"` // in minutes
	} `json:"maximums"`
	Defaults struct {
		Time Number `json:"time"` // in minutes
	} `json:"defaults"`
}

// Partitions calls each(p, text) for every partition that the server sends for l.
// The text argument is the partition in JSON.
func (c *Client) Partitions(ctx context.Context, l *List, each func(*Partition, json.RawMessage) error) error {
	_, err := c.requestList(ctx, c.path(c.spelling, "partitions/"), l, "partitions", decodeRaw(each))
	return err
}
