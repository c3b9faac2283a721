package ipc

import (
	"fmt"
	"strconv"
)

// row is one kind of message: who may say it to whom, when, how long it is and how
// many descriptors come with it. A row whose Phases are empty is in the book to
// keep its place, and is forbidden.
type row struct {
	Kind     Kind
	Name     string
	From, To Role
	Phases   phaseSet // where it is permitted; empty: never
	Min, Max int      // bytes of the fields, without the kind
	FDs      int      // exactly this many descriptors
	Then     Phase    // the phase it leads to; Born: it changes none
	About    string   // one sentence for the docs

	empty func() Message
}

// of is an empty message of that type.
func of[T any, P interface {
	*T
	Message
}]() Message {
	return P(new(T))
}

// always is where a message about a held connection may come.
var always = in(Serving, Draining)

// book is the whole conversation.
var book = []row{
	{KindSetup, "Setup", Parent, Worker, in(Born), 130, MaxMessage - 1, 0, Told,
		"what the worker needs of the configuration; no secret", of[Setup]},
	{KindPosture, "Posture", Parent, Worker | Services, in(Told), 2, 8 << 10, 0, Proving,
		"what the kernel must say about the process", of[Posture]},
	{KindReady, "Ready", Worker | Services, Parent, in(Proving), 4, 4, 0, Serving,
		"the posture is as expected, the cage is closed and proven, and the process can serve", of[Ready]},
	{KindRefused, "Refused", Worker | Services, Parent, in(Born, Told, Proving), 2, 2 + maxReason, 0, Over,
		"the process will not serve, and why", of[Refused]},
	{KindConnection, "Connection", Parent, Worker, in(Serving), 27, 27 + 2*maxAddress, 1, Born,
		"an accepted connection with what the kernel says about its peer", of[Connection]},
	{KindStreams, "Streams", Parent, Worker, in(Serving), 27, 27 + 2*maxAddress, 2, Born,
		"standard input and output of an inetd run, as one connection", of[Streams]},
	{KindTaken, "Taken", Worker, Parent, always, 8, 8, 0, Born,
		"a connection that was handed over is in the worker's hands; nothing of it was read before", of[Taken]},
	{KindDone, "Done", Worker, Parent, always, 8, 8, 0, Born,
		"a connection of this worker was closed; its slot is free", of[Done]},
	{KindProgress, "Progress", Worker, Parent, always, 9, 9, 0, Born,
		"how far a connection has come: waiting for a header, being answered, resting", of[Progress]},
	{KindYield, "Yield", Parent, Worker, always, 8, 8, 0, Born,
		"somebody waits for a slot: end this connection, if nobody is wronged by it", of[Yield]},
	{KindPing, "Ping", Parent, Worker | Services, always, 8, 8, 0, Born,
		"is the process still reading?", of[Ping]},
	{KindPong, "Pong", Worker | Services, Parent, always, 8, 8, 0, Born,
		"the answer to one Ping, with its number", of[Pong]},
	{KindRetire, "Retire", Parent, Worker, in(Serving), 0, 0, 0, Draining,
		"no more connections come; exit when those that are held have ended by themselves", of[Retire]},
	{KindDrain, "Drain", Parent, Worker, always, 0, 0, 0, Draining,
		"finish what is being answered, close what is idle, exit", of[Drain]},

	{KindServiceSetup, "ServiceSetup", Parent, Services, in(Born), 14, 14, 0, Told,
		"what a service needs of the configuration; no secret", of[ServiceSetup]},
	{KindKeyFD, "KeyFD", Parent, Keeper, in(Serving), 5, 5, 3, Born,
		"a TLS key (owner and mode checked), its certificates and the clients' authorities as open files, and their number", of[KeyFD]},
	{KindKept, "Kept", Keeper, Parent, in(Serving), 7, 7 + maxReason, 0, Born,
		"whether the key of that number is kept, and else why not", of[Kept]},
	{KindClient, "Client", Parent, Services, in(Serving), 16, 16, 1, Born,
		"the channel to one worker, which has this number", of[Client]},
	{KindBreach, "Breach", Services, Parent, in(Serving), 6, 6 + maxReason, 0, Born,
		"that worker broke this protocol on its channel to the service, and how", of[Breach]},
	{KindServiceFD, "ServiceFD", Parent, Worker, always, 1, 1, 1, Born,
		"the worker's channel to that service", of[ServiceFD]},
	{KindCertificate, "Certificate", Parent, Worker, always, 5, 5, 1, Born,
		"the certificates that go with the kept key of that number, as an open file", of[Certificate]},
	{KindClientCA, "ClientCA", Parent, Worker, always, 0, 0, 1, Born,
		"the authorities whose clients may connect, as an open file", of[ClientCA]},
	{KindTickets, "Tickets", Parent, Worker, always, 2, 2 + 32*maxTickets, 0, Born,
		"keys for TLS session tickets, made for this run; the first one signs", of[Tickets]},
	{KindSign, "Sign", Worker, Keeper, in(Born), 16, 16 + maxHandshake, 0, Born,
		"sign this handshake; the message itself, never a digest", of[Sign]},
	{KindSigned, "Signed", Keeper, Worker, in(Born), 10, 10 + maxSignature, 0, Born,
		"the signature; empty when the keeper does not sign that", of[Signed]},

	{KindTokenKeyFD, "TokenKeyFD", Parent, Keeper, in(Serving), 5, 5, 1, Born,
		"the key of HS256 tokens (owner and mode checked), as an open file, and its number", of[TokenKeyFD]},
	{KindVerify, "Verify", Worker, Keeper, in(Born), 42, 42 + maxSigned, 0, Born,
		"is this token's HS256 signature good?", of[Verify]},
	{KindVerified, "Verified", Keeper, Worker, in(Born), 9, 9, 0, Born,
		"yes, no, or that there is no key to tell with", of[Verified]},
	{KindJWKSFD, "JWKSFD", Parent, Worker, always, 1, 1, 1, Born,
		"the key set of RS256 tokens (owner and mode checked), a sealed copy", of[JWKSFD]},
	{KindKeyChanged, "KeyChanged", Parent, Worker, always, 0, 0, 0, Born,
		"the keeper has another key of HS256 tokens, or none: forget who was vouched for", of[KeyChanged]},

	{KindDial, "Dial", Worker, Parent, always, 10, 10, 0, Born,
		"open the way to a configured daemon, by its index; never by an address", of[Dial]},
	{KindDialed, "Dialed", Parent, Worker, always, 16, 16, 1, Born,
		"a TCP socket that is being connected, or the inode of a UNIX socket, which the worker connects to as who it is", of[Dialed]},
	{KindUndialed, "Undialed", Parent, Worker, always, 10, 10, 0, Born,
		"that way can't be opened, and the kernel's number for why", of[Undialed]},
	{KindStock, "Stock", Worker, Parent, always, 2, 2, 0, Born,
		"many connections to that daemon are needed: Spares, please; none may come", of[Stock]},
	{KindSpares, "Spares", Parent, Worker, always, 2, 2, SpareCount, Born,
		"TCP sockets that know their daemon and have not said a word to it: each connects with its first write, and to nobody else", of[Spares]},
	{KindWho, "Who", Parent | Worker, Resolver, in(Born, Serving), 15, 15 + maxName, 0, Born,
		"the name of a user or a group, or the number of a name", of[Who]},
	{KindKnown, "Known", Resolver, Parent | Worker, in(Born, Serving), 15, 15 + maxName, 0, Born,
		"the name or the number, or that there is none, or that the user database is unavailable", of[Known]},

	{KindOffence, "Offence", Worker, Parent, always, 17, 17, 0, Born,
		"the client of a connection of this worker was answered 401 for a credential that is new to it, or sent no request", of[Offence]},
	{KindPause, "Pause", Parent, Worker, always, 10, 10, 0, Born,
		"the client of that connection has to wait for so many seconds, and is told so", of[Pause]},

	{KindLogFD, "LogFD", Parent, Auditor, in(Serving), 4, 4, 1, Born,
		"the audit log (owner, mode and directory checked), open for appending, in place of the one before", of[LogFD]},
	{KindFacts, "Facts", Parent, Auditor, in(Serving), 31, 31 + 2*maxAddress, 0, Born,
		"a connection that a worker is given, with what the kernel says about its peer", of[Facts]},
	{KindGone, "Gone", Parent, Auditor, in(Serving), 8, 8, 0, Born,
		"a connection that no worker holds any longer", of[Gone]},
	{KindExited, "Exited", Parent, Auditor, in(Serving), 6, 6 + maxReason, 0, Born,
		"a worker has exited, and how: the outcomes that it owes are unknown", of[Exited]},
	{KindFollow, "Follow", Auditor, Parent, in(Serving), 0, 0, 0, Born,
		"does the audit log still have its name? asked before lines are written", of[Follow]},
	{KindFollowed, "Followed", Parent, Auditor, in(Serving), 2, 2 + maxReason, 0, Born,
		"the audit log can be written, or why not; a LogFD comes first when it is another file", of[Followed]},
	{KindIntent, "Intent", Worker, Auditor, in(Born), 34, 34 + 3*maxName + maxSource + maxMethod + maxRoute + maxObject, 0, Born,
		"a change is about to be made for a connection of this worker: may it?", of[Intent]},
	{KindNoted, "Noted", Auditor, Worker, in(Born), 9, 9, 0, Born,
		"the audit log has the intent, and the change may be made; or it must not be, or not yet", of[Noted]},
	{KindOutcome, "Outcome", Worker, Auditor, in(Born), 18, 18 + maxCode + maxObject, 0, Born,
		"what became of a change that was let through; owed once", of[Outcome]},

	{KindConfigSetup, "ConfigSetup", Parent, Config, in(Born), 12, 12 + maxPath, 0, Told,
		"how the parent was started", of[ConfigSetup]},
	{KindVariable, "Variable", Parent, Config, in(Told), 2, 2 + maxVariable, 0, Born,
		"an environment variable of the parent's", of[Variable]},
	{KindOpenFile, "OpenFile", Config, Parent, in(Told), 3, 3 + maxPath, 0, Born,
		"open a configuration file, a list of uids or the worker's program, or report whether a path exists", of[OpenFile]},
	{KindOpenedFD, "OpenedFD", Parent, Config, in(Told), 0, 0, 1, Born,
		"the file that was asked for (owner and mode checked)", of[OpenedFD]},
	{KindJudge, "Judge", Config, Parent, in(Told), 4, 4 + 8*maxOwners, 0, Born,
		"may nobody but root and these change the configuration files that were opened?", of[Judge]},
	{KindJudgement, "Judgement", Parent, Config, in(Told), 6, 6 + 2*maxCause, 0, Born,
		"the answer without a file: yes, or why not", of[Judgement]},
	{KindNoPlan, "NoPlan", Config, Parent, in(Told), 5, 5 + 2*maxCause, 0, Over,
		"a reload has no Plan, and why", of[NoPlan]},
	{KindPlan, "Plan", Config, Parent, in(Told), 80, MaxMessage - 1, 0, Planned,
		"what the parent needs of command line, environment and configuration; no file is opened after it", of[Plan]},
	{KindPlanListen, "PlanListen", Config, Parent, in(Planned), 8, 8 + maxListen + maxSocketPath + maxBound*(6+16+maxZone), 0, Born,
		"an address to listen on", of[PlanListen]},
	{KindPlanSubuids, "PlanSubuids", Config, Parent, in(Planned), 2, 2 + 12*subuidsAtOnce, 0, Born,
		"ranges of subordinate uids, in ascending order", of[PlanSubuids]},
	{KindPlanSetup, "PlanSetup", Config, Parent, in(Planned), 130, MaxMessage - 1, 0, Over,
		"the workers' Setup, which ends the Plan", of[PlanSetup]},
}

