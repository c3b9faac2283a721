// Package table builds the complete table of the gateway's metrics. It adds the
// metrics about requests to those of package metric. Workers and the exporter
// build the same table. The values of labels that come from the API, and from
// the messages to daemons, are a generated list (labels.go), so that the
// exporter links only their names. Package metric/label gives a worker the
// values for a request.
package table

import (
	"net/http"
	"slices"
	"strconv"

	"schedrestd/internal/limit"
	"schedrestd/metric"
)

// pages are the paths that do not belong to the API.
var pages = []string{"healthz", "livez", "readyz", "openapi", "versions", "metrics/cluster"}

// methods are the label values for the methods of requests without a route. The
// last value stands for all other methods.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "other"}

// statuses are the statuses that have their own label value. The last element
// stands for all other statuses.
var statuses = []int{200, 204, 304, 400, 401, 403, 404, 405, 406, 408, 409, 411, 412, 413, 414, 415, 417, 422, 429, 431, 499, 500, 501, 502, 503, 504, 505, 0}

// failureReasons are the reasons why a request to a daemon can fail.
var failureReasons = []string{"unreachable", "timeout", "broken", "refused", "other"}

// Indices of results.
const (
	Unreachable = iota // no connection
	Timeout            // no answer in time
	Broken             // an answer that is missing, incomplete or unintelligible
	Refused            // the daemon answered with an error
	Other              // the request could not be created
)

// Indices of Table.Denied.
const (
	DeniedUnauthenticated = iota
	DeniedBlocked
	DeniedRate
	DeniedShare
	DeniedFull
	DeniedWatch
)

// Indices of Table.Malformed.
const (
	MalformedRequest = iota
	MalformedHandshake
	MalformedFrames
)

// Indices of Table.Waits.
const (
	WaitChanged = iota // something has changed that the request may show
	WaitTimeout        // the time that the client asked for was over
	WaitStopped        // the gateway ended the wait
	WaitLeft           // the client closed its connection
	WaitFailed         // the credential was refused, or the request could not go on
)

// Indices of Table.Reads.
const (
	ReadChanged = iota
	ReadUnchanged
	ReadFailed
)

// Indices of Table.Reused.
const (
	ReusedShared = iota // the answer to a request that was sent for several at once
	ReusedKept          // the answer to an earlier request
)

// Indices of Table.Events.
const (
	EventSnapshot = iota
	EventAdded
	EventChanged
	EventRemoved
	EventReset
	EventEnd
	EventLate
)

// Table is the complete table of metrics. It contains one field for each family
// that workers count. It also contains maps from label values to their indices.
type Table struct {
	metric.Table

	Requests, Durations       *metric.Family
	Received, Sent            *metric.Family
	Denied, Malformed         *metric.Family
	Stalled                   *metric.Family
	Changes, Unrecorded       *metric.Family
	CallDurations, CallErrors *metric.Family
	Reused                    *metric.Family
	Waits, Wakes, Events      *metric.Family
	Reads, Saved              *metric.Family
	LimitWaits, LimitRefusals *metric.Family // by index in limit.Counted

	operations map[[2]string]int // by route and method
	versions   map[string]int
	status     map[int]int
	calls      map[[2]string]int // by daemon and kind of request
}

