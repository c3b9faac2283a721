package ipc

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Row describes one kind of message: which process sends it to which, in which
// phases, its length, and the number of descriptors that come with it.
type Row struct {
	Kind     Kind
	Name     string
	Routes   []Route
	Min, Max int   // bytes of the fields, without the kind byte
	FDs      int   // exact number of descriptors
	Then     Phase // the phase after it; Initial: no change

	New func() Message // returns an empty message
}

// Route permits a message from any role in From to any role in To.
type Route struct {
	From, To Role
	Phases   Phases // phases in which it is permitted
}

// Of returns the row of the messages of type T, with one route.
func Of[T any, P interface {
	*T
	Message
}](kind Kind, from, to Role, phases Phases, minSize, maxSize, fds int, then Phase) Row {
	name := reflect.TypeFor[T]().Name()
	return Row{kind, name, []Route{{from, to, phases}}, minSize, maxSize, fds, then, func() Message { return P(new(T)) }}
}

// Or returns the row with another route.
func (r Row) Or(from, to Role, phases Phases) Row {
	r.Routes = append(r.Routes, Route{from, to, phases})
	return r
}

// started are the phases in which the dispatcher and a process exchange
// messages.
var started = In(Handover, Serving, Draining)

// The rows of the protocol table for messages whose types the parent uses. The
// comment above a row becomes its description in docs/generated/MESSAGES.md. The
// number of a removed message is not reused.
//
// Packages query and work contain the other rows: query for the channels
// between workers and services and for the metrics, and work for the other
// messages that the dispatcher exchanges with workers and services.
var _ = Register(
	// the part of the configuration that the worker needs; it contains no
	// secrets
	Of[Setup](1, Parent, Worker, In(Initial), 40, MaxMessage-1, 0, Configured),
	// the attributes that the kernel must report about the process
	Of[Attributes](2, Parent, Worker|Services|Dispatcher, In(Configured), 33, 33+4*maxGroups+2*maxLink+maxNamespaces*(5+2*maxLink), 0, Proving),
	// the process attributes are as expected, the sandbox is active and was tested, and the process can serve
	Of[Ready](3, Worker|Services, Dispatcher, In(Proving), 4, 4, 0, Handover).
		Or(Dispatcher, Parent, In(Proving)),
	// the process will not serve, and why
	Of[Refused](4, Worker|Services, Dispatcher, In(Initial, Configured, Proving), 2, 2+MaxReason, 0, Closed).
		Or(Dispatcher, Parent, In(Initial, Configured, Proving)),
	// the result of a test of the sandbox, or whether the init process of a PID namespace is confined
	Of[Proven](104, Worker, Parent, In(Initial), 10, 10+2*maxCause, 0, Closed),
	// an accepted connection, to serve or to refuse, with what the kernel reports about its peer
	Of[Connection](5, Dispatcher, Worker, In(Handover, Serving), 31, 31+2*MaxAddress, 1, Initial),
	// standard input and standard output of an inetd run, which form one connection
	Of[StdioConnection](13, Parent, Dispatcher, In(Serving), 31, 31+2*MaxAddress, 2, Initial).
		Or(Dispatcher, Worker, In(Handover, Serving)),
	// asks whether the process still reads its channel
	Of[Ping](7, Parent, Dispatcher, In(Serving), 8, 8, 0, Initial).
		Or(Dispatcher, Worker|Services, started),
	// answers the Ping with this number
	Of[Pong](8, Dispatcher, Parent, In(Serving), 8, 8, 0, Initial).
		Or(Worker|Services, Dispatcher, started),
	// the part of the configuration that a service needs; it contains no
	// secrets
	Of[ServiceSetup](32, Parent, Services|Dispatcher, In(Initial), 16, 16+maxLog, 0, Configured),
	// a TLS key, its certificates, the certificate authorities of clients, the key of HS256 tokens, the key set of RS256 tokens, the register of gateway tokens, open for appending, and the key of credentials, as open files whose owner and mode were checked; a file is empty if there is no such key, certificate or register
	Of[SecretKeys](59, Parent, Keeper, In(Proving, Handover), 8, 8+maxPath, 7, Initial),
	// whether the keys are in use; if not, which key can't be used, and why; a
	// worker gets connections only after it has sent KeysResult
	Of[KeysResult](34, Keeper|Worker, Dispatcher, In(Handover, Serving), 4, 4+MaxReason, 0, Initial),
	// channels to the parent, on which the keeper can vouch for users, and to the resolver
	Of[KeeperChannels](115, Parent, Keeper, In(Proving, Handover), 0, 0, 2, Initial),
	// the channel to the keeper, which asks who is a member of a group, or for the credentials of messages;
	// or the keeper's end of the latter
	Of[KeeperChannel](108, Parent, Resolver|Credential, In(Proving, Handover, Serving), 8, 8, 1, Initial).
		Or(Acceptor, Keeper, In(Initial)),
	// the keeper has verified a token of the user with these ids, for whom the number stands
	Of[Vouch](116, Keeper, Acceptor, In(Initial), 18, 18+4*maxGroups, 0, Initial),
	// the same number, or 0 if no process may run as this user
	Of[Vouched](117, Acceptor, Keeper, In(Initial), 8, 8, 0, Initial),
	// the audit log, open for appending; its owner, mode and directory were checked; it replaces the previous one
	Of[LogFD](53, Parent, Auditor, In(Proving, Handover, Serving), 5, 5+maxPath, 1, Initial),
	// the file of Idempotency-Keys, open for reading and writing; its owner, mode and directory were checked
	Of[ClaimsFD](61, Parent, Auditor, In(Proving, Handover), 3, 3+maxPath, 1, Initial),
	// a socket that listens for scrapes of the metrics; there is one message for each address
	Of[MetricsFD](62, Parent, Exporter, In(Proving, Handover), 0, 0, 1, Initial),
	// asks whether the path of the audit log still leads to the open file; sent
	// before lines are written
	Of[CheckLogFile](57, Auditor, Dispatcher, In(Handover, Serving), 0, 0, 0, Initial).
		Or(Dispatcher, Parent, In(Serving)),
	// whether the audit log can be written, and if not, why; if the path now
	// leads to another file, LogFD is sent first
	Of[LogFileResult](58, Parent, Dispatcher, In(Serving), 2, 2+MaxReason, 0, Initial).
		Or(Dispatcher, Auditor, In(Handover, Serving)),
	// how the parent was started
	Of[ConfigSetup](64, Parent, Config, In(Initial), 18, 18+maxPath, 0, Configured),
	// an environment variable of the parent
	Of[Variable](65, Parent, Config, In(Configured), 2, 2+maxVariable, 0, Initial),
	// asks the parent to open a configuration file, a list of uids or the worker's program, or to report whether a path exists
	Of[OpenFile](66, Config, Parent, In(Configured), 3, 3+maxPath, 0, Initial),
	// the requested file; its owner and mode were checked
	Of[OpenedFD](67, Parent, Config, In(Configured), 0, 0, 1, Initial),
	// asks whether only root and the listed users and groups can change the
	// configuration files that the parent has opened
	Of[CheckOwners](68, Config, Parent, In(Configured), 4, 4+8*maxOwners, 0, Initial),
	// the answer to CheckOwners, OpenFile or SecretKeysResult: yes, or why not
	Of[CheckResult](69, Parent, Config, In(Configured), 6, 6+2*maxCause, 0, Initial).
		Or(Parent, Dispatcher, In(Serving)),
	// why a reload has no Plan
	Of[PlanFailed](70, Config, Parent, In(Configured), 5, 5+2*maxCause, 0, Closed),
	// what the parent needs from the command line, environment and
	// configuration; after a Plan, no more files can be requested
	Of[Plan](71, Config, Parent, In(Configured), 113, MaxMessage-1, 0, Planned),
	// an address to listen on
	Of[PlanListen](72, Config, Parent, In(Planned), 9, 9+maxListen+maxSocketPath+maxBound*(2+maxNetip), 0, Initial),
	// ranges of subordinate uids, in ascending order
	Of[PlanSubuids](73, Config, Parent, In(Planned), 2, 2+12*SubuidBatchSize, 0, Initial),
	// the Setup of the workers, which ends the Plan
	Of[PlanSetup](74, Config, Parent, In(Planned), 40, MaxMessage-1, 0, Closed),
	// how this run of the gateway serves
	Of[DispatcherSetup](80, Parent, Dispatcher, In(Handover), 68, MaxMessage-1, 0, Serving),
	// a listener, for the log
	Of[Listening](105, Parent, Dispatcher, In(Serving), 5, 5+MaxAddress, 0, Initial),
	// the channel on which accepted connections arrive, and a netlink socket that reports the owners of sockets
	Of[ArrivalChannel](81, Parent, Dispatcher, In(Serving), 0, 0, 2, Initial),
	// an accepted connection, with what the kernel reports about its peer
	Of[Arrival](82, Acceptor, Dispatcher, In(Initial), 34, 34+2*MaxAddress+maxRefusal, 1, Initial),
	// asks whether the dispatcher still reads the channel for connections; it
	// answers with Pong
	Of[ArrivalPing](106, Acceptor, Dispatcher, In(Initial), 8, 8, 0, Initial),
	// a new generation of workers and services to start; its configuration follows
	Of[BuildGeneration](83, Parent, Dispatcher, In(Serving), 7, 7, 0, Initial),
	// ranges of subordinate uids, in ascending order, for the generation that
	// BuildGeneration announced
	Of[SubuidRanges](84, Parent, Dispatcher, In(Serving), 2, 2+12*SubuidBatchSize, 0, Initial),
	// the workers' Setup for the generation that BuildGeneration announced; the
	// last part of this generation's configuration
	Of[GenerationSetup](85, Parent, Dispatcher, In(Serving), 40, MaxMessage-1, 0, Initial),
	// whether the keeper of the generation that BuildGeneration announced
	// accepts the secret keys
	Of[SecretKeysResult](86, Dispatcher, Parent, In(Serving), 4, 4+MaxReason, 0, Initial),
	// files with public keys for the workers of the generation that
	// BuildGeneration announced; Keys passes them to each worker
	Of[PublicKeys](87, Parent, Dispatcher, In(Serving), 4, 4, 3, Initial),
	// whether the generation that BuildGeneration announced is now in use
	Of[GenerationResult](88, Dispatcher, Parent, In(Serving), 10, 10+2*maxCause, 0, Initial),
	// asks for a new generation of workers and services, because the current one is too old, has served enough connections, or has lost a service
	Of[RenewGeneration](89, Dispatcher, Parent, In(Serving), 4, 4, 0, Initial),
	// all workers and services of a generation have exited
	Of[GenerationReleased](90, Dispatcher, Parent, In(Serving), 4, 4, 0, Initial),
	// asks the parent to start the program of a role, under an identity that
	// the parent knows
	Of[StartProcess](91, Dispatcher, Parent, In(Serving), 26, 26, 0, Initial),
	// a new process: the channel to it, and its log
	Of[ProcessStarted](92, Parent, Dispatcher, In(Serving), 17, 17, 2, Initial),
	// why a process was not started
	Of[StartFailed](93, Parent, Dispatcher, In(Serving), 9, 9+2*maxCause, 0, Initial),
	// asks the parent to kill a process, or to send it the signal that makes it log its counters
	Of[SignalProcess](94, Dispatcher, Parent, In(Serving), 5, 5, 0, Initial),
	// a process has exited
	Of[ProcessExited](95, Parent, Dispatcher, In(Serving), 8, 8, 0, Initial),
	// finish the requests in progress and exit
	Of[Shutdown](98, Parent, Dispatcher, In(Serving), 0, 0, 0, Initial),
	// have all processes log their counters
	Of[LogCounters](96, Parent, Dispatcher, In(Serving), 0, 0, 0, Initial),
	// whether the last reload was rejected, for the metrics
	Of[ReloadResult](107, Parent, Dispatcher, In(Serving), 1, 1, 0, Initial),
	// how an inetd run ended
	Of[InetdResult](100, Dispatcher, Parent, In(Serving), 6, 6+2*maxCause, 0, Initial),
)

