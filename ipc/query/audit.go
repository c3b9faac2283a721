package query

import (
	"schedrestd/internal/keystate"
	"schedrestd/ipc"
)

// Bounds of the texts about a change, in bytes. A longer text violates the
// protocol.
const (
	maxName   = 255
	maxSource = 45 // bytes of an address
	maxMethod = 16
	maxRoute  = 64
	maxObject = 255
	maxFields = 512
	maxCode   = 64
)

// Intent announces a change that a client has requested, and asks for
// permission to make the change. The auditor gives permission only after it has
// written a line about the change to the audit log. All fields come from the
// worker. The dispatcher separately sends the auditor ConnectionFacts, which
// contains what the kernel reports about the client.
//
// If the change has an Idempotency-Key, the auditor first claims the key, and
// refuses the change if the key is not free.
type Intent struct {
	ID         uint64 // chosen by the worker and never reused
	Connection uint64 // number of the connection, as in the message Connection
	Request    string // id of the request, as the client sees it
	Forwarded  string // the client's address according to a trusted proxy; "": no proxy
	User       string // the authenticated user; "" when only the uid is known
	UID        uint32 // uid of that user; ipc.NoID when only the name is known
	Token      string // id of the gateway token; "": another credential
	ActAs      string // the user that User acts as; "": the same user
	Method     string
	Route      string // such as "job/{job_id}"
	Object     string // the object to change, as the client names it; "" if the request creates it
	Fields     string // names of the fields that the request sets, separated by spaces; no values
	Key        []Key  // the Idempotency-Key; empty if there is none
}

// Key is an Idempotency-Key. Value, User and Body are hashes, so that no key,
// user name or request body reaches the auditor's file of keys.
type Key struct {
	Value  [32]byte // hash of the user and the key
	User   [32]byte // hash of the user; keys are counted against this user's share of the file
	Body   [32]byte // hash of the whole request
	Lookup bool     // only an earlier answer may be repeated: the change must not be made
	Search bool     // the worker finds out whether an earlier change with the key was made, so the key is free if the auditor does not know it
}

// keySize is the size of an encoded Key.
const keySize = 98

func (i *Intent) Walk(w *ipc.Walker) {
	w.Fields(&i.ID, &i.Connection)
	w.Text(maxName, &i.Request)
	w.Text(maxSource, &i.Forwarded)
	w.Text(maxName, &i.User)
	w.Fields(&i.UID)
	w.Text(maxName, &i.Token)
	w.Text(maxName, &i.ActAs)
	w.Text(maxMethod, &i.Method)
	w.Text(maxRoute, &i.Route)
	w.Text(maxObject, &i.Object)
	w.Text(maxFields, &i.Fields)
	ipc.List(w, &i.Key, 1, keySize, func(k *Key) {
		w.Bytes(k.Value[:])
		w.Bytes(k.User[:])
		w.Bytes(k.Body[:])
		w.Fields(&k.Lookup, &k.Search)
	})
}

// Truncate shortens each text to its bound and returns i.
func (i *Intent) Truncate() *Intent {
	i.Request, i.Forwarded = truncate(i.Request, maxName), truncate(i.Forwarded, maxSource)
	i.User, i.Token, i.ActAs = truncate(i.User, maxName), truncate(i.Token, maxName), truncate(i.ActAs, maxName)
	i.Method, i.Route = truncate(i.Method, maxMethod), truncate(i.Route, maxRoute)
	i.Object, i.Fields = truncate(i.Object, maxObject), truncate(i.Fields, maxFields)
	return i
}

// truncate returns the first limit bytes of text. If this cuts a character in
// two, the auditor escapes the remaining bytes of the character.
func truncate(text string, limit int) string { return text[:min(len(text), limit)] }

// Decision is the auditor's decision about an Intent.
type Decision uint8

const (
	Denied   Decision = iota // the change must not be made: the log can't be written, or the Idempotency-Key is not free
	Granted                  // the change is in the log and may be made
	TryLater                 // too many Intents: nothing was written, and the worker may ask again in a moment
)

// IntentDecision answers the Intent with the same ID. The worker must send an
// Outcome after Granted, and must not send one otherwise.
//
// State is keystate.Fresh if a change with an Idempotency-Key is granted. If
// such a change is denied because of its key, State is the reason, and with
// keystate.Answered, Answer is the answer to the first request with the key.
// Otherwise State is keystate.None.
type IntentDecision struct {
	ID       uint64
	Decision Decision
	State    keystate.State
	Answer   []byte
}

func (n *IntentDecision) Walk(w *ipc.Walker) {
	w.Fields(&n.ID)
	ipc.Enum(w, &n.Decision, "decision", Denied, TryLater)
	ipc.Enum(w, &n.State, "state of a key", keystate.None, keystate.NotDone)
	w.Blob(&n.Answer, keystate.MaxAnswer)
}

// Outcome reports the result of a change. The worker sends one Outcome for each
// permitted change. ID is the ID of the Intent that announced the change.
type Outcome struct {
	ID     uint64
	Status uint16         // HTTP status of the answer
	Code   string         // "ok", or the error code of the answer
	Number uint32         // Slurm's number of that error; 0: none
	Result string         // the object that was created or changed, such as a job's number
	State  keystate.State // Answered, Unknown or NotDone if the Intent had a Key; otherwise None
	Answer []byte         // for later requests with the key
}

func (o *Outcome) Walk(w *ipc.Walker) {
	w.Fields(&o.ID, &o.Status)
	w.Text(maxCode, &o.Code)
	w.Fields(&o.Number)
	w.Text(maxObject, &o.Result)
	ipc.Enum(w, &o.State, "state of a key", keystate.None, keystate.NotDone)
	w.Blob(&o.Answer, keystate.MaxAnswer)
}

// Truncate shortens each text to its bound and returns o.
func (o *Outcome) Truncate() *Outcome {
	o.Code, o.Result = truncate(o.Code, maxCode), truncate(o.Result, maxObject)
	return o
}

// Settled answers the Outcome with the same ID, if its Intent had a Key.
type Settled struct{ ID uint64 }

func (s *Settled) Walk(w *ipc.Walker) { w.Fields(&s.ID) }
