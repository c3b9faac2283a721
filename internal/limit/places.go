package limit

import (
	"math"
	"time"

	"schedrestd/internal/semaphore"
)

// Places of the dispatcher.
var (
	// A source gets a free slot if it has the fewest of those that wait
	// (gateway/dispatcher/admission).
	Slots = semaphore.Row{Name: "connections that are served", Process: "dispatcher", Key: "source", Setting: "--max-connections",
		Lends: true, Wait: 10 * time.Second, Refused: "503", Metric: "schedrestd_slots_used"}

	// The newest connection of the source with the most is refused.
	Waiting = semaphore.Row{Name: "connections that wait for a slot", Process: "dispatcher", Key: "source", Setting: "LimitNOFILE=",
		Displaces: true, Refused: "503 for the source with the most", Metric: "schedrestd_slots_waiting"}

	Watching = semaphore.Row{Name: "connections without a slot", Process: "dispatcher", Key: "source", Setting: "LimitNOFILE=", Parts: 2,
		Refused: "keeps its slot", Metric: "schedrestd_watch_connections"}

	// Without the limit on each user, a user who is in many groups could have a
	// worker for each group.
	Identities = semaphore.Row{Name: "workers of users (become_user)", Process: "dispatcher", Key: "user", Setting: "--max-identities", Parts: 4,
		Wait: 10 * time.Second, Refused: "503", Metric: "schedrestd_workers"}

	// A process can't exit while a file system hangs, even if its user has left. The
	// parent lets the dispatcher have a hundred processes more than it needs for
	// workers and services (privsep.Config).
	OutputProcesses = semaphore.Row{Name: "processes that read output", Process: "dispatcher", Key: "user", Total: 256, Share: 16, Refused: "503"}
	// One takes about 6 MB, and a minute without a message ends it.
	CredentialProcesses = semaphore.Row{Name: "processes that get credentials", Process: "dispatcher", Key: "user", Total: 256, Share: 4, Refused: "503"}
)

// Places of each worker for requests.
var (
	// A request whose user is not known yet waits like a user of its own.
	Requests = semaphore.Row{Name: "requests in progress", Process: "worker", Key: "user", Setting: "--max-connections", Parts: 2, Lends: true,
		Refused: "503; 429 for a user with half", Metric: "schedrestd_http_requests_in_flight", Counts: &semaphore.Counts{Label: "requests"}}

	// A user with few takes the place of a request of the user with the most,
	// which must then answer. Otherwise, two users could keep all others from
	// waiting.
	Parked = semaphore.Row{Name: "requests that wait for changes or for an accounting daemon", Process: "worker", Key: "user", Setting: "LimitNOFILE=", Parts: 2,
		Displaces: true, Lead: 2, Refused: "429; 503 for calls to the accounting daemon", Metric: "schedrestd_watch_requests"}

	// Each takes memory and its turn, and the controller sends the list again
	// and again. A list of one job or one user's jobs takes one place, any other
	// list WholeList places. There is no limit on all users together, because the
	// requests that wait have one.
	Feeds = semaphore.Row{Name: "lists that are read to find changes, in eighths", Process: "worker", Key: "user", Total: math.MaxInt, Share: 32 * WholeList,
		Refused: "429", Metric: "schedrestd_watch_readers"}

	// A refused connection stays open for a moment after the answer
	// (gateway/worker/refuse.go).
	RefusedConns = semaphore.Row{Name: "refused connections that are answered", Process: "worker", Key: "process", Total: 64,
		Refused: "closed without an answer", Shared: "other refused connections are closed without an answer"}

	// Passes bounds the processors that reading these lists takes, and the
	// requests for long lists that others have to wait for, however many users
	// wait for changes. When a pass ends, the user with the fewest comes next.
	// Since one user never has all of them, another one does not wait for the
	// end of a long pass.
	Passes = semaphore.Row{Name: "lists that are being read to find changes", Process: "worker", Key: "user", Total: 3, Share: 2,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "passes"}}

	Parsing = semaphore.Row{Name: "large bodies that are being parsed", Process: "worker", Key: "user", Setting: "GOMAXPROCS", Parts: 2, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "parsing"}}
)

// WholeList is the number of places in Feeds of a list that is not short.
const WholeList = 8

