package metric

// Prefix begins the name of every metric of the gateway.
const Prefix = "schedrestd_"

// The values of labels, by index.
const (
	RefusedUnidentified = iota // the kernel does not report its user
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
	Start = &Family{Name: Prefix + "dispatcher_start_time_seconds", Kind: Gauge,
		Help: "Unix time when the process started that keeps all counters. They begin at 0 then."}
	Generations = &Family{Name: Prefix + "generations_total",
		Help: "Configurations that came into force, the first one included."}

	Slots = &Family{Name: Prefix + "slots", Kind: Gauge,
		Help: "Connections that are served concurrently at most (--max-connections)."}
	SlotsUsed = &Family{Name: Prefix + "slots_used", Kind: Gauge,
		Help: "Connections that have a slot."}
	SlotsWaiting = &Family{Name: Prefix + "slots_waiting", Kind: Gauge,
		Help: "Connections that wait for a slot."}
	Sources = &Family{Name: Prefix + "sources", Kind: Gauge,
		Help: "Clients that have a connection, by address or local user."}
	Connections = &Family{Name: Prefix + "connections_total",
		Help: "Connections that were accepted."}
	Waited = &Family{Name: Prefix + "connections_waited_total",
		Help: "Connections that had to wait for a slot."}
	Refused = &Family{Name: Prefix + "connections_refused_total",
		Help:   "Connections that were closed or answered without being served, by reason.",
		Labels: []Label{Labelled("reason", "unidentified", "forbidden", "blocked", "unavailable")}}

	Offences = &Family{Name: Prefix + "offences_total",
		Help:   "Offences of clients, by kind; see LIMITS.md.",
		Labels: []Label{Labelled("kind", "auth", "malformed", "crash")}} // in the order of package penalty
	Blocks = &Family{Name: Prefix + "sources_blocked_total",
		Help: "How often a client was blocked for its offences."}
	Debts = &Family{Name: Prefix + "sources_with_penalties", Kind: Gauge,
		Help: "Clients that have offended recently."}

	Workers = &Family{Name: Prefix + "workers", Kind: Gauge,
		Help: "Worker processes that run."}
	WorkersStarted = &Family{Name: Prefix + "workers_started_total",
		Help: "Worker processes that were started."}
	WorkersExited = &Family{Name: Prefix + "workers_exited_total",
		Help:   "Worker processes that exited, by cause: as intended, by themselves, killed by the dispatcher, killed by their sandbox.",
		Labels: []Label{Labelled("cause", "finished", "died", "killed", "forbidden_call")}}

	Dials = &Family{Name: Prefix + "daemon_connections_total",
		Help:   "Connections to daemons that workers requested, by result.",
		Labels: []Label{Labelled("result", "opened", "failed", "limited")}}

	// Sums of what workers report as it is now.
	RequestsInFlight = &Family{Name: Prefix + "http_requests_in_flight", Kind: Gauge,
		Help: "Requests that are being answered."}
	CallsInFlight = &Family{Name: Prefix + "rpc_requests_in_flight", Kind: Gauge,
		Help: "Requests to daemons that are not answered yet."}
)

// Gateway returns a table with the families of the dispatcher. Those that workers count
// follow in other tables, from the cell Workers' on.
func Gateway() *Table {
	t := new(Table)
	t.Add(gateway...)
	return t
}

var gateway = []*Family{
	Start, Generations, Slots, SlotsUsed, SlotsWaiting, Sources, Connections, Waited, Refused, Offences, Blocks, Debts,
	Workers, WorkersStarted, WorkersExited, Dials, RequestsInFlight, CallsInFlight,
}

// FromWorkers is the first cell that workers may count.
var FromWorkers = Gateway().Cells
