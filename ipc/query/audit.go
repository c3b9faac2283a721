package query

import "schedrestd/ipc"

// Bounds of what a worker says about a change, in bytes. The auditor cuts nothing: what is longer breaks the protocol.
const (
	maxName   = 255
	maxSource = 45 // an address
	maxMethod = 16
	maxRoute  = 64
	maxObject = 255
	maxFields = 512
	maxCode   = 64
)

// Intent says that a change is about to be made for the client of a connection, and asks for leave: the auditor
// gives it when the audit log has a line about it. All of it is the worker's word; what the kernel says comes from
// the parent.
type Intent struct {
	ID         uint64 // chosen by the worker, never used twice
	Connection uint64 // the parent's number of it
	Request    string // id of the request, as the client sees it
	Forwarded  string // for whom a trusted proxy says that it asks, an address; "": nobody
	User       string // whose credential it is; "" when it has a uid alone
	UID        uint32 // … ipc.NoID when it has a name alone
	ActAs      string // who that user wants to be; "": himself
	Method     string
	Route      string // as "job/{job_id}"
	Object     string // what is to be changed, as the client names it; "" when it is to be made
	Fields     string // names of the fields that the request sets, with spaces between them; no values
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

// Cut shortens each text to what the book lets through.
func (i *Intent) Cut() *Intent {
	i.Request, i.User, i.ActAs = cut(i.Request, maxName), cut(i.User, maxName), cut(i.ActAs, maxName)
	i.Forwarded = cut(i.Forwarded, maxSource)
	i.Method, i.Route, i.Object, i.Fields = cut(i.Method, maxMethod), cut(i.Route, maxRoute), cut(i.Object, maxObject), cut(i.Fields, maxFields)
	return i
}

// cut is text without what is past limit bytes; it may end within a character, which the auditor escapes.
func cut(text string, limit int) string { return text[:min(len(text), limit)] }

// Leave is what becomes of an Intent.
type Leave uint8

// The leaves.
const (
	Withheld Leave = iota // the change must not be made: the log can't be written
	Granted               // it is in the log, and may be made
	Later                 // nothing is in the log; this worker has asked too often, and may ask again in a moment
)

// Noted is the answer to the Intent of the same ID. After Granted, and only then, an Outcome is owed.
type Noted struct {
	ID    uint64
	Leave Leave
}

func (n *Noted) Walk(w *ipc.Walker) {
	w.Fields(&n.ID)
	ipc.Enum(w, &n.Leave, "leave", Withheld, Later)
}

// Outcome says what became of the change of the Intent of the same ID, once.
type Outcome struct {
	ID     uint64
	Status uint16 // that the client is answered with
	Code   string // "ok", or the word for programs of the error that the client is told
	Number uint32 // Slurm's number of that error; 0: none
	Result string // what was made, or changed, as a job's number
}

func (o *Outcome) Walk(w *ipc.Walker) {
	w.Fields(&o.ID, &o.Status)
	w.Text(maxCode, &o.Code)
	w.Fields(&o.Number)
	w.Text(maxObject, &o.Result)
}

// Cut shortens each text to what the book lets through.
func (o *Outcome) Cut() *Outcome {
	o.Code, o.Result = cut(o.Code, maxCode), cut(o.Result, maxObject)
	return o
}
