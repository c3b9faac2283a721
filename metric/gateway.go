package metric

// Prefix begins the names of all the gateway's metrics.
const Prefix = "schedrestd_"

// Values of labels, by index.
const (
	RefusedUnidentified = iota // the kernel does not report the client's user
	RefusedForbidden
	RefusedBlocked
	RefusedUnavailable
)

const (
	ExitFinished = iota
	ExitDied
	ExitKilled
	ExitForbidden
)

const (
	DialOpened = iota
	DialFailed
	DialLimited
)

// Families that the dispatcher counts.
var (
	StartTime = &Family{Name: Prefix + "dispatcher_start_time_seconds", Kind: Gauge,
		Help: "Unix time at which the dispatcher started. All counters began at 0 then."}
	Generations = &Family{Name: Prefix + "generations_total",
		Help: "Generations that began to serve, including the first."}
	ReloadRejected = &Family{Name: Prefix + "reload_rejected", Kind: Gauge,
		Help: "1 if the last reload was rejected, so that the gateway keeps the configuration before it; otherwise 0."}

	Slots = &Family{Name: Prefix + "slots", Kind: Gauge,
		Help: "Maximum number of connections that are served concurrently (--max-connections)."}
	SlotsUsed = &Family{Name: Prefix + "slots_used", Kind: Gauge,
		Help: "Connections that have a slot."}
	SlotsWaiting = &Family{Name: Prefix + "slots_waiting", Kind: Gauge,
		Help: "Connections that wait for a slot."}
	Sources = &Family{Name: Prefix + "sources", Kind: Gauge,
		Help: "Clients that have a connection, by address or local user."}
	Connections = &Family{Name: Prefix + "connections_total",
		Help: "Connections that were accepted."}
	ConnectionsWaited = &Family{Name: Prefix + "connections_waited_total",
		Help: "Connections that had to wait for a slot."}
	ConnectionsRefused = &Family{Name: Prefix + "connections_refused_total",
		Help:   "Connections that were refused, by reason.",
		Labels: []Label{Labelled("reason", "unidentified", "forbidden", "blocked", "unavailable")}}

	Offences = &Family{Name: Prefix + "offences_total",
		Help:   "Offences by clients, by kind; see LIMITS.md.",
		Labels: []Label{Labelled("kind", "auth", "malformed", "crash")}} // in the order of package penalty
	Blocks = &Family{Name: Prefix + "sources_blocked_total",
		Help: "Blocks of clients for their offences."}
	Debts = &Family{Name: Prefix + "sources_with_penalties", Kind: Gauge,
		Help: "Clients that have a debt for offences."}

	Workers = &Family{Name: Prefix + "workers", Kind: Gauge,
		Help: "Worker processes that run."}
	WorkersStarted = &Family{Name: Prefix + "workers_started_total",
		Help: "Worker processes that were started."}
	WorkersExited = &Family{Name: Prefix + "workers_exited_total",
		Help:   "Worker processes that exited, by cause: finished (as intended), died (unexpectedly), killed (by the dispatcher), forbidden_call (killed by the sandbox).",
		Labels: []Label{Labelled("cause", "finished", "died", "killed", "forbidden_call")}}

	Dials = &Family{Name: Prefix + "daemon_connections_total",
		Help:   "Connections to daemons that workers requested, by result.",
		Labels: []Label{Labelled("result", "opened", "failed", "limited")}}

	WatchConnections = &Family{Name: Prefix + "watch_connections", Kind: Gauge,
		Help: "Connections that need no slot, because all their requests wait for changes or follow them, or have done so."}
	WatchConnectionsMax = &Family{Name: Prefix + "watch_connections_max", Kind: Gauge,
		Help: "Maximum number of connections that need no slot while they wait or follow changes."}

	// Sums of what workers have at present.
	RequestsInFlight = &Family{Name: Prefix + "http_requests_in_flight", Kind: Gauge,
		Help: "Requests that are being answered or wait for a change, including streams of events."}
	CallsInFlight = &Family{Name: Prefix + "rpc_requests_in_flight", Kind: Gauge,
		Help: "Requests to daemons that are not answered yet."}
	Waits = &Family{Name: Prefix + "watch_requests", Kind: Gauge,
		Help: "Requests that wait for a change."}
	Streams = &Family{Name: Prefix + "watch_streams", Kind: Gauge,
		Help: "Streams of events in progress."}
	Readers = &Family{Name: Prefix + "watch_readers", Kind: Gauge,
		Help: "Lists of the controller that are read again and again because clients with one credential wait or follow changes."}
)

// Gateway returns a table with the families that the dispatcher counts. Package
// metric/table adds the families that workers count. Their cells start at
// FromWorkers.
func Gateway() *Table {
	t := new(Table)
	t.Add(gateway...)
	return t
}

var gateway = []*Family{
	StartTime, Generations, ReloadRejected, Slots, SlotsUsed, SlotsWaiting, Sources, Connections, ConnectionsWaited, ConnectionsRefused, Offences, Blocks, Debts,
	Workers, WorkersStarted, WorkersExited, Dials, WatchConnections, WatchConnectionsMax,
	RequestsInFlight, CallsInFlight, Waits, Streams, Readers,
}

// FromWorkers is the number of the first cell of the families that workers
// count.
var FromWorkers = Gateway().Cells
