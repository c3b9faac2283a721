package rest

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"schedrestd/internal/errs"
)

// Node contains the fields of a node that are shown to people.
type Node struct {
	Name       string `json:"name"`
	State      Words  `json:"state"`
	CPUs       Number `json:"cpus"`
	Effective  Number `json:"effective_cpus"` // those that jobs may use
	Allocated  Number `json:"alloc_cpus"`
	Load       Number `json:"cpu_load"`     // in hundredths
	Memory     Number `json:"real_memory"`  // in MiB
	AllocMem   Number `json:"alloc_memory"` // in MiB
	Free       Number `json:"free_mem"`     // in MiB
	Gres       string `json:"gres"`
	GresUsed   string `json:"gres_used"`
	Partitions Words  `json:"partitions"`
	Reason     string `json:"reason"`
}

// BaseState returns the state without flags, such as IDLE.
func (n *Node) BaseState() string {
	if len(n.State) == 0 {
		return "UNKNOWN"
	}
	return n.State[0]
}

// Nodes calls each(n, text) for every node that the server sends for l. The text
// argument is the node in JSON.
func (c *Client) Nodes(ctx context.Context, l *List, each func(*Node, json.RawMessage) error) (Meta, error) {
	return c.requestList(ctx, c.path(c.spelling, "nodes/"), l, "nodes", decodeRaw(each))
}

// Node calls each(n, text) for the node with the given name. The text argument
// is the node in JSON.
func (c *Client) Node(ctx context.Context, name string, each func(*Node, json.RawMessage) error) error {
	unknown := errs.New(errs.NotFound, "node %s is unknown", shorten(name)).WithHint("schedctl nodes lists the nodes")
	found := false
	_, err := c.requestList(ctx, c.path(c.spelling, "node/"+url.PathEscape(name)), nil, "nodes", decodeRaw(func(n *Node, text json.RawMessage) error {
		found = true
		return each(n, text)
	}))
	if err == nil && !found || errs.KindOf(err) == errs.NotFound {
		return unknown
	}
	return err
}

// GPUs returns the number of GPUs of n that are in use, and of all.
func (n *Node) GPUs() (used, all int64) { return countGPUs(n.GresUsed), countGPUs(n.Gres) }

// countGPUs returns the number of GPUs in a list of generic resources, such as
// "gpu:a100:4(S:0-1),gpu:2,nic:1".
func countGPUs(gres string) (n int64) {
	for item := range strings.SplitSeq(indexes.ReplaceAllString(gres, ""), ",") {
		name, count, hasCount := strings.Cut(item, ":")
		if name != "gpu" {
			continue
		}
		if i := strings.LastIndexByte(count, ':'); i >= 0 {
			count = count[i+1:]
		}
		number, err := strconv.ParseInt(count, 10, 64)
		if !hasCount || err != nil { // "gpu" and "gpu:a100" stand for one GPU
			number = 1
		}
		n += number
	}
	return n
}

// indexes matches the indexes of devices and sockets in a list of generic
// resources.
var indexes = regexp.MustCompile(`\([^)]*\)`)
