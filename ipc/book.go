package ipc

import (
	"fmt"
	"reflect"
	"strconv"
)

// Row describes one kind of message: its sender and receiver, the phases in which
// it is permitted, its length, and the number of descriptors that come with it.
type Row struct {
	Kind     Kind
	Name     string
	From, To Role
	Phases   Phases // where it is permitted
	Min, Max int    // bytes of the fields, without the kind
	FDs      int    // exactly this many descriptors
	Then     Phase  // the phase that it leads to; Born: no change

	New func() Message // returns an empty one
}

// Of returns the row of the messages of type T.
func Of[T any, P interface {
	*T
	Message
}](kind Kind, from, to Role, phases Phases, least, most, fds int, then Phase) Row {
	return Row{kind, reflect.TypeFor[T]().Name(), from, to, phases, least, most, fds, then, func() Message { return P(new(T)) }}
}

// always is the phases in which a worker holds connections.
var always = In(Serving, Draining)

// The number of a retired kind is not used again. The comment above a row is its
// description in docs/MESSAGES.md. Package query has the rows of channels between
// workers and services.
var _ = Register(
	// the part of the configuration that the worker needs; it has no secrets
	Of[Setup](1, Parent, Worker, In(Born), 132, MaxMessage-1, 0, Told),
	// the process attributes that the kernel must report
	Of[Posture](2, Parent, Worker|Services, In(Told), 2, 8<<10, 0, Proving),
	// the process attributes are as expected, the sandbox is active and was tested, and the process can serve
	Of[Ready](3, Worker|Services, Parent, In(Proving), 4, 4, 0, Serving),
	// the process will not serve, and why
	Of[Refused](4, Worker|Services, Parent, In(Born, Told, Proving), 2, 2+maxReason, 0, Over),
	// an accepted connection, to serve or to refuse, with what the kernel reports about its peer
	Of[Connection](5, Parent, Worker, In(Serving), 31, 31+2*maxAddress, 1, Born),
	// standard input and output of an inetd run, as one connection
	Of[Streams](13, Parent, Worker|Dispatcher, In(Serving), 31, 31+2*maxAddress, 2, Born),
	// the worker has the connection; nothing of it was read before
	Of[Taken](10, Worker, Parent, always, 8, 8, 0, Born),
	// a connection of this worker is closed; its slot is free
	Of[Done](6, Worker, Parent, always, 8, 8, 0, Born),
	// the stage of a connection: waiting for a header, being answered, or idle
	Of[Progress](16, Worker, Parent, always, 9, 9, 0, Born),
	// another client waits for a slot: close this connection if it is idle
	Of[Yield](12, Parent, Worker, always, 8, 8, 0, Born),
	// asks whether the process still reads its channel
	Of[Ping](7, Parent, Worker|Services, always, 8, 8, 0, Born),
	// answers the Ping with this number
	Of[Pong](8, Worker|Services, Parent, always, 8, 8, 0, Born),
	// no more connections come; exit when the remaining ones have ended by themselves
	Of[Retire](11, Parent, Worker, In(Serving), 0, 0, 0, Draining),
	// finish the requests in progress, close idle connections, exit
	Of[Drain](9, Parent, Worker, always, 0, 0, 0, Draining),
	// the part of the configuration that a service needs; it has no secrets
	Of[ServiceSetup](32, Parent, Services, In(Born), 14, 14, 0, Told),
	// a TLS key, its certificates, the certificate authorities of clients and the key of HS256 tokens, as open files whose owner and mode were checked; an empty file stands for none
	Of[SecretKeys](59, Parent, Keeper, In(Proving, Serving), 4, 4, 4, Born),
	// whether the keys are in use, or which one can't be used and why; a worker gets connections after it
	Of[Kept](34, Keeper|Worker, Parent, In(Serving), 4, 4+maxReason, 0, Born),
	// the channel to the worker with this number
	Of[Client](33, Parent, Keeper|Resolver|Auditor, In(Serving), 16, 16, 1, Born),
	// how a worker violated the protocol on its channel to the service
	Of[Breach](50, Keeper|Resolver|Auditor, Parent, In(Serving), 6, 6+maxReason, 0, Born),
	// the worker's channel to a service
	Of[ServiceFD](35, Parent, Worker, In(Serving), 2, 2, 1, Born),
	// certificates, the certificate authorities of clients and the key set of RS256 tokens, as open files, and the keys of TLS session tickets; sent before the first connection
	Of[Keys](60, Parent, Worker, In(Serving), 6, 6+32*maxTickets, 3, Born),
	// asks for a connection to a configured daemon, by its index and never by an address
	Of[Dial](17, Worker, Parent, always, 10, 10, 0, Born),
	// a TCP socket that is being connected, or the inode of a UNIX socket, to which the worker connects under its own identity
	Of[Dialed](18, Parent, Worker, always, 16, 16, 1, Born),
	// the connection failed, with the kernel's error number
	Of[Undialed](41, Parent, Worker, always, 10, 10, 0, Born),
	// asks for Spares, because many connections to that daemon are needed; there may be no answer
	Of[Stock](51, Worker, Parent, always, 2, 2, 0, Born),
	// TCP sockets that are bound to one daemon and not yet connected: each connects on its first write
	Of[Spares](52, Parent, Worker, always, 2, 2, SpareCount, Born),
	// asks for the name of a user or a group, or for the number of a name
	Of[Who](42, Parent|Worker, Resolver, In(Born, Serving), 15, 15+maxName, 0, Born),
	// the name or the number, or that it does not exist, or that the user database is unavailable
	Of[Known](43, Resolver, Parent|Worker, In(Born, Serving), 15, 15+maxName, 0, Born),
	// the client of a connection got 401 for a credential that it had not tried before, or sent no valid request
	Of[Offence](44, Worker, Parent, always, 17, 17, 0, Born),
	// answer every request of that connection with 429 for this many seconds
	Of[Pause](45, Parent, Worker, always, 10, 10, 0, Born),
	// the audit log, open for appending; its owner, mode and directory were checked; it replaces the previous one
	Of[LogFD](53, Parent, Auditor, In(Proving, Serving), 4, 4, 1, Born),
	// the file of Idempotency-Keys, open for reading and writing; its owner, mode and directory were checked
	Of[ClaimsFD](61, Parent, Auditor, In(Proving, Serving), 1, 1, 1, Born),
	// a socket that listens for scrapes of the metrics; it is sent for each address
	Of[MetricsFD](62, Parent, Exporter, In(Proving, Serving), 0, 0, 1, Born),
	// a connection that a worker is about to get, with what the kernel reports about its peer
	Of[Facts](54, Parent, Auditor, In(Serving), 35, 35+2*maxAddress, 0, Born),
	// a connection that no worker holds any longer
	Of[Gone](55, Parent, Auditor, In(Serving), 8, 8, 0, Born),
	// how a worker ended; outcomes that it has not reported are unknown
	Of[Exited](56, Parent, Auditor, In(Serving), 6, 6+maxReason, 0, Born),
	// asks, before lines are written, whether the audit log still has its name
	Of[Follow](57, Auditor|Dispatcher, Parent, In(Serving), 0, 0, 0, Born),
	// the audit log can be written, or why not; a LogFD comes first when the file has changed
	Of[Followed](58, Parent, Auditor|Dispatcher, In(Serving), 2, 2+maxReason, 0, Born),
	// how the parent was started
	Of[ConfigSetup](64, Parent, Config, In(Born), 12, 12+maxPath, 0, Told),
	// an environment variable of the parent
	Of[Variable](65, Parent, Config, In(Told), 2, 2+maxVariable, 0, Born),
	// asks to open a configuration file, a list of uids or the worker's program, or whether a path exists
	Of[OpenFile](66, Config, Parent, In(Told), 3, 3+maxPath, 0, Born),
	// the requested file; its owner and mode were checked
	Of[OpenedFD](67, Parent, Config, In(Told), 0, 0, 1, Born),
	// asks whether root and these users alone can change the configuration files that were opened
	Of[Judge](68, Config, Parent, In(Told), 4, 4+8*maxOwners, 0, Born),
	// yes, or why not
	Of[Judgement](69, Parent, Config|Dispatcher, In(Told, Serving), 6, 6+2*maxCause, 0, Born),
	// why a reload has no Plan
	Of[NoPlan](70, Config, Parent, In(Told), 5, 5+2*maxCause, 0, Over),
	// what the parent needs from the command line, environment and configuration; no file is opened after it
	Of[Plan](71, Config, Parent, In(Told), 82, MaxMessage-1, 0, Planned),
	// an address to listen on
	Of[PlanListen](72, Config, Parent, In(Planned), 9, 9+maxListen+maxSocketPath+maxBound*(2+maxNetip), 0, Born),
	// ranges of subordinate uids, in ascending order
	Of[PlanSubuids](73, Config, Parent, In(Planned), 2, 2+12*SubuidsAtOnce, 0, Born),
	// the Setup of the workers, which ends the Plan
	Of[PlanSetup](74, Config, Parent, In(Planned), 132, MaxMessage-1, 0, Over),
	// how this run of the gateway serves
	Of[Dispatch](80, Parent, Dispatcher, In(Serving), 60, MaxMessage-1, 0, Born),
	// the channel on which accepted connections come
	Of[Arrivals](81, Parent, Dispatcher, In(Serving), 0, 0, 1, Born),
	// an accepted connection, with what the kernel reports about its peer
	Of[Arrival](82, Acceptor, Dispatcher, In(Born), 37, 37+2*maxAddress+maxRefusal, 1, Born),
	// a generation to build; its configuration follows
	Of[Build](83, Parent, Dispatcher, In(Serving), 7, 7, 0, Born),
	// ranges of subordinate uids of that generation, in ascending order
	Of[SubuidRanges](84, Parent, Dispatcher, In(Serving), 2, 2+12*SubuidsAtOnce, 0, Born),
	// the Setup of that generation's workers, which ends its configuration
	Of[GenerationSetup](85, Parent, Dispatcher, In(Serving), 132, MaxMessage-1, 0, Born),
	// whether the keeper of that generation accepts its keys
	Of[Verdict](86, Dispatcher, Parent, In(Serving), 4, 4+maxReason, 0, Born),
	// the keys that each worker of that generation gets, as in Keys
	Of[PublicKeys](87, Parent, Dispatcher, In(Serving), 6, 6+32*maxTickets, 3, Born),
	// whether that generation is in force
	Of[Outcome](88, Dispatcher, Parent, In(Serving), 14, 14+2*maxCause, 0, Born),
	// asks for a generation, because of age, wear or the loss of a service
	Of[Renew](89, Dispatcher, Parent, In(Serving), 4, 4, 0, Born),
	// no process of that generation runs any longer
	Of[Released](90, Dispatcher, Parent, In(Serving), 4, 4, 0, Born),
	// asks for a process of a configured program, under an identity that the parent knows
	Of[Start](91, Dispatcher, Parent, In(Serving), 26, 26, 0, Born),
	// a process, with the channel to it and its log
	Of[Started](92, Parent, Dispatcher, In(Serving), 17, 17, 2, Born),
	// why a process was not started
	Of[Unstarted](93, Parent, Dispatcher, In(Serving), 9, 9+2*maxCause, 0, Born),
	// asks to kill a process, or to have it log its counters
	Of[Signal](94, Dispatcher, Parent, In(Serving), 5, 5, 0, Born),
	// a process has exited
	Of[Ended](95, Parent, Dispatcher, In(Serving), 8, 8, 0, Born),
	// a connection is closed
	Of[Left](97, Dispatcher, Parent, In(Serving), 8, 8, 0, Born),
	// let the requests in progress end, and exit
	Of[Finish](98, Parent, Dispatcher, In(Serving), 0, 0, 0, Born),
	// have all processes log their counters
	Of[Show](96, Parent, Dispatcher, In(Serving), 0, 0, 0, Born),
	// how an inetd run ended
	Of[Served](100, Dispatcher, Parent, In(Serving), 6, 6+2*maxCause, 0, Born),
)