// Places of each worker for memory, in bytes.
var (
	// A user with only one answer may exceed the share. The rules of package
	// rpc/client leave an eighth to short answers.
	AnswerMemory = semaphore.Row{Name: "bytes of answers and large bodies", Process: "worker", Key: "user", Setting: "SCHEDRESTD_ANSWER_MEMORY", Parts: 2, Lends: true,
		Refused: "read as slowly as the client reads; 503 for bodies"}

	// Answers that are kept take memory only until other answers need it.
	KeptAnswers = semaphore.Row{Name: "bytes of answers that are kept for later requests, before compression", Process: "worker", Key: "user", Setting: "SCHEDRESTD_ANSWER_MEMORY",
		Displaces: true, Refused: "is not kept"}

	Renderings = semaphore.Row{Name: "bytes of rendered lists that requests share", Process: "worker", Key: "user", Setting: "SCHEDRESTD_ANSWER_MEMORY",
		Displaces: true, Refused: "has no ETag"}
)

// Places of each worker for requests to daemons. No row limits all connections to a
// controller: those for short answers are limited by Bursts for their first 5 ms,
// and by Requests, of which each needs one at a time.
var (
	// A controller writes one answer after another, and needs a tenth of a second
	// for each long one. A submission that arrives after a hundred such requests
	// of different users takes 0.36 s. Without the limit, it takes 9.9 s.
	LongRequests = semaphore.Row{Name: "requests to the controller for long lists", Process: "worker", Key: "user", Total: 4,
		Wait: semaphore.Forever, Refused: "503 after half a call's time", Counts: &semaphore.Counts{Label: "long_requests"}}

	// This also includes the answers that stay on their connections because
	// memory is short. Each of them keeps a thread of the controller busy for as
	// long as its client reads.
	LongConns = semaphore.Row{Name: "connections to the controller with long lists", Process: "worker", Key: "user", Total: 12, Share: 6,
		Wait: semaphore.Forever, Refused: "503 after half a call's time", Counts: &semaphore.Counts{Label: "long_connections"}}

	// A controller that has more requests than threads serves them in no
	// particular order. If it runs on the same machine, its threads also keep the
	// worker waiting for a processor. Without the limit, the slowest 1% of the
	// pings of 16 clients took twice as long. A request counts only until it is 5 ms old, so a slow
	// controller gets more requests at a time.
	Bursts = semaphore.Row{Name: "new requests to a controller", Process: "worker", Key: "user", Total: 4,
		Hold: 5 * time.Millisecond, Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "bursts"}}

	// The controller holds its locks on jobs and nodes for as long as an estimate
	// takes, which may be seconds in a large cluster.
	Estimates = semaphore.Row{Name: "estimates of a job's start", Process: "worker", Key: "user", Total: 2,
		Wait: semaphore.Forever, Refused: "503 after half a call's time", Counts: &semaphore.Counts{Label: "estimates"}}

	Probes = semaphore.Row{Name: "probes of a daemon's version", Process: "worker", Key: "user", Total: 1,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "probes"}}

	// Such a call may last for Config.LongTimeout, and slurmdbd up to 24.11
	// serves at most a hundred connections at the same time, including idle ones
	// and those of slurmctld. Without the limits, one user with two hundred slow
	// queries would take all of them. The total includes IdleSessions.
	AccountingCalls = semaphore.Row{Name: "calls to accounting daemons", Process: "worker", Key: "user", Total: 32, Share: 8,
		Wait: semaphore.Forever, Refused: "503 after half a long call's time", Counts: &semaphore.Counts{Label: "accounting_calls"}}

	IdleSessions = semaphore.Row{Name: "idle sessions with accounting daemons", Process: "worker", Key: "token", Total: 16, Share: 4,
		Displaces: true, Refused: "closes the token's oldest; if all are taken, the oldest of the user with the most"}

	// Without this limit, a client that sends many new tokens could make a worker
	// open an unlimited number of connections to a daemon. Sources take turns,
	// because the users are not known yet: a client that sends forged tokens must
	// not delay other clients' tokens.
	TokenQuestions = semaphore.Row{Name: "tokens that a daemon is asked about", Process: "worker", Key: "source", Total: 64, Share: 32, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "token_questions"}}
)

