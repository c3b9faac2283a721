package limit

import (
	"fmt"

	"schedrestd/internal/rate"
)

// Rates of new connections. A connection takes the gateway longer than the
// client. Without these limits, the local user who connects most often would use
// most of the parent's and the dispatcher's time. There is none for TCP: most of
// the time that such a connection takes is the parent's, before its source is known.
var (
	// ParentArrivals is the parent's limit (privsep/monitor.go).
	ParentArrivals = rate.Row{Name: "new connections to UNIX sockets", Process: "parent", Key: "user", Burst: 2000, PerSecond: 2000, Max: 4096, Refused: "closed"}

	// Until the user database has answered, all uids beyond this limit are one
	// source.
	AssumedUIDs = rate.Row{Name: "uids that are assumed to have a name", Process: "dispatcher", Key: "process", Burst: 256, PerSecond: 10,
		Refused: "shares a source", Shared: "new users share one source until the resolver answers"}

	// Each answer costs a worker's time.
	RefusalAnswers = rate.Row{Name: "answers to refused connections", Process: "dispatcher", Key: "process", Burst: 256, PerSecond: 128,
		Refused: "closed without an answer", Shared: "other refused connections are closed without an answer", Metric: "schedrestd_connections_refused_total"}

	// DaemonArrivals exempts root, the scheduler's user and the daemon's own user.
	// A gateway connects once for each request.
	DaemonArrivals = rate.Row{Name: "new connections to UNIX sockets", Process: "schedctld, scheddbd", Key: "user", Burst: 5000, PerSecond: 5000, Max: 4096, Refused: "closed"}
)

// Rates of requests and of what they cause.
var (
	// Only users who have sent a valid credential have a bucket.
	UserRequests = rate.Row{Name: "requests", Process: "worker", Key: "user", Setting: "SCHEDRESTD_RATE", Max: 10_000, Refused: "429", Metric: "schedrestd_http_requests_refused_total"}

	// When the disk of the audit log is full, the gateway refuses changes of all
	// users. So a user who makes changes too fast is refused, long before that
	// happens. The burst is about 18,000 changes, the rate about 35 changes a
	// second.
	AuditBytes = rate.Row{Name: "bytes of changes in the audit log", Process: "worker", Key: "user", Burst: 16 << 20, PerSecond: 32 << 10, Max: 10_000, Refused: "429"}

	// A client that downloads a large file takes its processor time in turns with
	// other requests.
	OutputBytes = rate.Row{Name: "bytes of output files", Process: "worker", Key: "user", Burst: 64 << 20, PerSecond: 64 << 20, Max: 10_000, Refused: "waits"}

	// Package http2server describes the price of frames. The burst of 1000 is
	// nghttp2's default for cancelled requests. The rate permits 33 cancelled
	// requests a second, as in nghttp2.
	Frames = rate.Row{Name: "HTTP/2 frames without progress", Process: "worker", Key: "connection", Burst: 1000, PerSecond: 100, Refused: "closed", Metric: "schedrestd_http_malformed_total"}

	OffenceReports = rate.Row{Name: "reports of offences", Process: "worker", Key: "process", Burst: 200, PerSecond: 100,
		Refused: "is not reported", Shared: "a source that causes so many is already blocked", Metric: "schedrestd_offences_total"}

	// A client that repeats one credential must not be punished like a client that
	// guesses many. An attacker gains nothing by alternating between credentials,
	// because each different one counts. A worker remembers those of clients behind
	// proxies.
	RejectedCredentials = rate.Row{Name: "penalties for one rejected credential", Process: "dispatcher, worker", Key: "credential", Burst: 1, PerSecond: 1. / 86_400, Max: 16_384,
		Refused: "costs nothing"}

	// The journal is written at this rate for one user, so that one user's
	// submissions don't fill the disk.
	JobBytes = rate.Row{Name: "bytes that are written for jobs", Process: "schedctld", Key: "user", Burst: 64 << 20, PerSecond: 64 << 10, Max: 10_000, Refused: "an error"}
)