// The protocol table has the messages that this program can send or receive.
var (
	byKind [256]*Row
	byType = map[reflect.Type]Kind{}
)

// Register adds rows to the protocol table during initialization. It panics when
// a kind is zero or used twice.
func Register(rows ...Row) []Row {
	for i, r := range rows {
		if r.Kind == 0 || byKind[r.Kind] != nil {
			panic(fmt.Sprintf("kind %d is zero or used twice", r.Kind))
		}
		byKind[r.Kind] = &rows[i]
		byType[reflect.TypeOf(r.New())] = r.Kind
	}
	return rows
}

// KindOf returns the kind of m, or 0 when no row has its type.
func KindOf(m Message) Kind { return byType[reflect.TypeOf(m)] }

// size returns the row's number of bytes, or their range, as text.
func (r *Row) size() string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d–%d", r.Min, r.Max)
}

// permit checks one frame against the protocol table: kind, direction, phase, size
// of the fields and number of descriptors. Both ends call it for every frame that
// they send or receive, and no other code decides.
func permit(kind Kind, from, to Role, phase Phase, size, fds int) (*Row, error) {
	r := byKind[kind]
	switch {
	case r == nil:
		return nil, violation(from, kind, "is not in the protocol table")
	case !r.From.Has(from) || !r.To.Has(to):
		return nil, violation(from, kind, "may not be sent by a %s to a %s", from, to)
	case !r.Phases.Has(phase):
		return nil, violation(from, kind, "is not permitted while %s", phase)
	case size < r.Min || size > r.Max:
		return nil, violation(from, kind, "has %d bytes, not %s", size, r.size())
	case fds != r.FDs:
		return nil, violation(from, kind, "came with %d descriptors, not %d", fds, r.FDs)
	}
	return r, nil
}
