package rest

import (
	"context"
	"encoding/json"
	"fmt"
)

// Ping is the result of a ping to a controller.
type Ping struct {
	Hostname   string `json:"hostname"`
	Pinged     string `json:"pinged"` // before v0.0.45
	Responding bool   `json:"responding"`
	Primary    bool   `json:"primary"`
	Latency    Number `json:"latency"` // in microseconds
	Mode       string `json:"mode"`    // role of the controller: primary, or backup with its number
}

// IsUp reports whether the controller has answered.
func (p *Ping) IsUp() bool { return p.Responding || p.Pinged == "UP" }

// Ping returns the result of a ping to each controller.
func (c *Client) Ping(ctx context.Context) (pings []Ping, err error) {
	_, err = c.requestList(ctx, c.path(c.spelling, "ping/"), nil, "pings", decodeRaw(func(p *Ping, _ json.RawMessage) error {
		switch {
		case p.Mode != "":
		case p.Primary || len(pings) == 0:
			p.Mode = "primary"
		default:
			p.Mode = fmt.Sprintf("backup%d", len(pings))
		}
		pings = append(pings, *p)
		return nil
	}))
	return pings, err
}