// The rows in this program, by kind and by type.
var (
	byKind [256]*Row
	byType = map[reflect.Type]Kind{}
)

// Register adds rows to the protocol table during initialization. It panics if
// the kind of a row is zero or already in the table.
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

// KindOf returns the kind of m, or 0 if the table has no row for the type of m.
func KindOf(m Message) Kind { return byType[reflect.TypeOf(m)] }

// size returns, as text, the permitted number of bytes in the row's messages:
// one number or a range.
func (r *Row) size() string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d–%d", r.Min, r.Max)
}

// permit checks a frame against the protocol table: kind, sender, receiver,
// phase, size of the fields and number of descriptors. It returns the phase
// after the frame. Both ends of a channel call permit for every frame that they
// send or receive. No other code decides which frames are permitted.
//
// The sender or the receiver is Managers if it can be the parent or the
// dispatcher. The phase then decides which messages are permitted, because the
// routes of the parent and those of the dispatcher have different phases.
func permit(kind Kind, from, to Role, phase Phase, size, fds int) (*Row, Phase, error) {
	r := byKind[kind]
	if r == nil {
		return nil, phase, violation(from, kind, "is not in the protocol table")
	}
	route, err := r.route(from, to, phase)
	switch {
	case err != nil:
		return nil, phase, err
	case size < r.Min || size > r.Max:
		return nil, phase, violation(from, kind, "has %d bytes, not %s", size, r.size())
	case fds != r.FDs:
		return nil, phase, violation(from, kind, "came with %d descriptors, not %d", fds, r.FDs)
	case r.Then != Initial:
		return r, r.Then, nil
	case phase == Handover && route.From == Dispatcher:
		return r, Serving, nil
	}
	return r, phase, nil
}

// route returns the route that permits the message in the phase.
func (r *Row) route(from, to Role, phase Phase) (Route, error) {
	joins := func(route Route) bool { return route.From.Has(from) && route.To.Has(to) }
	if i := slices.IndexFunc(r.Routes, func(route Route) bool { return joins(route) && route.Phases.Has(phase) }); i >= 0 {
		return r.Routes[i], nil
	}
	if slices.ContainsFunc(r.Routes, joins) {
		return Route{}, violation(from, r.Kind, "is not permitted while %s", phase)
	}
	return Route{}, violation(from, r.Kind, "may not be sent by the %s to the %s", from, to)
}