// New returns the table.
func New() *Table {
	t := &Table{
		Table:      *metric.Gateway(),
		operations: map[[2]string]int{},
		versions:   map[string]int{},
		status:     map[int]int{},
		calls:      map[[2]string]int{},
	}
	routes := t.routeLabel()
	label := func(name string, values ...string) []metric.Label {
		return []metric.Label{metric.Labelled(name, values...)}
	}
	rpcs := t.rpcLabel()
	t.Requests = &metric.Family{Name: metric.Prefix + "http_requests_total",
		Help:   "Requests that were answered, by route, API version, method and status.",
		Labels: []metric.Label{routes, t.versionLabel(), t.statusLabel()}}
	t.Durations = &metric.Family{Name: metric.Prefix + "http_request_duration_seconds", Kind: metric.Histogram,
		Help:   "Time from the header of a request to the end of its answer, without the time for which it waited for changes or followed them.",
		Labels: []metric.Label{routes}}
	t.Received = &metric.Family{Name: metric.Prefix + "http_received_bytes_total",
		Help: "Bytes received from clients on all connections, including the overhead of TLS."}
	t.Sent = &metric.Family{Name: metric.Prefix + "http_sent_bytes_total",
		Help: "Bytes sent to clients on all connections, including the overhead of TLS."}
	t.Denied = &metric.Family{Name: metric.Prefix + "http_requests_refused_total",
		Help:   "Requests refused because of a limit or the credential, by reason.",
		Labels: label("reason", "unauthenticated", "blocked", "rate", "share", "full", "watch")}
	t.Malformed = &metric.Family{Name: metric.Prefix + "http_malformed_total",
		Help:   "Malformed input from clients, by part of the protocol.",
		Labels: label("part", "request", "handshake", "frames")}
	t.Stalled = &metric.Family{Name: metric.Prefix + "http_streams_stalled_total",
		Help: "Answers that were aborted because the client did not read them while others waited."}
	t.Changes = &metric.Family{Name: metric.Prefix + "changes_total",
		Help: "Changes for which an audit record was requested."}
	t.Unrecorded = &metric.Family{Name: metric.Prefix + "changes_unrecorded_total",
		Help: "Changes that were refused because they could not be recorded."}
	t.CallDurations = &metric.Family{Name: metric.Prefix + "rpc_duration_seconds", Kind: metric.Histogram,
		Help:   "Time of a request to a daemon, from its connection to the first part of its answer.",
		Labels: []metric.Label{rpcs}}
	t.CallErrors = &metric.Family{Name: metric.Prefix + "rpc_errors_total",
		Help:   "Requests to daemons that failed, by reason.",
		Labels: append([]metric.Label{rpcs}, label("reason", failureReasons...)...)}
	t.Reused = &metric.Family{Name: metric.Prefix + "rpc_reused_total",
		Help:   "Requests to the controller that were not necessary, because its answer to another one could be used: shared (they came at the same time), kept (it was sent before).",
		Labels: label("reason", "shared", "kept")}
	t.Waits = &metric.Family{Name: metric.Prefix + "watch_waits_total",
		Help:   "Requests that have waited for a change, by what ended the wait.",
		Labels: label("result", "changed", "timeout", "stopped", "left", "failed")}
	t.Wakes = &metric.Family{Name: metric.Prefix + "watch_wakes_total",
		Help: "How often requests that waited were carried out again, because something had changed that they might show."}
	t.Events = &metric.Family{Name: metric.Prefix + "watch_events_total",
		Help:   "Events that were sent to clients that follow changes, by kind.",
		Labels: label("kind", "snapshot", "added", "changed", "removed", "reset", "end", "late")}
	t.Reads = &metric.Family{Name: metric.Prefix + "watch_reads_total",
		Help:   "How often readers have read their lists, by whether they found a change.",
		Labels: label("result", "changed", "unchanged", "failed")}
	t.Saved = &metric.Family{Name: metric.Prefix + "watch_rpc_saved_total",
		Help: "Requests to the controller that were saved: those that clients would have caused in addition, if each of them had polled as often as the reader that they share."}
	var limits []string
	for _, c := range limit.Counted() {
		limits = append(limits, c.Label)
	}
	t.LimitWaits = &metric.Family{Name: metric.Prefix + "limit_waits_total",
		Help:   "How often a worker had to wait for a place, by limit; see LIMITS.md.",
		Labels: label("limit", limits...)}
	t.LimitRefusals = &metric.Family{Name: metric.Prefix + "limit_refusals_total",
		Help:   "How often a worker got no place in time, by limit; see LIMITS.md.",
		Labels: label("limit", limits...)}
	t.Add(t.Requests, t.Durations, t.Received, t.Sent, t.Denied, t.Malformed, t.Stalled, t.Changes, t.Unrecorded, t.CallDurations, t.CallErrors,
		t.Reused, t.Waits, t.Wakes, t.Events, t.Reads, t.Saved, t.LimitWaits, t.LimitRefusals)
	return t
}

// routeLabel returns the label with all combinations of a route and a method.
func (t *Table) routeLabel() metric.Label {
	list := slices.Clone(operations)
	for _, page := range pages {
		list = append(list, [2]string{"/" + page, http.MethodGet}, [2]string{"/" + page, http.MethodHead})
	}
	for _, method := range methods {
		list = append(list, [2]string{"none", method})
	}
	return pairLabel("route", "method", list, t.operations)
}

// pairLabel returns a label with two names and their combinations of values. It
// sets the index of each combination in indices.
func pairLabel(first, second string, list [][2]string, indices map[[2]string]int) metric.Label {
	l := metric.Label{Names: []string{first, second}}
	for i, pair := range list {
		indices[pair] = i
		l.Values = append(l.Values, pair[:])
	}
	return l
}

func (t *Table) versionLabel() metric.Label {
	for i, v := range versions {
		t.versions[v] = i + 1
	}
	return metric.Labelled("version", append([]string{""}, versions...)...)
}

func (t *Table) statusLabel() metric.Label {
	var words []string
	for i, s := range statuses {
		t.status[s] = i
		words = append(words, strconv.Itoa(s))
	}
	words[len(words)-1] = "other"
	return metric.Labelled("status", words...)
}

func (t *Table) rpcLabel() metric.Label {
	list := append(slices.Clone(calls), [2]string{"controller", "other"}, [2]string{"accounting", "other"})
	return pairLabel("daemon", "rpc", list, t.calls)
}

// Operation returns the index of the label value for a route and a method. If
// the route is unknown or lacks the method, Operation returns an index for
// requests without a route.
func (t *Table) Operation(route, method string) int {
	if i, ok := t.operations[[2]string{route, method}]; ok {
		return i
	}
	if !slices.Contains(methods, method) {
		method = "other"
	}
	return t.operations[[2]string{"none", method}]
}

// Version returns the index of the label value for an API version, such as
// v0.0.40. For an unknown version it returns 0.
func (t *Table) Version(v string) int { return t.versions[v] }

// Status returns the index of a status.
func (t *Table) Status(status int) int {
	if i, ok := t.status[status]; ok {
		return i
	}
	return len(statuses) - 1
}

// Call returns the index of the label value for a kind of request to a daemon.
// If the kind is unknown, Call returns the index for other kinds.
func (t *Table) Call(daemon, rpc string) int {
	if i, ok := t.calls[[2]string{daemon, rpc}]; ok {
		return i
	}
	return t.calls[[2]string{daemon, "other"}]
}
