// Package work defines messages between the dispatcher, serving workers and
// services. The parent is not involved and does not link this package.
package work

import "schedrestd/ipc"

// The phases in which a worker or a service works for the dispatcher, and those
// in which a worker may hold connections.
var (
	working    = ipc.In(ipc.Handover, ipc.Serving)
	connPhases = ipc.In(ipc.Handover, ipc.Serving, ipc.Draining)
)

// maxName is the maximum length of a name, such as a user's, in bytes.
const maxName = 255

// MaxText is the maximum length of a setting that is a text, in bytes.
const MaxText = maxName

// The rows of this package's messages in the protocol table. The comment above
// each row becomes the description of its message in docs/generated/MESSAGES.md.
var _ = ipc.Register(
	// three open files (the certificates of the listeners, the certificate
	// authorities of clients, and the key set for RS256 tokens), and the keys
	// for TLS session tickets; sent before the first connection
	ipc.Of[Keys](60, ipc.Dispatcher, ipc.Worker, working, 6, 6+32*maxTickets, 3, ipc.Initial),
	// the register of gateway tokens, as an open file whose owner and mode were
	// checked; it replaces the previous one
	ipc.Of[TokenRegister](28, ipc.Dispatcher, ipc.Keeper, working, 20, 20+maxName+maxPrivileged*(2+maxName), 1, ipc.Initial),
	// the register of gateway tokens can't be used: refuse all of them
	ipc.Of[NoTokenRegister](29, ipc.Dispatcher, ipc.Keeper, working, 0, 0, 0, ipc.Initial),
	// the register of gateway tokens is another file than the one that this keeper
	// can append to: another keeper is needed
	ipc.Of[RegisterMoved](142, ipc.Keeper, ipc.Dispatcher, working, 0, 0, 0, ipc.Initial),
	// the worker has received the connection and will read from it; no process
	// has read from it before
	ipc.Of[ConnectionTaken](10, ipc.Worker, ipc.Dispatcher, connPhases, 8, 8, 0, ipc.Initial),
	// a connection of this worker is closed, or about to be; its slot is free
	ipc.Of[ConnectionDone](6, ipc.Worker, ipc.Dispatcher, connPhases, 8, 8, 0, ipc.Initial),
	// the stage of a connection: waiting for the first header, answering a
	// request, idle, or watching, while all its requests wait for a change
	ipc.Of[Progress](16, ipc.Worker, ipc.Dispatcher, connPhases, 9, 9, 0, ipc.Initial),
	// another client is waiting for a slot: close this connection; if a
	// complete header has arrived, answer the request first
	ipc.Of[ReclaimConnection](12, ipc.Dispatcher, ipc.Worker, connPhases, 8, 8, 0, ipc.Initial),
	// no more connections follow; exit when the remaining connections have ended
	ipc.Of[Retire](11, ipc.Dispatcher, ipc.Worker, working, 0, 0, 0, ipc.Draining),
	// finish the requests in progress, close idle connections, exit
	ipc.Of[Drain](9, ipc.Dispatcher, ipc.Worker, connPhases, 0, 0, 0, ipc.Draining),
	// the channel to the worker with this number
	ipc.Of[WorkerChannel](33, ipc.Dispatcher, ipc.Keeper|ipc.Resolver|ipc.Auditor|ipc.Output, working, 16, 16, 1, ipc.Initial),
	// how a worker violated the protocol on its channel to the service
	ipc.Of[WorkerViolation](50, ipc.Keeper|ipc.Resolver|ipc.Auditor|ipc.Output, ipc.Dispatcher, working, 6, 6+ipc.MaxReason, 0, ipc.Initial),
	// the receiver's channel to a service
	ipc.Of[ServiceChannel](35, ipc.Dispatcher, ipc.Worker, connPhases, 10, 10, 1, ipc.Initial),
	// asks for a channel to a process that reads the output files of the worker's
	// user
	ipc.Of[AskOutput](113, ipc.Worker, ipc.Dispatcher, connPhases, 12, 12, 0, ipc.Initial),
	// why there is no such process
	ipc.Of[NoOutput](114, ipc.Dispatcher, ipc.Worker, connPhases, 10, 10+ipc.MaxReason, 0, ipc.Initial),
	// asks for a process that gets credentials of a user; the keeper answers when
	// there is one
	ipc.Of[AskCredential](136, ipc.Worker, ipc.Dispatcher, connPhases, 12, 12, 0, ipc.Initial),
	// why there is no such process, so that the keeper does not wait for it
	ipc.Of[NoCredential](145, ipc.Dispatcher, ipc.Keeper, working, 10, 10+ipc.MaxReason, 0, ipc.Initial),
	// where a process gets the credentials of its user
	ipc.Of[CredentialSetup](137, ipc.Dispatcher, ipc.Credential, working, 14, 14+2*maxPath+maxSockets*(2+maxPath), 0, ipc.Initial),
	// asks for a connection to a configured daemon, which is identified by an
	// index, never by an address; excludes the addresses of its host at which the
	// worker could not reach it
	ipc.Of[Dial](17, ipc.Worker, ipc.Dispatcher, connPhases, 12, 12+MaxAddresses*maxAddr, 0, ipc.Initial),
	// either a connected or connecting TCP socket, or the inode of a UNIX
	// socket; the worker connects to the inode under its own identity
	ipc.Of[Dialed](18, ipc.Dispatcher, ipc.Worker, connPhases, 18, 18+maxAddr, 1, ipc.Initial),
	// the connection failed, with the kernel's error number, or the daemon's host
	// has no known address
	ipc.Of[DialFailed](41, ipc.Dispatcher, ipc.Worker, connPhases, 13, 13+maxAddr, 0, ipc.Initial),
	// asks for several connections to one daemon; the answer is a DialedBatch
	// or a ConnectedBatch, or there is no answer
	ipc.Of[DialBatch](51, ipc.Worker, ipc.Dispatcher, connPhases, 3, 3, 0, ipc.Initial),
	// TCP sockets for one daemon, not connected yet: each socket connects on
	// its first write
	ipc.Of[DialedBatch](52, ipc.Dispatcher, ipc.Worker, connPhases, 5, 5+maxAddr, ipc.DialBatchSize, ipc.Initial),
	// TCP sockets that are connected to one daemon on this machine, with the
	// uid of the daemon's process
	ipc.Of[ConnectedBatch](63, ipc.Dispatcher, ipc.Worker, connPhases, 9, 9+maxAddr, ConnectedBatchSize, ipc.Initial),
	// asks for the name of the user or group with a given number, or for the
	// number of the user or group with a given name
	ipc.Of[Lookup](42, ipc.Worker, ipc.Resolver, ipc.In(ipc.Initial), 15, 15+maxName, 0, ipc.Initial).
		Or(ipc.Dispatcher, ipc.Resolver, working),
	// the answer: a name or a number, or a report that the user or group does
	// not exist or that the user database is unavailable
	ipc.Of[LookupResult](43, ipc.Resolver, ipc.Worker, ipc.In(ipc.Initial), 15, 15+maxName, 0, ipc.Initial).
		Or(ipc.Resolver, ipc.Dispatcher, working),
	// asks for the addresses of a host on which a daemon runs
	ipc.Of[HostLookup](120, ipc.Dispatcher, ipc.Resolver, working, 10, 10+maxName, 0, ipc.Initial),
	// the addresses; none if the name can't be resolved
	ipc.Of[HostAddresses](121, ipc.Resolver, ipc.Dispatcher, working, 10, 10+MaxAddresses*maxAddr, 0, ipc.Initial),
	// the client of a connection got 401 for a credential that had not been
	// rejected before, or sent malformed input
	ipc.Of[Offence](44, ipc.Worker, ipc.Dispatcher, connPhases, 17, 17, 0, ipc.Initial),
	// answer every request on a connection with 429 for this many seconds
	ipc.Of[Pause](45, ipc.Dispatcher, ipc.Worker, connPhases, 10, 10, 0, ipc.Initial),
	// a connection that a worker is about to get, with what the kernel reports about its peer
	ipc.Of[ConnectionFacts](54, ipc.Dispatcher, ipc.Auditor, working, 35, 35+2*ipc.MaxAddress, 0, ipc.Initial),
	// a connection that no worker holds any longer
	ipc.Of[ConnectionReleased](55, ipc.Dispatcher, ipc.Auditor, working, 8, 8, 0, ipc.Initial),
	// how a worker exited; the results of changes for which the worker has sent no Outcome are unknown
	ipc.Of[WorkerExited](56, ipc.Dispatcher, ipc.Auditor, working, 6, 6+ipc.MaxReason, 0, ipc.Initial),
)
