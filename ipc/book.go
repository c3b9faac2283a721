package ipc

import (
	"fmt"
	"reflect"
	"strconv"
)

// Row is one kind of message: who may say it to whom, when, how long it is and how
// many descriptors come with it.
type Row struct {
	Kind     Kind
	Name     string
	From, To Role
	Phases   Phases // where it is permitted
	Min, Max int    // bytes of the fields, without the kind
	FDs      int    // exactly this many descriptors
	Then     Phase  // the phase it leads to; Born: it changes none

	New func() Message // returns an empty one
}

// Of returns the row of the messages of type T.
func Of[T any, P interface {
	*T
	Message
}](kind Kind, from, to Role, phases Phases, least, most, fds int, then Phase) Row {
	return Row{kind, reflect.TypeFor[T]().Name(), from, to, phases, least, most, fds, then, func() Message { return P(new(T)) }}
}

// always is where a message about a held connection may come.
var always = In(Serving, Draining)

// A kind's number is kept when it goes out of use. The comment above a row is its
// meaning in docs/MESSAGES.md. Package query has the rows of channels that do not
// end in the parent.
var _ = Register(
	// what the worker needs of the configuration; no secret
	Of[Setup](1, Parent, Worker, In(Born), 130, MaxMessage-1, 0, Told),
	// what the kernel must say about the process
	Of[Posture](2, Parent, Worker|Services, In(Told), 2, 8<<10, 0, Proving),
	// the posture is as expected, the cage is closed and proven, and the process can serve
	Of[Ready](3, Worker|Services, Parent, In(Proving), 4, 4, 0, Serving),
	// the process will not serve, and why
	Of[Refused](4, Worker|Services, Parent, In(Born, Told, Proving), 2, 2+maxReason, 0, Over),
	// an accepted connection with what the kernel says about its peer, to serve or to refuse
	Of[Connection](5, Parent, Worker, In(Serving), 31, 31+2*maxAddress, 1, Born),
	// standard input and output of an inetd run, as one connection
	Of[Streams](13, Parent, Worker, In(Serving), 31, 31+2*maxAddress, 2, Born),
	// a connection that was handed over is in the worker's hands; nothing of it was read before
	Of[Taken](10, Worker, Parent, always, 8, 8, 0, Born),
	// a connection of this worker was closed; its slot is free
	Of[Done](6, Worker, Parent, always, 8, 8, 0, Born),
	// how far a connection has come: waiting for a header, being answered, resting
	Of[Progress](16, Worker, Parent, always, 9, 9, 0, Born),
	// somebody waits for a slot: end this connection, if nobody is wronged by it
	Of[Yield](12, Parent, Worker, always, 8, 8, 0, Born),
	// is the process still reading?
	Of[Ping](7, Parent, Worker|Services, always, 8, 8, 0, Born),
	// the answer to one Ping, with its number
	Of[Pong](8, Worker|Services, Parent, always, 8, 8, 0, Born),
	// no more connections come; exit when those that are held have ended by themselves
	Of[Retire](11, Parent, Worker, In(Serving), 0, 0, 0, Draining),
	// finish what is being answered, close what is idle, exit
	Of[Drain](9, Parent, Worker, always, 0, 0, 0, Draining),
	// what a service needs of the configuration; no secret
	Of[ServiceSetup](32, Parent, Services, In(Born), 14, 14, 0, Told),
	// a TLS key, its certificates, the clients' authorities and the key of HS256 tokens (owner and mode checked), as open files; an empty one is none
	Of[SecretKeys](59, Parent, Keeper, In(Serving), 4, 4, 4, Born),
	// whether the keys are in use, and else which is not, and why
	Of[Kept](34, Keeper, Parent, In(Serving), 4, 4+maxReason, 0, Born),
	// the channel to one worker, which has this number
	Of[Client](33, Parent, Services, In(Serving), 16, 16, 1, Born),
	// that worker broke this protocol on its channel to the service, and how
	Of[Breach](50, Services, Parent, In(Serving), 6, 6+maxReason, 0, Born),
	// the worker's channel to that service
	Of[ServiceFD](35, Parent, Worker, In(Serving), 1, 1, 1, Born),
	// certificates, the clients' authorities and the key set of RS256 tokens, as open files, and keys for TLS session tickets; before the first connection
	Of[Keys](60, Parent, Worker, In(Serving), 6, 6+32*maxTickets, 3, Born),
	// open the way to a configured daemon, by its index; never by an address
	Of[Dial](17, Worker, Parent, always, 10, 10, 0, Born),
	// a TCP socket that is being connected, or the inode of a UNIX socket, which the worker connects to as who it is
	Of[Dialed](18, Parent, Worker, always, 16, 16, 1, Born),
	// that way can't be opened, and the kernel's number for why
	Of[Undialed](41, Parent, Worker, always, 10, 10, 0, Born),
	// many connections to that daemon are needed: Spares, please; none may come
	Of[Stock](51, Worker, Parent, always, 2, 2, 0, Born),
	// TCP sockets that know their daemon and have not said a word to it: each connects with its first write, and to nobody else
	Of[Spares](52, Parent, Worker, always, 2, 2, SpareCount, Born),
	// the name of a user or a group, or the number of a name
	Of[Who](42, Parent|Worker, Resolver, In(Born, Serving), 15, 15+maxName, 0, Born),
	// the name or the number, or that there is none, or that the user database is unavailable
	Of[Known](43, Resolver, Parent|Worker, In(Born, Serving), 15, 15+maxName, 0, Born),
	// the client of a connection of this worker was answered 401 for a credential that is new to it, or sent no request
	Of[Offence](44, Worker, Parent, always, 17, 17, 0, Born),
	// the client of that connection has to wait for so many seconds, and is told so
	Of[Pause](45, Parent, Worker, always, 10, 10, 0, Born),
	// the audit log (owner, mode and directory checked), open for appending, in place of the one before
	Of[LogFD](53, Parent, Auditor, In(Serving), 4, 4, 1, Born),
	// a connection that a worker is given, with what the kernel says about its peer
	Of[Facts](54, Parent, Auditor, In(Serving), 35, 35+2*maxAddress, 0, Born),
	// a connection that no worker holds any longer
	Of[Gone](55, Parent, Auditor, In(Serving), 8, 8, 0, Born),
	// a worker has exited, and how: the outcomes that it owes are unknown
	Of[Exited](56, Parent, Auditor, In(Serving), 6, 6+maxReason, 0, Born),
	// does the audit log still have its name? asked before lines are written
	Of[Follow](57, Auditor, Parent, In(Serving), 0, 0, 0, Born),
	// the audit log can be written, or why not; a LogFD comes first when it is another file
	Of[Followed](58, Parent, Auditor, In(Serving), 2, 2+maxReason, 0, Born),
	// how the parent was started
	Of[ConfigSetup](64, Parent, Config, In(Born), 12, 12+maxPath, 0, Told),
	// an environment variable of the parent's
	Of[Variable](65, Parent, Config, In(Told), 2, 2+maxVariable, 0, Born),
	// open a configuration file, a list of uids or the worker's program, or report whether a path exists
	Of[OpenFile](66, Config, Parent, In(Told), 3, 3+maxPath, 0, Born),
	// the file that was asked for (owner and mode checked)
	Of[OpenedFD](67, Parent, Config, In(Told), 0, 0, 1, Born),
	// may nobody but root and these change the configuration files that were opened?
	Of[Judge](68, Config, Parent, In(Told), 4, 4+8*maxOwners, 0, Born),
	// the answer without a file: yes, or why not
	Of[Judgement](69, Parent, Config, In(Told), 6, 6+2*maxCause, 0, Born),
	// a reload has no Plan, and why
	Of[NoPlan](70, Config, Parent, In(Told), 5, 5+2*maxCause, 0, Over),
	// what the parent needs of command line, environment and configuration; no file is opened after it
	Of[Plan](71, Config, Parent, In(Told), 80, MaxMessage-1, 0, Planned),
	// an address to listen on
	Of[PlanListen](72, Config, Parent, In(Planned), 8, 8+maxListen+maxSocketPath+maxBound*(2+maxNetip), 0, Born),
	// ranges of subordinate uids, in ascending order
	Of[PlanSubuids](73, Config, Parent, In(Planned), 2, 2+12*SubuidsAtOnce, 0, Born),
	// the workers' Setup, which ends the Plan
	Of[PlanSetup](74, Config, Parent, In(Planned), 130, MaxMessage-1, 0, Over),
)

// The book is the whole conversation, as far as this program takes part in it.
var (
	byKind [256]*Row
	byType = map[reflect.Type]Kind{}
)

// Register adds rows to the book, while the program is initialized.
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

// size is the row's number of bytes, or their range.
func (r *Row) size() string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d–%d", r.Min, r.Max)
}

// permit judges one frame against the book: kind, direction, phase, size of the
// fields and number of descriptors. It is the only gate, for both ends and both ways.
func permit(kind Kind, from, to Role, phase Phase, size, fds int) (*Row, error) {
	r := byKind[kind]
	switch {
	case r == nil:
		return nil, violation(from, kind, "is not in the book")
	case !r.From.Has(from) || !r.To.Has(to):
		return nil, violation(from, kind, "is not for a %s to say to a %s", from, to)
	case !r.Phases.Has(phase):
		return nil, violation(from, kind, "is not permitted while %s", phase)
	case size < r.Min || size > r.Max:
		return nil, violation(from, kind, "has %d bytes, not %s", size, r.size())
	case fds != r.FDs:
		return nil, violation(from, kind, "came with %d descriptors, not %d", fds, r.FDs)
	}
	return r, nil
}