// Places of each worker for questions to the gateway's other processes.
var (
	// The channel has space for as many messages, so that sending one waits only
	// if the dispatcher does not read.
	DispatcherQuestions = semaphore.Row{Name: "requests to the dispatcher for connections to daemons", Process: "worker", Key: "user", Total: 48, Share: 24, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Metric: "schedrestd_daemon_connections_total", Counts: &semaphore.Counts{Label: "dispatcher_questions"}}

	// The channel has space for far more questions of each kind. The kinds are
	// separate, so that signatures do not delay tokens.
	Signatures = semaphore.Row{Name: "TLS handshakes that the keeper signs", Process: "worker", Key: "source", Total: 64, Share: 32, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "signatures"}}
	KeeperTokens = semaphore.Row{Name: "tokens that the keeper verifies", Process: "worker", Key: "source", Total: 64, Share: 32, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "keeper_tokens"}}
	// The keeper may have to wait for a directory service, for which other tokens
	// must not wait.
	PortalTokens = semaphore.Row{Name: "tokens of portals for which the keeper asks the resolver", Process: "worker", Key: "source", Total: 32, Share: 16, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "portal_tokens"}}

	// munged answers at once, but a process of the user may have to start first.
	Stamps = semaphore.Row{Name: "messages for which the keeper gets credentials", Process: "worker", Key: "user", Total: 32, Share: 8, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "stamps"}}

	// A script may have several megabytes, and is in memory until it is sent.
	Scripts = semaphore.Row{Name: "batch scripts that are being sent", Process: "worker", Key: "user", Total: 16, Share: 4,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "scripts"}}

	// A part is read in no time, unless a file system hangs.
	OutputParts = semaphore.Row{Name: "parts of output files that are being read", Process: "worker", Key: "user", Total: 64, Share: 8,
		Wait: semaphore.Forever, Refused: "503 after 10s", Counts: &semaphore.Counts{Label: "output"}}

	// The resolver does not run more look-ups for a worker, and there they would
	// be served in the order of their arrival.
	Lookups = semaphore.Row{Name: "look-ups of users and groups", Process: "worker", Key: "user or source", Total: 2, Share: 1, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "lookups"}}

	// Only this many wait in Lookups for one user of a token, or one client behind
	// a trusted proxy.
	AccountSearches = semaphore.Row{Name: "look-ups of users of tokens that wait", Process: "worker", Key: "user or source", Total: math.MaxInt, Share: 32, Refused: "429"}

	// So clients can't use up the look-ups that other answers need.
	NameLookups = semaphore.Row{Name: "look-ups of names that clients sent", Process: "worker", Key: "user", Total: 1, Share: 1, Lends: true,
		Wait: semaphore.Forever, Refused: "waits", Counts: &semaphore.Counts{Label: "name_lookups"}}
)

// Places of the services.
var (
	// A captured worker must not delay the questions of others.
	// A worker that has some may have as many as are free, so that several
	// compromised ones, which complete no change, leave some to the others
	// (gateway/auditor/log.go).
	OpenChanges = semaphore.Row{Name: "changes whose outcome is not written yet", Process: "auditor", Key: "worker", Total: 8192, Share: 4096, Refused: "try again"}

	// The same holds for users and workers here (gateway/auditor/claims).
	IdempotencyKeys = semaphore.Row{Name: "Idempotency-Keys that are kept", Process: "auditor", Key: "user", Total: 65536, Share: 65536 / 8, Refused: "503"}

	// An honest worker has fewer of KeeperPending, and of ResolverPending.
	KeeperPending = semaphore.Row{Name: "tokens that wait for the resolver, and messages for credentials", Process: "keeper", Key: "worker", Total: math.MaxInt, Share: 64,
		Refused: "refuses the token"}
	// A user can stop the process that gets the user's credentials.
	KeeperStamps = semaphore.Row{Name: "messages that wait for credentials", Process: "keeper", Key: "user", Total: math.MaxInt, Share: 16,
		Refused: "503"}
	RegisterChanges = semaphore.Row{Name: "changes and lists of gateway tokens by clients", Process: "keeper", Key: "worker", Total: math.MaxInt, Share: 32,
		Refused: "429"}

	// A user who creates tokens must not fill the register (gateway/keeper/manage.go).
	GatewayTokens = semaphore.Row{Name: "gateway tokens in the register that have not ended, or were created within a day", Process: "keeper", Key: "user", Total: math.MaxInt, Share: 500,
		Refused: "429"}
	// 2000 lines are an eighth of the register at most.
	RegisterTokens = semaphore.Row{Name: "gateway tokens in the register, until the administrator removes them", Process: "keeper", Key: "user", Total: math.MaxInt, Share: 2000,
		Refused: "503"}
	RegisterRevocations = semaphore.Row{Name: "revocations of all tokens of a user in the register, until the administrator removes them", Process: "keeper", Key: "user", Total: math.MaxInt, Share: 2000,
		Refused: "503"}
	KeeperQuestions = semaphore.Row{Name: "questions of the keeper to the resolver", Process: "keeper", Key: "worker", Total: 16, Share: 8,
		Wait: semaphore.Forever, Refused: "refuses the token after 8 s"}

	ResolverPending = semaphore.Row{Name: "questions without an answer", Process: "resolver", Key: "worker or keeper", Total: math.MaxInt, Share: 64,
		Refused: "killed; the keeper gets no answer"}
	// Each look-up may start a process.
	ResolverLookups = semaphore.Row{Name: "look-ups for workers", Process: "resolver", Key: "worker", Total: 4, Share: 2,
		Wait: semaphore.Forever, Refused: "waits"}
	// These are separate, so that they never wait for those of workers.
	ResolverDispatcherLookups = semaphore.Row{Name: "look-ups for the dispatcher", Process: "resolver", Key: "dispatcher", Total: 4,
		Wait: semaphore.Forever, Refused: "waits"}

	// The addresses of clients on this machine are one source.
	MetricsConns = semaphore.Row{Name: "connections to the metrics listener", Process: "exporter", Key: "source", Total: 32, Share: 16,
		Displaces: true, Refused: "closes an idle connection"}
	Scrapes = semaphore.Row{Name: "scrapes", Process: "exporter", Key: "source", Total: 4, Share: 2, Wait: 5 * time.Second, Refused: "503"}
)

