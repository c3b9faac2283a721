package work

import "schedrestd/ipc"

// OffenceKind is a kind of offence that a worker reports about a client.
type OffenceKind uint8

const (
	BadCredential OffenceKind = iota + 1 // a request was answered 401
	BadRequest                           // the client sent no valid request
)

// Offence reports what the client of the connection with the number ID did. The
// dispatcher knows the client of each connection. So a compromised worker can
// only report clients whose connections it holds.
//
// Credential is a hash of the rejected credential. With this hash, the
// dispatcher recognizes a credential that was rejected before. For BadRequest
// the dispatcher ignores Credential.
type Offence struct {
	ID         uint64
	Kind       OffenceKind
	Credential uint64
}

func (o *Offence) Walk(w *ipc.Walker) {
	w.Fields(&o.ID)
	ipc.Enum(w, &o.Kind, "kind of offence", BadCredential, BadRequest)
	w.Fields(&o.Credential)
}

// Pause tells the worker to answer every request on connection ID with 429 for
// the next Seconds seconds.
type Pause struct {
	ID      uint64
	Seconds uint16
}

func (p *Pause) Walk(w *ipc.Walker) { w.Fields(&p.ID, &p.Seconds) }
