package ipc

// Bounds of what a worker says about a change, in bytes. The auditor cuts nothing: what is longer breaks the protocol.
const (
	maxSource = 45 // an address
	maxMethod = 16
	maxRoute  = 64
	maxObject = 255
	maxCode   = 64
)

// LogFD gives the auditor the audit log, open for appending.
type LogFD struct {
	FailOpen bool // changes are granted while the log can't be written
	Sync     bool // a line counts as written when it is on the disk
	Torn     bool // the file ends within a line
	Named    bool // it is a file with a name, which may be moved or removed: Follow asks
}

// Kind is KindLogFD.
func (*LogFD) Kind() Kind { return KindLogFD }

func (l *LogFD) walk(w *walker) {
	w.flag(&l.FailOpen)
	w.flag(&l.Sync)
	w.flag(&l.Torn)
	w.flag(&l.Named)
}

// Facts tells the auditor of a connection that the worker Worker is given. It is sent before the
// Connection is.
type Facts struct {
	Worker uint32
	Connection
}

// Kind is KindFacts.
func (*Facts) Kind() Kind { return KindFacts }

func (f *Facts) walk(w *walker) {
	w.u32(&f.Worker)
	f.Connection.walk(w)
}

// Gone tells the auditor that no worker holds the connection ID any longer. Every number up to ID
// was given to a connection.
type Gone struct {
	ID uint64
}

// Kind is KindGone.
func (*Gone) Kind() Kind { return KindGone }

func (g *Gone) walk(w *walker) { w.u64(&g.ID) }

// Exited tells the auditor that a worker has exited. What it held is gone with it.
type Exited struct {
	Worker uint32
	Status string // how it ended
}

// Kind is KindExited.
func (*Exited) Kind() Kind { return KindExited }

func (e *Exited) walk(w *walker) {
	w.u32(&e.Worker)
	w.text(&e.Status, maxReason)
}

// Follow asks the parent whether the file of the LogFD still has its name.
type Follow struct{}

// Kind is KindFollow.
func (*Follow) Kind() Kind { return KindFollow }

func (*Follow) walk(*walker) {}

// Followed answers a Follow.
type Followed struct {
	Reason string // why the log can't be written; "" when it can
}

// Kind is KindFollowed.
func (*Followed) Kind() Kind { return KindFollowed }

func (f *Followed) walk(w *walker) { w.text(&f.Reason, maxReason) }

// Intent says that a change is about to be made for the client of a connection, and asks for leave: the auditor
// gives it when the audit log has a line about it. All of it is the worker's word; what the kernel says comes from
// the parent.
type Intent struct {
	ID         uint64 // chosen by the worker, never used twice
	Connection uint64 // the parent's number of it
	Request    string // id of the request, as the client sees it
	Forwarded  string // for whom a trusted proxy says that it asks, an address; "": nobody
	User       string // whose credential it is; "" when it has a uid alone
	UID        uint32 // … NoID when it has a name alone
	ActAs      string // who that user wants to be; "": himself
	Method     string
	Route      string // as "job/{job_id}"
	Object     string // what is to be changed, as the client names it; "" when it is to be made
}

// Kind is KindIntent.
func (*Intent) Kind() Kind { return KindIntent }

func (i *Intent) walk(w *walker) {
	w.u64(&i.ID)
	w.u64(&i.Connection)
	w.text(&i.Request, maxName)
	w.text(&i.Forwarded, maxSource)
	w.text(&i.User, maxName)
	w.u32(&i.UID)
	w.text(&i.ActAs, maxName)
	w.text(&i.Method, maxMethod)
	w.text(&i.Route, maxRoute)
	w.text(&i.Object, maxObject)
}

// Cut shortens each text to what the book lets through.
func (i *Intent) Cut() *Intent {
	i.Request, i.User, i.ActAs = cut(i.Request, maxName), cut(i.User, maxName), cut(i.ActAs, maxName)
	i.Forwarded = cut(i.Forwarded, maxSource)
	i.Method, i.Route, i.Object = cut(i.Method, maxMethod), cut(i.Route, maxRoute), cut(i.Object, maxObject)
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

// Kind is KindNoted.
func (*Noted) Kind() Kind { return KindNoted }

func (n *Noted) walk(w *walker) {
	w.u64(&n.ID)
	enum(w, &n.Leave, "leave", Withheld, Later)
}

// Outcome says what became of the change of the Intent of the same ID, once.
type Outcome struct {
	ID     uint64
	Status uint16 // that the client is answered with
	Code   string // "ok", or the word for programs of the error that the client is told
	Number uint32 // Slurm's number of that error; 0: none
	Result string // what was made, or changed, as a job's number
}

// Kind is KindOutcome.
func (*Outcome) Kind() Kind { return KindOutcome }

func (o *Outcome) walk(w *walker) {
	w.u64(&o.ID)
	w.u16(&o.Status)
	w.text(&o.Code, maxCode)
	w.u32(&o.Number)
	w.text(&o.Result, maxObject)
}

// Cut shortens each text to what the book lets through.
func (o *Outcome) Cut() *Outcome {
	o.Code, o.Result = cut(o.Code, maxCode), cut(o.Result, maxObject)
	return o
}