// Places of the bundled daemons.
var (
	// The numbers are for each listener. The gateway may send the requests of many
	// clients as one user. To make room, the server closes a silent connection of
	// the user or machine with the most (rpc/server/pool.go).
	DaemonConns = semaphore.Row{Name: "connections", Process: "schedctld, scheddbd", Key: "user", Total: 512, Share: 128,
		Displaces: true, Refused: "closed"}

	// Each long answer takes memory. The share is smaller on a machine with few
	// processors, so that one user's queries don't occupy all of them.
	DaemonQueries = semaphore.Row{Name: "long answers that are computed", Process: "schedctld, scheddbd", Key: "user", Total: 8, Share: 4,
		Wait: 30 * time.Second, Refused: "an error"}

	// So only one encoding of a large job is in memory.
	LargeJobs = semaphore.Row{Name: "large jobs that are encoded and written", Process: "schedctld", Key: "user", Total: 1,
		Wait: semaphore.Forever, Refused: "waits"}

	Transactions = semaphore.Row{Name: "requests that begin the next transaction", Process: "scheddbd", Key: "user", Total: 1,
		Wait: semaphore.Forever, Refused: "waits"}

	// The limit for one user is large enough for the longest submission.
	ControllerRequestBytes = semaphore.Row{Name: "bytes of large requests", Process: "schedctld", Key: "user", Total: 64 << 20, Share: 16 << 20, Refused: "an error"}
	DaemonRequestBytes     = semaphore.Row{Name: "bytes of large requests", Process: "scheddbd", Key: "user", Total: 128 << 20, Share: 32 << 20, Refused: "an error"}
	DaemonSpoolBytes       = semaphore.Row{Name: "bytes on disk of unread long answers", Process: "schedctld, scheddbd", Key: "user", Total: 2 << 30, Share: 512 << 20, Refused: "an error"}

	// A tenth is for the administrators alone.
	Jobs       = semaphore.Row{Name: "jobs that wait, run or are shown", Process: "schedctld", Key: "user", Total: 10_000, Share: 2500, Parts: 4, Refused: "an error"}
	JobSpace   = semaphore.Row{Name: "bytes of scripts, environments and records of jobs on disk", Process: "schedctld", Key: "user", Total: 1 << 30, Share: 256 << 20, Refused: "an error"}
	JobRecords = semaphore.Row{Name: "bytes of records of jobs in memory", Process: "schedctld", Key: "user", Total: 64 << 20, Share: 16 << 20, Refused: "an error"}

	// If there are more, the oldest of the user with the most are dropped.
	UnsentRecords  = semaphore.Row{Name: "bytes of job records that scheddbd does not have yet", Process: "schedctld", Key: "user", Total: 512 << 20, Displaces: true, Refused: "dropped"}
	RefusedRecords = semaphore.Row{Name: "bytes of job records that scheddbd refuses", Process: "schedctld", Key: "user", Total: 16 << 20, Displaces: true, Refused: "dropped"}
)

// Places lists all rows of places, in the order of the page.
var Places = []semaphore.Row{
	Slots, Waiting, Watching, Identities, OutputProcesses, CredentialProcesses,
	Requests, RefusedConns, Parked, Feeds, Passes, Parsing,
	AnswerMemory, KeptAnswers, Renderings,
	LongRequests, LongConns, Bursts, Estimates, Probes, AccountingCalls, IdleSessions, TokenQuestions,
	DispatcherQuestions, Signatures, KeeperTokens, PortalTokens, Stamps, OutputParts, Scripts, Lookups, AccountSearches, NameLookups,
	OpenChanges, IdempotencyKeys, KeeperPending, KeeperStamps, KeeperQuestions, RegisterChanges, GatewayTokens, RegisterTokens, RegisterRevocations, ResolverPending, ResolverLookups, ResolverDispatcherLookups, MetricsConns, Scrapes,
	DaemonConns, DaemonQueries, LargeJobs, Transactions, ControllerRequestBytes, DaemonRequestBytes, DaemonSpoolBytes,
	Jobs, JobSpace, JobRecords, UnsentRecords, RefusedRecords,
}
