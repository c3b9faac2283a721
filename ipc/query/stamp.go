package query

import "schedrestd/ipc"

const (
	maxBody    = 24 << 10 // of a part of a message's body, in bytes
	payloadLen = 33       // of package payload
	maxStamp   = 24 << 10 // of a credential; auth/slurm may list the user's groups in it
)

// StampPart carries a part of a body that is too long for one Stamp. The parts
// precede the Stamp, in order, and all have the same Type.
type StampPart struct {
	Type uint16 // of the message
	Body []byte
}

func (s *StampPart) Walk(w *ipc.Walker) {
	w.Fields(&s.Type)
	w.Blob(&s.Body, maxBody)
}

// Stamp asks the keeper for the credential of one message to a daemon, which the user
// of a gateway token sends. The keeper hashes the whole body, because a hash would not
// show the keeper what it confirms.
type Stamp struct {
	ID     uint64 // chosen by the worker and repeated in the answer
	Signed []byte // header and payload of the gateway token, as they were sent
	MAC    [macSize]byte
	ActAs  string // the user to act as; "": the token's own user
	Type   uint16 // of the message
	Body   []byte // the last part of its body
}

func (s *Stamp) Walk(w *ipc.Walker) {
	w.Fields(&s.ID)
	w.Blob(&s.Signed, maxGatewayToken)
	w.Bytes(s.MAC[:])
	w.Text(maxUser, &s.ActAs)
	w.Fields(&s.Type)
	w.Blob(&s.Body, maxBody)
}

// Stamped answers the Stamp with the same ID.
type Stamped struct {
	ID         uint64
	Verdict    Verdict
	Client     uint64 // not 0: the user's process has to be started first; the worker asks the dispatcher for it, and then again for the stamp
	UID        uint32 // of the user, if Client is not 0
	Reason     string // why there is none, although the verdict is Genuine; for the log
	Credential []byte // of MUNGE or auth/slurm
}

func (s *Stamped) Walk(w *ipc.Walker) {
	w.Fields(&s.ID)
	ipc.Enum(w, &s.Verdict, "verdict", NoVerdict, NotInScope)
	w.Fields(&s.Client, &s.UID)
	w.Text(ipc.MaxReason, &s.Reason)
	w.Blob(&s.Credential, maxStamp)
}

// GetCredential asks a process of a user for a credential with this payload, which the
// process gets from munged or from a socket of auth/slurm.
type GetCredential struct {
	ID         uint64
	Accounting bool // for the accounting daemon, whose MUNGE may be another one
	Payload    [payloadLen]byte
}

func (g *GetCredential) Walk(w *ipc.Walker) {
	w.Fields(&g.ID, &g.Accounting)
	w.Bytes(g.Payload[:])
}

// GotCredential answers the GetCredential with the same ID.
type GotCredential struct {
	ID         uint64
	Reason     string // why there is none
	Credential []byte
}

func (g *GotCredential) Walk(w *ipc.Walker) {
	w.Fields(&g.ID)
	w.Text(ipc.MaxReason, &g.Reason)
	w.Blob(&g.Credential, maxStamp)
}

// QuestionID returns the number of the question that this answers.
func (g *GotCredential) QuestionID() uint64 { return g.ID }