// Rates at which a process may use another one. An honest process stays below
// them; a compromised one harms only itself.
var (
	// A worker opens one connection for each request to a daemon. One that
	// requests too many could exhaust the daemons' threads.
	WorkerDials       = rate.Row{Name: "connections to daemons", Process: "dispatcher", Key: "worker", Burst: 4000, PerSecond: 5000, Refused: "try again", Metric: "schedrestd_daemon_connections_total"}
	WorkerDialRetries = rate.Row{Name: "requests for connections that get the answer to try again", Process: "dispatcher", Key: "worker", Burst: 10_000, PerSecond: 1000, Refused: "killed"} // an honest worker has at most 48 pending requests, and waits for 50 ms before it repeats one

	// Each look-up may start a process and ask a name server. Until it has an answer,
	// no other one of this host begins.
	HostLookups = rate.Row{Name: "look-ups of a daemon's host that can't be reached", Process: "dispatcher", Key: "host", Burst: 1, PerSecond: 1, Refused: "uses the last answer", Shared: "all requests need the same answer"}

	// The numbers depend on the number of connections. An honest worker reports
	// the stage of a connection only if the stage has lasted for a moment, or if
	// the worker was asked to close the connection
	// (gateway/worker/conns/stage.go). A connection that waits for a change goes
	// on at most once a second.
	WorkerStages = rate.Row{Name: "reports on the state of connections", Process: "dispatcher", Key: "worker", Setting: "--max-connections", Refused: "killed"}

	// An honest worker reports at most half as many (OffenceReports).
	WorkerOffences = rate.Row{Name: "reports of offences", Process: "dispatcher", Key: "worker", Burst: 400, PerSecond: 200, Refused: "killed"}

	// An honest worker sends its counts once a second, in a few messages.
	WorkerCounts = rate.Row{Name: "messages with counts", Process: "dispatcher", Key: "worker", Burst: 100, PerSecond: 10, Refused: "killed"}

	// One line for each request that a worker can answer. A worker that replaces
	// another gets only the rest.
	LogBytes = rate.Row{Name: fmt.Sprintf("bytes of log lines, at least %d for each", LogLineSize), Process: "dispatcher", Key: "worker or service",
		Burst: LogLineSize * 20_000, PerSecond: LogLineSize * 10_000, Max: 1000, Refused: "left out"}

	// The daemons can't make changes as fast as an honest worker may announce
	// them. A worker that is faster gets the answer to try again, so that a
	// compromised worker can't fill the disk with log lines.
	Intents       = rate.Row{Name: "changes that are announced", Process: "auditor", Key: "worker", Burst: 2000, PerSecond: 1000, Refused: "try again"}
	IntentRetries = rate.Row{Name: "announced changes that get the answer to try again", Process: "auditor", Key: "worker", Burst: 20_000, PerSecond: 20_000, Refused: "killed"}

	// An honest worker passes on what users ask for. The number of a user's tokens has a
	// limit as well (GatewayTokens).
	TokenCreations = rate.Row{Name: "gateway tokens that clients create", Process: "keeper", Key: "worker", Burst: 30, PerSecond: 0.5, Refused: "429"}

	// A unit is 20 µs of CPU time, so a worker gets half of one CPU. An honest
	// worker stays far below, because its own work on a handshake or a token takes
	// longer than the keeper's (gateway/keeper/cost.go).
	KeeperWork = rate.Row{Name: "work of the keeper, in units of 20 µs", Process: "keeper", Key: "worker", Burst: 25_000, PerSecond: 25_000, Refused: "waits"}

	// Enough to look up each user of a cluster once.
	ResolverMisses = rate.Row{Name: "questions whose answers are not in the cache", Process: "resolver", Key: "worker", Burst: 2000, PerSecond: 100, Refused: "waits"}
	// A worker remembers names itself, so it does not need more.
	ResolverQuestions = rate.Row{Name: "questions", Process: "resolver", Key: "worker", Burst: 20_000, PerSecond: 5000, Refused: "waits"}

	// The dispatcher kills each reported worker. If a service is restarted, its
	// new process may use only the rest.
	ServiceReports = rate.Row{Name: "workers that a service reports for breaking the protocol", Process: "dispatcher", Key: "service", Burst: 100, PerSecond: .1, Refused: "killed"}

	// An honest auditor asks once for each batch of lines.
	AuditLogChecks = rate.Row{Name: "questions whether the path of the audit log leads to the same file", Process: "dispatcher", Key: "auditor", Burst: 4000, PerSecond: 2000, Refused: "killed"}

	// An honest exporter asks at most ten times a second.
	Samples = rate.Row{Name: "questions for samples", Process: "dispatcher", Key: "exporter", Burst: 40, PerSecond: 20, Refused: "killed"}

	// The parent's limits, like ParentArrivals.
	ParentVouches  = rate.Row{Name: "users for whom the keeper vouches", Process: "parent", Key: "keeper", Burst: 1000, PerSecond: 100, Refused: "waits"}
	ParentRestarts = rate.Row{Name: "starts of dispatchers after the first", Process: "parent", Key: "dispatcher", Burst: 5, PerSecond: 1. / 10, Refused: "waits"}
)

// Rates of log lines about what clients can cause without limit.
var (
	// By default journald drops lines of a service that logs more than 10,000 in
	// 30 s, which then include those about other clients. Two workers together stay
	// below this, even with a line about each source of which lines are left out.
	RequestLines = rate.Row{Name: "log lines about requests", Process: "worker", Key: "user or source", Burst: 50, PerSecond: 50, All: 60, Max: 60,
		Refused: "left out; the log has their number"}
	// These are separate, so that other lines don't suppress them.
	RefusalLines = rate.Row{Name: "log lines about refused credentials", Process: "worker", Key: "user or source", Burst: 10, PerSecond: 10, All: 20, Max: 20,
		Refused: "left out; the log has their number"}
	ClientLines = rate.Row{Name: "log lines about clients", Process: "schedctld, scheddbd", Key: "source", Burst: 20, PerSecond: 20. / 60, All: 5000, Max: 256,
		Refused: "left out; the log has their number"}

	OffenceLines = rate.Row{Name: "log lines about offences", Process: "worker", Key: "process", Burst: 50, PerSecond: 5,
		Refused: "left out", Shared: "counters and metrics count the rest", Metric: "schedrestd_offences_total"}
	EventLines = rate.Row{Name: "log lines about events such as refused connections", Process: "dispatcher", Key: "kind of event", Burst: 50, PerSecond: 5, Max: 8,
		Refused: "left out", Shared: "counters and metrics count the rest", Metric: "schedrestd_connections_refused_total"}
)

// LogLineSize is the number of bytes that a shorter log line counts as in LogBytes.
// A line about a request has about this size.
const LogLineSize = 200

// Rates lists all rows of rates, in the order of the page.
var Rates = []rate.Row{
	ParentArrivals, AssumedUIDs, RefusalAnswers, DaemonArrivals,
	UserRequests, AuditBytes, OutputBytes, Frames, OffenceReports, RejectedCredentials, JobBytes,
	WorkerDials, WorkerDialRetries, HostLookups, WorkerStages, WorkerOffences, WorkerCounts, LogBytes,
	Intents, IntentRetries, KeeperWork, TokenCreations, ResolverMisses, ResolverQuestions,
	ServiceReports, AuditLogChecks, Samples, ParentVouches, ParentRestarts,
	RequestLines, RefusalLines, ClientLines, OffenceLines, EventLines,
}
