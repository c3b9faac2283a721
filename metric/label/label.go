// Package label gives the values of labels that describe a request to the
// gateway or to a daemon. They come from package api and from the messages to
// daemons. Package metric/table contains a list of all of them, which this
// package's test generates, so that the exporter links neither the API nor the
// messages.
package label

import (
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/rpc/message"
)

// Route returns the route of an endpoint. It has this project's spelling
// (/sched), even if the client used Slurm's spelling (/slurm).
func Route(e *api.Endpoint) string {
	return "/" + e.Segment(schema.Sched) + "/" + strings.TrimSuffix(e.Path, "/")
}

// The daemons, in the label daemon.
const (
	controller = "controller"
	accounting = "accounting"
)

// call is a kind of request to a daemon.
type call struct {
	daemon string
	kind   message.Type
}

// RPC returns the daemon and the name of a kind of request to a controller, or
// to an accounting daemon if toAccounting is true. The name of an unknown kind
// is "other".
func RPC(toAccounting bool, kind message.Type) (daemon, rpc string) {
	daemon = controller
	if toAccounting {
		daemon = accounting
	}
	if name, ok := names[call{daemon, kind}]; ok {
		return daemon, name
	}
	return daemon, "other"
}

var names = func() map[call]string {
	m := map[call]string{}
	for _, r := range rpcs {
		m[r.call] = r.name
	}
	return m
}()
