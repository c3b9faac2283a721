package ipc

import "slices"

// Row is one kind of message: who may say it to whom, when, how long it is and how
// many descriptors come with it. A row whose Phases are empty is in the book to
// keep its place, and is forbidden.
type Row struct {
	Kind     Kind
	Name     string
	From, To Role
	Phases   Phases // where it is permitted; empty: never
	Min, Max int    // bytes of the fields, without the kind
	FDs      int    // exactly this many descriptors
	Then     Phase  // the phase it leads to; Born: it changes none
	About    string // one sentence for the docs
}

// always is where a message about a held connection may come.
var always = In(Serving, Draining)

// book is the whole conversation. The last nine rows are promises: their
// messages come with the cage and the keeper, and are forbidden until then.
var book = []Row{
	{KindSetup, "Setup", Parent, Worker, In(Born), 57, MaxMessage - 1, 0, Told,
		"what the worker needs of the configuration; no secret"},
	{KindPosture, "Posture", Parent, Worker, In(Told), 2, 8 << 10, 0, Proving,
		"what the kernel must say about the worker"},
	{KindReady, "Ready", Worker, Parent, In(Proving), 0, 0, 0, Serving,
		"the posture is as expected and the worker can serve"},
	{KindRefused, "Refused", Worker, Parent, In(Told, Proving), 2, 2 + maxReason, 0, Over,
		"the worker will not serve, and why"},
	{KindConnection, "Connection", Parent, Worker, In(Serving), 26, 26 + 2*maxAddress, 1, Born,
		"an accepted connection with what the kernel says about its peer"},
	{KindTaken, "Taken", Worker, Parent, always, 8, 8, 0, Born,
		"a connection that was handed over is in the worker's hands; nothing of it was read before"},
	{KindDone, "Done", Worker, Parent, always, 8, 8, 0, Born,
		"a connection of this worker was closed; its slot is free"},
	{KindPing, "Ping", Parent, Worker, always, 8, 8, 0, Born,
		"is the worker still reading?"},
	{KindPong, "Pong", Worker, Parent, always, 8, 8, 0, Born,
		"the answer to one Ping, with its number"},
	{KindDrain, "Drain", Parent, Worker, In(Serving), 0, 0, 0, Draining,
		"finish what is being answered, close what is idle, exit"},

	{KindPhase, "Phase", Worker, Parent, 0, 9, 9, 0, Born,
		"how far a connection has come: reading a header, authenticated, idle"},
	{KindDial, "Dial", Worker, Parent, 0, 9, 9, 0, Born,
		"connect to a configured controller, by its index; never by an address"},
	{KindDialed, "Dialed", Parent, Worker, 0, 8, 8 + maxReason, 1, Born,
		"the connected descriptor"},
	{KindSign, "Sign", Worker, Keeper, 0, 12, 4 << 10, 0, Born,
		"sign this handshake; the message itself, never a digest"},
	{KindSigned, "Signed", Keeper, Worker, 0, 8, 2 << 10, 0, Born,
		"the signature"},
	{KindVerify, "Verify", Worker, Keeper, 0, 8, 10 << 10, 0, Born,
		"is this token's signature good?"},
	{KindVerified, "Verified", Keeper, Worker, 0, 9, 9, 0, Born,
		"yes or no"},
	{KindKeyFD, "KeyFD", Parent, Keeper, 0, 1, 1, 1, Born,
		"an open key file, its owner and mode checked"},
	{KindJWKSFD, "JWKSFD", Parent, Worker, 0, 0, 0, 1, Born,
		"the open key set, its owner and mode checked"},
}

// byKind finds a row by the first byte of a frame.
var byKind = func() (t [256]*Row) {
	for i := range book {
		t[book[i].Kind] = &book[i]
	}
	return t
}()

// Book is a copy of the book, for tests and docs.
func Book() []Row { return slices.Clone(book) }

// rowOf is the row of kind k.
func rowOf(k Kind) (Row, bool) {
	if r := byKind[k]; r != nil {
		return *r, true
	}
	return Row{}, false
}

// permit judges one frame against the book: kind, direction, phase, size of the
// fields and number of descriptors. It is the only gate, for both ends and both ways.
func permit(kind Kind, from, to Role, phase Phase, size, fds int) (Row, error) {
	row, ok := rowOf(kind)
	switch {
	case !ok:
		return Row{}, violation(from, kind, "is not in the book")
	case row.From != from || row.To != to:
		return Row{}, violation(from, kind, "is not for a %s to say to a %s", from, to)
	case !row.Phases.Has(phase):
		return Row{}, violation(from, kind, "is not permitted while %s", phase)
	case size < row.Min || size > row.Max:
		return Row{}, violation(from, kind, "has %d bytes, not %s", size, row.size())
	case fds != row.FDs:
		return Row{}, violation(from, kind, "came with %d descriptors, not %d", fds, row.FDs)
	}
	return row, nil
}