// size is the row's number of bytes, or their range.
func (r row) size() string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d–%d", r.Min, r.Max)
}

// byKind finds a row by the first byte of a frame.
var byKind = func() (t [256]*row) {
	for i := range book {
		t[book[i].Kind] = &book[i]
	}
	return t
}()

// rowOf is the row of kind k.
func rowOf(k Kind) (row, bool) {
	if r := byKind[k]; r != nil {
		return *r, true
	}
	return row{}, false
}

// permit judges one frame against the book: kind, direction, phase, size of the
// fields and number of descriptors. It is the only gate, for both ends and both ways.
func permit(kind Kind, from, to Role, phase Phase, size, fds int) (row, error) {
	r, ok := rowOf(kind)
	switch {
	case !ok:
		return row{}, violation(from, kind, "is not in the book")
	case !r.From.Has(from) || !r.To.Has(to):
		return row{}, violation(from, kind, "is not for a %s to say to a %s", from, to)
	case !r.Phases.Has(phase):
		return row{}, violation(from, kind, "is not permitted while %s", phase)
	case size < r.Min || size > r.Max:
		return row{}, violation(from, kind, "has %d bytes, not %s", size, r.size())
	case fds != r.FDs:
		return row{}, violation(from, kind, "came with %d descriptors, not %d", fds, r.FDs)
	}
	return r, nil
}
