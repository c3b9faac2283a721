package query

import "schedrestd/ipc"

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
type Intent struct {
	ID         uint64 // chosen by the worker and never reused
	Connection uint64 // number of the connection, as in the message Connection
	Request    string // id of the request, as the client sees it
	Forwarded  string // the client's address according to a trusted proxy; "": no proxy
	User       string // the authenticated user; "" when only the uid is known
	UID        uint32 // uid of that user; ipc.NoID when only the name is known
	ActAs      string // the user that User acts as; "": the same user
	Method     string
	Route      string // such as "job/{job_id}"
	Object     string // the object to change, as the client names it; "" if the request creates it
	Fields     string // names of the fields that the request sets, separated by spaces; no values
}

func (i *Intent) Walk(w *ipc.Walker) {
	w.Fields(&i.ID, &i.Connection)
	w.Text(maxName, &i.Request)
	w.Text(maxSource, &i.Forwarded)
	w.Text(maxName, &i.User)
	w.Fields(&i.UID)
	w.Text(maxName, &i.ActAs)
	w.Text(maxMethod, &i.Method)
	w.Text(maxRoute, &i.Route)
	w.Text(maxObject, &i.Object)
	w.Text(maxFields, &i.Fields)
}

// Truncate shortens each text to its bound and returns i.
func (i *Intent) Truncate() *Intent {
	i.Request, i.User, i.ActAs = truncate(i.Request, maxName), truncate(i.User, maxName), truncate(i.ActAs, maxName)
	i.Forwarded = truncate(i.Forwarded, maxSource)
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
	Denied   Decision = iota // the change must not be made: the log can't be written
	Granted                  // the change is in the log and may be made
	TryLater                 // too many Intents: nothing was written, and the worker may ask again in a moment
)

// IntentDecision answers the Intent with the same ID. The worker must send an
// Outcome after Granted, and must not send one otherwise.
type IntentDecision struct {
	ID       uint64
	Decision Decision
}

func (n *IntentDecision) Walk(w *ipc.Walker) {
	w.Fields(&n.ID)
	ipc.Enum(w, &n.Decision, "decision", Denied, TryLater)
}

// Outcome reports the result of a change. The worker sends one Outcome for each
// permitted change. ID is the ID of the Intent that announced the change.
type Outcome struct {
	ID     uint64
	Status uint16 // HTTP status of the answer
	Code   string // "ok", or the error code of the answer
	Number uint32 // Slurm's number of that error; 0: none
	Result string // the object that was created or changed, such as a job's number
}

func (o *Outcome) Walk(w *ipc.Walker) {
	w.Fields(&o.ID, &o.Status)
	w.Text(maxCode, &o.Code)
	w.Fields(&o.Number)
	w.Text(maxObject, &o.Result)
}

// Truncate shortens each text to its bound and returns o.
func (o *Outcome) Truncate() *Outcome {
	o.Code, o.Result = truncate(o.Code, maxCode), truncate(o.Result, maxObject)
	return o
}
